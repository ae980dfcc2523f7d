#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores a video in chunks and joins the scores: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: score-chunks.sh [CHUNKS [VIDEO]]

Decodes VIDEO (without: a real VP9 stream) to raw pictures, scores them in CHUNKS (4; 2 to 64) that know
nothing of each other, as many machines would, joins the scores with `vmafx-scores merge`, and compares the
result with the scores of the whole video, to the last digit: scores/chunks.ndjson. Raw pictures need much
room on the disk (1.5 bytes a pixel): take a short VIDEO.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 1 VIDEO cannot be scored, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 2 "$@"
chunks=${arguments[0]-4}
check_number CHUNKS "$chunks" 2 64
file=${arguments[1]-}
[[ -z ${arguments[1]+set} ]] || check_file "$file"
prepare run
file=${file:-$(example_video)}
raw=$work_dir/film.yuv

read -r -a decoded <<<"$(decode "$(easy_name "$file")")"
size=$(launch -v "${decoded[@]}" ! video/x-raw,format=I420 ! filesink location="$raw" name=end |
    sed -n 's/.*end.GstPad:sink: caps = .*width=(int)\([0-9]*\), height=(int)\([0-9]*\),.*/\1 \2/p' | tail -n 1)
read -r width height <<<"$size"
# GStreamer's I420: rows and half rows rounded up to four bytes, half the rows rounded up.
frame_bytes=$(((width + 3) / 4 * 4 * ((height + 1) / 2 * 2) + 2 * (((width + 1) / 2 + 3) / 4 * 4) * ((height + 1) / 2)))
frames=$(($(stat -c %s "$raw") / frame_bytes))
chunks=$((10#$chunks))
((frames >= chunks)) || fail 1 "$frames frames are too few for $chunks chunks"

# score FIRST LAST OUTPUT PROPERTY...: the raw frames FIRST to LAST, without timestamps, which raw files lack.
score() {
    local first=$1 last=$2 output=$3
    shift 3
    launch -q fdsrc ! rawvideoparse format=i420 width="$width" height="$height" framerate=0/1 \
        ! vmafxmotion "$@" n-stats-frames=50 messages=0 scores-path="$output" ! fakesink \
        < <(tail -c +$((first * frame_bytes + 1)) "$raw" | head -c $(((last - first + 1) * frame_bytes)))
}

parts=()
for ((k = 0; k < chunks; k++)); do
    first=$((k * frames / chunks))
    last=$(((k + 1) * frames / chunks - 1))
    # One frame before and one after: motion looks back, motion2 looks ahead.
    before=$((first > 0 ? 1 : 0))
    after=$((last < frames - 1 ? 1 : 0))
    parts+=("$work_dir/part$k.ndjson")
    score $((first - before)) $((last + after)) "${parts[-1]}" \
        first-frame="$first" preroll-frames="$before" postroll-frames="$after"
done
score 0 $((frames - 1)) "$work_dir/whole.ndjson"
"$profile_dir/vmafx-scores" merge --output="$results_dir/chunks.ndjson" -- "${parts[@]}"
# Each chunk begins without a timestamp, and the count of such interruptions is the sum of theirs.
same() { sed 's/"discontinuities":[0-9]*,//' "$1"; }
cmp <(same "$results_dir/chunks.ndjson") <(same "$work_dir/whole.ndjson") || fail 1 "chunks and whole differ"
say "$chunks chunks of $frames frames, joined: every frame, window and pooled score is that of the whole"
"$profile_dir/vmafx-scores" table "$results_dir/chunks.ndjson"
printf '\nscores: %s\n' "$results_dir/chunks.ndjson"
