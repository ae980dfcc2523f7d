#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Times the motion kernels on real video: two streams of the cros-codecs package (250 pictures of 320x240;
# 500 of 640x360, whose changes of size are scaled away), and the first of them enlarged to 1920x1080 with
# grain, so that pictures do not fit the caches. Each is decoded once. Needs ffmpeg and 1.2 GB of disk in
# TMPDIR for a minute. Arguments go to vmaf-motion-bench: tests/campaigns/kernels-on-video.sh --check
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command -v ffmpeg >/dev/null || {
    echo "${0##*/}: ffmpeg is missing (Debian: apt install ffmpeg)" >&2
    exit 3
}
package=$(cargo metadata --format-version 1 --locked | tr ',' '\n' |
    sed -n 's|.*"manifest_path":"\(.*/cros-codecs-[0-9.]*\)/Cargo\.toml".*|\1|p')
[[ -d $package ]] || {
    echo "${0##*/}: cargo metadata names no cros-codecs package" >&2
    exit 3
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# decode STREAM FILTER NAME: to raw 8 bit 4:2:0.
decode() {
    local stream
    stream=$(find "$package" -name "$1" -print -quit)
    [[ -n $stream ]] || {
        echo "${0##*/}: $1 is not in $package" >&2
        exit 3
    }
    echo "${0##*/}: decoding $1 to $3" >&2
    ffmpeg -v error -nostdin -y -i "$stream" -vf "$2" -fps_mode passthrough -pix_fmt yuv420p \
        -f rawvideo "$folder/$3"
}

decode test-25fps.h264 null 320x240.raw
decode resolution_change_500frames-vp9.ivf scale=640:360 640x360.raw
decode test-25fps.h264 'scale=1920:1080:flags=lanczos,noise=alls=4:allf=t' 1920x1080.raw

cargo run --release --locked -p vmaf-motion --bin vmaf-motion-bench -- "$@" \
    --raw "$folder/320x240.raw" 320x240 8 \
    --raw "$folder/640x360.raw" 640x360 8 \
    --raw "$folder/1920x1080.raw" 1920x1080 8
