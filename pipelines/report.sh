#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores videos and makes a web page of their motion: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: report.sh [VIDEO...]

Scores each VIDEO (without: a real VP9 stream) and writes scores/report.html, one page that compares them:
motion, motion2 and motion3 of every frame, pooled scores, likely scene cuts. It opens in any browser, and
needs neither network nor other files. scores/report.png is the same as a picture.

  VMAFX_SCORES_DIR=DIR  put the results into DIR instead of scores/

Exit status: 0 done, 1 a video cannot be scored, 2 wrong usage, 3 something is missing on this machine.
END
}

read_arguments 0 32 "$@"
names=
for file in "${arguments[@]}"; do
    check_file "$file"
    # Score files are called after the videos.
    [[ $names != */"${file##*/}"/* ]] || bad_usage "two videos are called ${file##*/}: rename one"
    names+=/${file##*/}/
done
prepare run
((${#arguments[@]} > 0)) || arguments=("$(example_video)")

scores=()
for file in "${arguments[@]}"; do
    scores+=("$results_dir/${file##*/}.ndjson")
    "$profile_dir/score-file" --output="${scores[-1]}" -- "$file"
done
"$profile_dir/vmafx-scores" report --output="$results_dir/report.html" -- "${scores[@]}"
"$profile_dir/vmafx-scores" plot --output="$results_dir/report.png" -- "${scores[@]}"
printf 'page: %s\npicture: %s\n' "$results_dir/report.html" "$results_dir/report.png"
