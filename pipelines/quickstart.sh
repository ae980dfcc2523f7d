#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Scores a video with vmafxmotion, from nothing: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

usage() {
    cat <<'END'
usage: quickstart.sh [FILE]

Scores every frame of FILE with vmafxmotion and prints a table of the scores. FILE is a video that
GStreamer knows: mp4, mkv, webm, ts, or a raw H.264, H.265, VP8, VP9 or AV1 stream. Without FILE, a
real H.264 stream of the cros-codecs package is scored.

It is decoded by vplretrydec: on an Intel GPU where there is one, else by the software runtime; the line
"Decoding with" says which. What that does not decode, another decoder of GStreamer does.

Debian packages that are missing are installed first (as root; otherwise the command is printed), and
the plugins are built. The scores go to scores/NAME.ndjson in the current folder, and replace what is there.

  -h, --help            print this
  VMAFX_SCORES_DIR=DIR  put the scores into DIR instead of scores/
  VMAFX_PROFILE=debug   build without optimisation
  VMAFX_NO_APT=1        do not look at Debian's packages

Exit status: 0 done, 1 FILE cannot be scored, 2 wrong usage, 3 something is missing on this machine,
130 interrupted (with the scores until then).
END
}

# bad_usage MESSAGE...
bad_usage() {
    say "$*"
    usage >&2
    exit 2
}

# check_file FILE: what is plain about it before anything is installed or built.
check_file() {
    [[ -e $1 ]] || fail 1 "$1: no such file"
    [[ ! -d $1 ]] || fail 1 "$1: is a folder, not a video"
    [[ -f $1 ]] || fail 1 "$1: is not a regular file"
    [[ -r $1 ]] || fail 1 "$1: may not be read"
    [[ -s $1 ]] || fail 1 "$1: is empty"
}

files=()
options=yes
for argument in "$@"; do
    case $options$argument in
        yes-h | yes--help)
            usage
            exit 0
            ;;
        yes--) options= ;;
        # A file may have such a name.
        yes-*) if [[ -e $argument ]]; then files+=("$argument"); else
            bad_usage "unknown option $argument"
        fi ;;
        *) files+=("$argument") ;;
    esac
done
((${#files[@]} <= 1)) || bad_usage "one file at a time, please"

file=${files[0]-}
if ((${#files[@]} == 1)); then
    check_file "$file"
fi
scores_dir=${VMAFX_SCORES_DIR:-scores}
mkdir -p -- "$scores_dir" || fail 1 "cannot make the folder $scores_dir for the scores"
scores_dir=$(cd -- "$scores_dir" && pwd)

need_packages build run runtimes
need_rust
choose_profile release
build -p gst-plugin-vmafxmotion -p gst-plugin-vplretry -p vplsoft -p score-file -p vmafx-scores
stage vmafxmotion vplretry vplsoft
use_stage

framerate=()
if [[ -z $file ]]; then
    file=$(test_streams)/src/codec/h264/test_data/test-25fps.h264
    # The stream does not say so itself.
    framerate=(--framerate=25)
fi
scores=$scores_dir/${file##*/}.ndjson
say "scoring $file"
status=0
"$profile_dir/score-file" "${framerate[@]}" --output="$scores" -- "$file" || status=$?
if ((status != 0 && status != 130)); then
    [[ -s $scores ]] || rm -f -- "$scores"
    exit "$status"
fi
"$profile_dir/vmafx-scores" table "$scores"
printf '\nscores: %s\n' "$scores"
exit "$status"
