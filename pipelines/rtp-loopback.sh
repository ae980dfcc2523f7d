#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores what arrives over RTP: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: rtp-loopback.sh [SECONDS [PORT]]

Sends a live test picture as H.264 over RTP to PORT (5004) of this machine for SECONDS (5; 1 to 3600), and
scores it where it arrives: scores/rtp.ndjson. RTP does not tell the end of a stream, so the receiver is
interrupted when the sender is done, and ends its session properly.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 1 nothing arrived, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 2 "$@"
seconds=${arguments[0]-5}
port=${arguments[1]-5004}
check_number SECONDS "$seconds" 1 3600
check_number PORT "$port" 1024 65535
prepare run encode

caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=H264
rm -f -- "$results_dir/rtp.ndjson"
# -e: an interrupt becomes the end of the stream. A shell lets its background ignore interrupts, env undoes it.
(cd -- "$results_dir" && exec env --default-signal=INT gst-launch-1.0 -e -q \
    udpsrc address=127.0.0.1 port="$port" caps="$caps" \
    ! rtpjitterbuffer ! rtph264depay ! h264parse ! avdec_h264 \
    ! vmafxmotion scores-path=rtp.ndjson messages=0 ! fakesink) &
background+=($!)
receiver=$!
sleep 1
launch -q videotestsrc is-live=true pattern=ball num-buffers=$((10#$seconds * 30)) \
    ! video/x-raw,format=I420,width=640,height=360,framerate=30/1 \
    ! x264enc tune=zerolatency key-int-max=30 ! rtph264pay config-interval=-1 \
    ! udpsink host=127.0.0.1 port="$port"
sleep 1
kill -INT "$receiver" 2>/dev/null || fail 1 "the receiver ended early, see above"
wait "$receiver" || fail 1 "the receiver failed, see above"
background=()
[[ -s $results_dir/rtp.ndjson ]] || fail 1 "nothing arrived at port $port"
"$profile_dir/vmafx-scores" table "$results_dir/rtp.ndjson"
printf '\nscores: %s\n' "$results_dir/rtp.ndjson"
