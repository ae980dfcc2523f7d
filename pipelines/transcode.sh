#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores a video while it is transcoded: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: transcode.sh [VIDEO]

Decodes VIDEO (without: a real VP9 stream) once, and gives each picture to x264enc and to vmafxmotion side by
side: scores/transcoded.mp4 and scores/transcoded.ndjson. The branches have queues of their own, so the
encoder does not wait for the scores. Sound is left out.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 1 VIDEO cannot be transcoded, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 1 "$@"
file=${arguments[0]-}
[[ -z ${arguments[0]+set} ]] || check_file "$file"
prepare run encode
file=${file:-$(example_video)}

read -r -a decoded <<<"$(decode "$(easy_name "$file")")"
# x264enc looks some fifty frames ahead, while the other sink waits for it with its first one: the queue
# before that sink must hold them all (200 buffers by default, once its other limits are off).
launch -q "${decoded[@]}" ! tee name=picture \
    picture. ! queue max-size-time=0 max-size-bytes=0 \
    ! vmafxmotion scores-path=transcoded.ndjson messages=0 ! fakesink \
    picture. ! queue ! x264enc ! video/x-h264,profile=high ! h264parse ! mp4mux ! filesink location=transcoded.mp4
"$profile_dir/vmafx-scores" table "$results_dir/transcoded.ndjson"
printf '\nvideo: %s\nscores: %s\n' "$results_dir/transcoded.mp4" "$results_dir/transcoded.ndjson"
