#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Compares the pictures of this project's decoders with a software decoder's: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=SCRIPTDIR/lib/script.sh
source "$vmafx_root/pipelines/lib/script.sh"

usage() {
    cat <<'END'
usage: compare-decoders.sh [VIDEO]

Decodes VIDEO (without: a real VP9 stream) with a software decoder of GStreamer, then with vplretrydec and
nvdecringdec where this machine can run them, and compares the MD5 of all pictures. Without an Intel GPU
vplretrydec runs on the software runtime that comes with it; nvdecringdec needs an NVIDIA GPU.

Exit status: 0 at least one was compared and all are equal, 1 a difference or a VIDEO that cannot be decoded,
2 wrong usage, 3 something is missing on this machine, such as every decoder that could be compared.
END
}

read_arguments 0 1 "$@"
file=${arguments[0]-}
[[ -z ${arguments[0]+set} ]] || check_file "$file"
prepare run
prepare_nvdecring
file=$(easy_name "${file:-$(example_video)}")

# checksum PIPELINE...: MD5 of all pictures; planes are summed in I420's order, whatever the format.
checksum() {
    launch -m "$@" ! videocodectestsink 2>"$work_dir/error" |
        sed -n 's/.*conformance\/checksum, checksum-type=(string)MD5, checksum=(string)\([0-9a-f]*\).*/\1/p'
}

expected=$(checksum filesrc location="$file" ! decodebin force-sw-decoders=true) || true
[[ -n $expected ]] || fail 1 "$file cannot be decoded in software: $(head -n 1 "$work_dir/error")"
read_coded "$file"
printf '%-14s %s\n' software "$expected"
compared=0
different=0
for decoder in vplretrydec nvdecringdec; do
    reason=$(why_not "$decoder")
    if [[ -n $reason ]]; then
        printf '%-14s not on this machine: %s\n' "$decoder" "$reason"
        continue
    fi
    compared=$((compared + 1))
    sum=$(checksum "${coded[@]}" ! "$decoder") || true
    if [[ $sum == "$expected" ]]; then
        printf '%-14s %s  equal\n' "$decoder" "$sum"
    else
        different=$((different + 1))
        printf '%-14s %s  DIFFERENT %s\n' "$decoder" "${sum:-none}" "$(head -n 1 "$work_dir/error")"
    fi
done
((different == 0)) || exit 1
((compared > 0)) || fail 3 "no decoder could be compared on this machine"
