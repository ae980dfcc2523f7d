#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores a stream and sends it to OBS on this machine: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/setup.sh"

usage() {
    cat <<'END'
usage: pipelines/obs/stream.sh [URI]

Decodes URI (a live test picture without one), scores it with vmafxmotion, and sends it as H.264 in MPEG-TS to
udp://127.0.0.1:5004, which the Media Source of the scene collections vmafx-text and vmafx-browser plays. The
newest window of a second stands in a text file for a Text source; vmafx-live serves the live page,
http://127.0.0.1:8086/, and its overlay for a Browser Source, http://127.0.0.1:8086/?overlay=1. Ctrl+C ends it.

  VMAFX_SCORE_TEXT=FILE  the text file (score.txt in $XDG_RUNTIME_DIR, else in /tmp)
  VMAFX_OBS_PORT=PORT    another UDP port
  VMAFX_LIVE_PORT=PORT   another port for the page

Exit status: 0 the stream ended, 1 it failed, 2 wrong usage, 3 something is missing on this machine.
END
}

uri=
for argument in "$@"; do
    case $argument in
        -h | --help)
            usage
            exit 0
            ;;
        -*)
            say "unknown option $argument"
            usage >&2
            exit 2
            ;;
        *)
            [[ -z $uri ]] || fail 2 "one address, please"
            uri=$argument
            ;;
    esac
done
[[ -z $uri || $uri == *:* ]] || fail 2 "$uri is no address such as file:///tmp/film.mp4 or rtsp://host/stream"

need_packages build run encode
need_rust
choose_profile release
build -p gst-plugin-vmafxmotion -p vmafx-live
stage vmafxmotion
use_stage

# quote TEXT: as one word of gst-launch-1.0's language.
quote() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

picture=video/x-raw,width=1280,height=720,framerate=30/1
if [[ -n $uri ]]; then
    source="uridecodebin uri=$(quote "$uri") ! videoconvert"
else
    source="videotestsrc is-live=true pattern=ball ! $picture"
fi
score_text=${VMAFX_SCORE_TEXT:-${XDG_RUNTIME_DIR:-/tmp}/score.txt}
# Scores are the source's own; what OBS gets is scaled after them. clocksync keeps a file's own pace; a key frame
# a second lets OBS join within one.
pipeline="$source ! clocksync ! vmafxmotion n-stats=1 score-text-path=$(quote "$score_text")
    ! queue ! videoconvert ! videoscale ! videorate ! $picture,format=I420,pixel-aspect-ratio=1/1
    ! x264enc tune=zerolatency speed-preset=ultrafast bitrate=6000 key-int-max=30
    ! h264parse config-interval=-1 ! mpegtsmux alignment=7
    ! udpsink host=127.0.0.1 port=${VMAFX_OBS_PORT:-5004} sync=false"
say "score text: $score_text"
exec "$profile_dir/vmafx-live" --listen "127.0.0.1:${VMAFX_LIVE_PORT:-8086}" --launch "$pipeline"
