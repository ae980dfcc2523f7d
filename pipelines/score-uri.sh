#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores whatever uridecodebin3 can open: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: score-uri.sh [URI]

Scores the video of URI (without: a real VP9 stream as file:///...), which may be of any kind that GStreamer
has a source for: file:, http:, https:, rtsp:, srt:. uridecodebin3 picks source, demuxer and decoder; where
it takes one that decodes into GPU memory, see docs/vmafxmotion.md. Scores go to scores/uri.ndjson.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 1 URI cannot be scored, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 1 "$@"
uri=${arguments[0]-}
[[ -z ${arguments[0]+set} || $uri =~ ^[A-Za-z][A-Za-z0-9+.-]*:.+ ]] ||
    bad_usage "'$uri' is no URI such as file:///folder/film.mp4; report.sh takes names of files"
# gst-launch-1.0 reads these in its own way; a URI writes them as %22, %5C and so on.
[[ $uri != *[[:space:]\"\\\']* ]] || bad_usage "spaces, quotes and backslashes of a URI are written as %XX"
prepare run
if [[ -z $uri ]]; then
    uri=file://$(easy_name "$(example_video)")
fi

rm -f -- "$results_dir/uri.ndjson"
status=0
launch -q uridecodebin3 uri="$uri" caps=video/x-raw \
    ! videoconvert ! vmafxmotion scores-path=uri.ndjson messages=0 ! fakesink || status=1
if [[ ! -s $results_dir/uri.ndjson ]]; then
    rm -f -- "$results_dir/uri.ndjson"
    fail 1 "$uri: no frame was scored"
fi
((status == 0)) || fail 1 "$uri was not scored to its end, see above"
"$profile_dir/vmafx-scores" table "$results_dir/uri.ndjson"
printf '\nscores: %s\n' "$results_dir/uri.ndjson"
