#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Two decoders of one stream side by side: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: side-by-side.sh [VIDEO DECODER DECODER]

Runs VIDEO (without: a real VP9 stream, vp9dec and vplretrydec) through both decoders at once, scores the
pictures of each (scores/left.ndjson, scores/right.ndjson), says whether the scores are equal, puts both
into scores/side-by-side.html, and the pictures beside each other into scores/side-by-side.mp4.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 the scores are equal, 1 they differ or VIDEO cannot be decoded, 2 wrong usage, 3 something is
missing on this machine, such as one of the decoders.
END
}

read_arguments 0 3 "$@"
((${#arguments[@]} % 3 == 0)) || bad_usage "a VIDEO and two decoders, or nothing"
file=${arguments[0]-}
left=${arguments[1]-vp9dec}
right=${arguments[2]-vplretrydec}
[[ -z ${arguments[0]+set} ]] || check_file "$file"
for decoder in "$left" "$right"; do
    [[ $decoder =~ ^[A-Za-z0-9_-]+$ ]] || bad_usage "'$decoder' is no name of an element"
done
prepare run encode
prepare_nvdecring
for decoder in "$left" "$right"; do
    reason=$(why_not "$decoder")
    [[ -z $reason ]] || fail 3 "$decoder cannot run on this machine: $reason"
done
read_coded "$(easy_name "${file:-$(example_video)}")"

half='videoconvert ! videoscale ! video/x-raw,format=I420,width=640,height=360'
read -r -a half <<<"$half"
# The encoder looks ahead and the mixer waits for the slower side: these queues hold what that takes.
wait=(queue max-size-time=0 max-size-bytes=0)
launch -q "${coded[@]}" ! "$left" ! videoconvert ! vmafxmotion scores-path=left.ndjson messages=0 \
    ! "${half[@]}" ! "${wait[@]}" ! mix.sink_0 \
    "${coded[@]}" ! "$right" ! videoconvert ! vmafxmotion scores-path=right.ndjson messages=0 \
    ! "${half[@]}" ! "${wait[@]}" ! mix.sink_1 \
    compositor name=mix background=black sink_1::xpos=640 ! video/x-raw,framerate=25/1 ! videoconvert ! video/x-raw,format=I420 \
    ! x264enc ! h264parse ! mp4mux ! filesink location=side-by-side.mp4
"$profile_dir/vmafx-scores" report --title "$left and $right" --output="$results_dir/side-by-side.html" -- \
    "$results_dir/left.ndjson" "$results_dir/right.ndjson"
printf 'video: %s\npage: %s\n' "$results_dir/side-by-side.mp4" "$results_dir/side-by-side.html"
# Formats (I420, NV12) and timestamps may differ where the pictures do not.
frames() { sed -n '/"type":"frame"/s/"timestamp":[^,]*,//p' "$results_dir/$1.ndjson"; }
cmp <(frames left) <(frames right) || fail 1 "the scores of $left and $right differ"
say "$left and $right: $(frames left | wc -l) frames, every score equal"
