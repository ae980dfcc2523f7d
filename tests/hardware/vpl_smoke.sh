#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# vplretrydec on a real Intel GPU: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/lib/setup.sh"

usage() {
    cat <<'END'
usage: vpl_smoke.sh

Decodes streams that it makes itself (48 frames of baseline H.264; a long group of pictures with B-frames in
H.264; H.265) on every Intel GPU of this machine with vplretrydec implementation=hardware, and compares every
byte with implementation=software. Runs one at a time on a machine: a second call waits.

  -h, --help                  print this
  VMAFX_PROFILE=debug         build without optimisation
  VMAFX_NO_APT=1              do not look at Debian's packages
  VMAFX_DRM=DIR               look for GPUs in DIR instead of /sys/class/drm

Exit status: 0 equal on every GPU, 1 not equal or not decoded, 2 wrong usage, 77 no Intel GPU that can be
opened (the reason is printed).
END
}

no_arguments "$@"

# intel_nodes: the render nodes of Intel GPUs that may be opened, one a line; says why others are not.
intel_nodes() {
    local entry node vendor
    for entry in "${VMAFX_DRM:-/sys/class/drm}"/renderD*; do
        [[ -e $entry/device/vendor ]] || continue
        vendor=$(<"$entry/device/vendor")
        node=/dev/dri/${entry##*/}
        if [[ $vendor != 0x8086 ]]; then
            say "$node is not Intel's (PCI vendor $vendor)"
        elif [[ ! -r $node || ! -w $node ]]; then
            say "$node may not be opened: is this user in the group render?"
        else
            printf '%s\n' "$node"
        fi
    done
}

mapfile -t nodes < <(intel_nodes)
if ((${#nodes[@]} == 0)); then
    say "skipped: this machine has no Intel render node that can be opened"
    exit 77
fi

need_packages build run runtimes test
need_rust
choose_profile release
build -p gst-plugin-vplretry -p vplsoft
stage vplretry vplsoft
use_stage
export G_DEBUG=fatal_warnings

exec 9>"$profile_dir/hardware.lock"
flock 9

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
film() {
    ffmpeg -v error -nostdin -y -f lavfi -i "testsrc2=size=$1:rate=25" -frames:v "$2" "${@:3}"
}
film 320x240 48 -c:v libx264 -profile:v baseline -pix_fmt yuv420p "$work/baseline.h264"
film 640x368 300 -c:v libx264 -g 1000 -bf 3 -pix_fmt yuv420p "$work/long.h264"
film 640x368 60 -c:v libx265 -x265-params log-level=error -pix_fmt yuv420p "$work/plain.h265"

# decode STREAM OUTPUT PROPERTY...: raw pictures, and the messages beside them.
decode() {
    local stream=$1 output=$2 parse=h264parse
    [[ $stream != *.h265 ]] || parse=h265parse
    timeout 300 gst-launch-1.0 -m filesrc location="$stream" ! $parse ! vplretrydec "${@:3}" \
        ! video/x-raw,format=NV12 ! filesink location="$output" >"$output.log" 2>&1
}

failed=0
for node in "${nodes[@]}"; do
    for stream in "$work"/*.h26?; do
        name="$node ${stream##*/}"
        if ! decode "$stream" "$work/hard" implementation=hardware render-device="$node"; then
            say "$name: not decoded"
            sed 's/^/    /' "$work/hard.log" >&2
            failed=1
            continue
        fi
        loaded=$(grep -o 'Decoding with .*' "$work/hard.log" | head -n 1)
        say "$name: $loaded"
        if [[ -z $loaded || $loaded == *libvplsoft* ]]; then
            say "$name: that is no hardware"
            failed=1
            continue
        fi
        decode "$stream" "$work/soft" implementation=software
        if cmp -s "$work/hard" "$work/soft"; then
            say "$name: every byte is equal"
        else
            say "$name: hardware and software differ: $(cmp "$work/hard" "$work/soft" 2>&1 || true)"
            failed=1
        fi
    done
done
exit "$failed"
