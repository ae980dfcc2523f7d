#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# What others' NVDEC decoders make of faults: FFmpeg's h264_cuvid and GStreamer's nvh264dec on the stand-ins.
# Prints a table: how many frames come out, and what is said. --check compares it with docs/standins.md.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../pipelines/lib/setup.sh"

case ${1:-} in
    '' | --check) ;;
    *) fail 2 "usage: ${0##*/} [--check]" ;;
esac

need_packages build run runtimes test
need_rust
choose_profile debug
build -p standins -p standins-nvcuvid >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
cp "$profile_dir/libstandin_cuda.so" "$work/lib/libcuda.so.1"
cp "$profile_dir/libstandin_nvcuvid.so" "$work/lib/libnvcuvid.so.1"
unset GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0 G_DEBUG
export GST_REGISTRY=$work/registry XDG_RUNTIME_DIR=$work

# A few seconds of video take a blink; a program that is still at it after these seconds does not end.
readonly patience=6

# clip NAME FRAMES SIZE
clip() {
    ffmpeg -v error -f lavfi -i "testsrc2=size=$3:rate=25" -frames:v "$2" \
        -c:v libx264 -preset fast -bf 2 "$work/$1.h264" </dev/null
}

clip plain 120 320x180
clip small 30 320x180
clip large 30 480x270
cat "$work"/{large,small,large}.h264 >"$work/smaller.h264"
cat "$work"/{small,large,small}.h264 >"$work/larger.h264"

# verdict STATUS ERRORS: in a word or two.
verdict() {
    if (($1 == 137 && $2 > 1000)); then
        echo 'errors without end'
    elif (($1 == 137 && $2 > 0)); then
        echo 'error, does not end'
    elif (($1 == 137)); then
        echo 'hangs'
    elif (($1 != 0)); then
        echo 'error'
    elif (($2 > 0)); then
        echo "says $2 errors"
    else
        echo 'says nothing'
    fi
}

# with_ffmpeg CLIP FAULTS
with_ffmpeg() {
    local status=0 frames errors
    NVSTANDIN_FAULTS=$2 LD_LIBRARY_PATH=$work/lib timeout --signal=KILL "$patience" \
        ffmpeg -v error -c:v h264_cuvid -i "$work/$1.h264" -fps_mode passthrough -f framemd5 - \
        </dev/null >"$work/out" 2>"$work/err" || status=$?
    frames=$(grep -c '^0,' "$work/out" || true)
    # One line of FFmpeg's own a packet that failed.
    errors=$(grep -c 'Error while decoding' "$work/err" || true)
    echo "$frames, $(verdict "$status" "$errors")"
}

# with_gstreamer CLIP FAULTS
with_gstreamer() {
    local status=0 frames errors
    NVSTANDIN_FAULTS=$2 LD_LIBRARY_PATH=$work/lib timeout --signal=KILL "$patience" \
        gst-launch-1.0 -v filesrc "location=$work/$1.h264" ! h264parse ! nvh264dec ! \
        fakesink name=sink silent=false sync=false \
        </dev/null >"$work/out" 2>"$work/err" || status=$?
    frames=$(grep -c 'last-message = chain' "$work/out" || true)
    errors=$(cat "$work/out" "$work/err" | grep -c '^ERROR' || true)
    echo "$frames, $(verdict "$status" "$errors")"
}

# row WHAT CLIP FAULTS
row() {
    local faults=${3:-none}
    printf '| %s | %s | %s | %s |\n' "$1" "\`$faults\`" "$(with_ffmpeg "$2" "$3")" "$(with_gstreamer "$2" "$3")"
}

table() {
    echo "| event | \`NVSTANDIN_FAULTS\` | \`h264_cuvid\` | \`nvh264dec\` |"
    echo '| --- | --- | --- | --- |'
    row 'none, 120 pictures' plain ''
    row 'picture 60 is refused' plain 'fail-decode=60'
    row 'picture 60 is an error' plain 'status-error=60'
    row 'picture 60 is concealed' plain 'corrupt=60'
    row 'a smaller size and back, 90 pictures' smaller ''
    row 'a larger size and back, 90 pictures' larger ''
    row 'the device is lost at picture 30' plain 'device-lost=30'
    row 'the first three maps are refused' plain 'busy-with-sync=3'
    row 'decoding picture 60 never returns' plain 'decode-hang=60'
    row 'mapping picture 60 never returns' plain 'map-hang=60'
    row 'creating the decoder never returns' plain 'init-hang'
}

# settled: without the counts of programs that were ended from outside, which vary by a picture.
settled() {
    sed -E 's/[0-9]+, (hangs|errors without end|error, does not end)/\1/g'
}

table | tee "$work/table"
if [[ ${1:-} == --check ]]; then
    sed -n '/<!-- anchors -->/,/<!-- end of anchors -->/p' "$vmafx_root/docs/standins.md" | grep '^|' >"$work/documented"
    diff -u <(settled <"$work/documented") <(settled <"$work/table") || fail 1 "docs/standins.md has another table"
    say "docs/standins.md has this table"
fi
