#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# NVDEC on a real device: libraries, capabilities, what the documentation leaves open, real streams with the MD5
# of every picture, timings of the ring against a display delay, and the element where GStreamer is there.
#
#   tests/hardware/nvdec_smoke.sh [RECORD]
#
# Writes what it finds to RECORD (nvdec_smoke.txt in the target folder). Takes less than two minutes after the
# build. Exit status: 0 all is well, 1 a step failed (each is named), 3 the libraries are stand-ins, 77 there is
# no NVDEC here, with the reason.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/lib/setup.sh"

need_rust
choose_profile release

say "building"
build --quiet -p nvdecring-gpu --examples
record=${1:-$profile_dir/nvdec_smoke.txt}
streams=$(test_streams)/src/codec
examples=$profile_dir/examples
: >"$record"
failed=()

# note TEXT...: a line of the record, and on the terminal.
note() {
    printf '%s\n' "$*" | tee -a "$record"
}

# step NAME COMMAND...: runs it, with its output in the record.
step() {
    local name=$1 status=0
    shift
    note "== $name"
    "$@" 2>&1 | tee -a "$record" || status=${PIPESTATUS[0]}
    note "-- $name: exit status $status"
    ((status == 0)) || failed+=("$name")
    return 0
}

note "date: $(date -u +%FT%TZ)"
note "system: $(uname -srm)"
command -v nvidia-smi >/dev/null && step "nvidia-smi" nvidia-smi -L

note "== probe"
status=0
"$examples/nvdec_probe" "$streams/h264/test_data/64x64-I-P-B-P-high.h264" 2>&1 >>"$record" |
    tee -a "$record" >&2 || status=${PIPESTATUS[0]}
case $status in
    3) fail 3 "the NVIDIA libraries on the library path are this project's stand-ins" ;;
    77) fail 77 "there is no NVDEC here; the reason stands above" ;;
esac

# A stream with B-frames of some length answers more than three pictures do, where an encoder is there.
frames=$(mktemp -d)
trap 'rm -rf "$frames"' EXIT
probe=$streams/h265/test_data/bear.h265
if command -v ffmpeg >/dev/null; then
    ffmpeg -hide_banner -loglevel error -nostdin -f lavfi -i testsrc2=size=1920x1080:rate=30 -frames:v 120 \
        -c:v libx264 -pix_fmt yuv420p -bf 3 "$frames/b.h264" && probe=$frames/b.h264
fi
step "open questions" "$examples/nvdec_probe" "$probe" "$streams/vp9/test_data/test-25fps.vp9"

# check STREAM [LIST]: decodes and compares with the package's list. A codec that the device lacks is said, and is
# no failure.
check() {
    local file=$streams/$1 list=${2:-md5} status=0
    note "== $1"
    "$examples/decode_to_md5" "$file" --quiet --expect "$file.$list" --decode-timeout 5000 >>"$record" 2>&1 ||
        status=$?
    tail -n 2 "$record"
    case $status in
        0) ;;
        2) note "-- $1: not decoded by this device" ;;
        *) failed+=("$1") ;;
    esac
}

for stream in h264/test_data/test-25fps.h264 h264/test_data/test-25fps-interlaced.h264 \
    h264/test_data/64x64-I-P-B-P-high.h264 h265/test_data/test-25fps.h265 h265/test_data/bear.h265 \
    vp8/test_data/test-25fps.vp8 vp9/test_data/test-25fps.vp9 \
    vp9/test_data/vp90-2-10-show-existing-frame.vp9.ivf av1/test_data/test-25fps.ivf.av1; do
    check "$stream"
done

for settings in "--ring-depth 1 --delay 0" "--ring-depth 8 --delay 0" "--ring-depth 1 --delay 4"; do
    # shellcheck disable=SC2086 # two options each
    step "time with $settings" "$examples/decode_to_md5" "$probe" --quiet --no-sums $settings
done

if command -v gst-launch-1.0 >/dev/null; then
    build --quiet -p gst-plugin-nvdecring
    stage nvdecring
    use_stage
    file=$streams/h264/test_data/test-25fps.h264
    sums=$frames/sums
    note "== nvdecringdec"
    # One file a picture, so that each can be summed.
    if gst-launch-1.0 -q filesrc location="$file" ! h264parse ! nvdecringdec ! \
        multifilesink location="$frames/picture-%05d" >>"$record" 2>&1; then
        for picture in "$frames"/picture-*; do
            md5sum <"$picture" | cut -d' ' -f1
        done >"$sums"
        if cmp -s "$sums" <(tr -s ' \n' '\n' <"$file.md5"); then
            note "all $(wc -l <"$sums") pictures of the element are as expected"
        else
            failed+=("nvdecringdec: pictures differ")
        fi
    else
        failed+=("nvdecringdec: the pipeline fails")
    fi
else
    note "GStreamer is not installed: the element was not tried"
fi

if ((${#failed[@]} > 0)); then
    note "failed: $(printf '%s; ' "${failed[@]}")"
    exit 1
fi
note "all is well"
say "the record is $record"
