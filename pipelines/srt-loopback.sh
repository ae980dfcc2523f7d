#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores what arrives over SRT: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: srt-loopback.sh [SECONDS [PORT]]

Sends a live test picture as H.264 in MPEG-TS over SRT to PORT (7001) of this machine for SECONDS (5; 1 to
3600), and scores it where it arrives: scores/srt.ndjson. The receiver listens; its stream ends when the
sender hangs up, and what was still within SRT's latency then is lost.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 1 nothing arrived, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 2 "$@"
seconds=${arguments[0]-5}
port=${arguments[1]-7001}
check_number SECONDS "$seconds" 1 3600
check_number PORT "$port" 1024 65535
prepare run encode

rm -f -- "$results_dir/srt.ndjson"
(cd -- "$results_dir" && exec gst-launch-1.0 -q \
    srtsrc uri="srt://:$port" mode=listener latency=100 ! tsdemux latency=0 ! h264parse ! avdec_h264 \
    ! vmafxmotion scores-path=srt.ndjson messages=0 ! fakesink) &
background+=($!)
receiver=$!
sleep 1
# SRT takes seven packets of MPEG-TS at once and no more.
launch -q videotestsrc is-live=true pattern=ball num-buffers=$((10#$seconds * 30)) \
    ! video/x-raw,format=I420,width=640,height=360,framerate=30/1 \
    ! x264enc tune=zerolatency key-int-max=30 ! h264parse config-interval=-1 ! mpegtsmux alignment=7 \
    ! srtsink uri="srt://127.0.0.1:$port" mode=caller latency=100
wait "$receiver" || fail 1 "the receiver failed, see above"
background=()
[[ -s $results_dir/srt.ndjson ]] || fail 1 "nothing arrived at port $port"
"$profile_dir/vmafx-scores" table "$results_dir/srt.ndjson"
printf '\nscores: %s\n' "$results_dir/srt.ndjson"
