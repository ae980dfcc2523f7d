#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# What tests/packages/run.sh does inside the clean Debian. Nothing of the project is here but the packages.
set -euo pipefail
cd /root/packages
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root

say() {
    printf 'in-chroot: %s\n' "$*"
}

fail() {
    say "FAILED: $*"
    exit 1
}

names=()
for deb in ./*.deb; do
    names+=("$(dpkg-deb -f "$deb" Package)")
done
say "packages: ${names[*]}"
has() {
    [[ " ${names[*]} " == *" $1 "* ]]
}
for name in gstreamer1.0-vmafxmotion vplsoft vmafx-tools; do
    has "$name" || fail "no package $name"
done

extra=(gstreamer1.0-tools)
# h264parse.
! has gstreamer1.0-vplretry || extra+=(gstreamer1.0-plugins-bad)
apt-get update -q
apt-get install -q -y --no-install-recommends ./*.deb "${extra[@]}"
mapfile -t files < <(dpkg -L "${names[@]}" | sort -u)

for file in "${files[@]}"; do
    [[ -f $file && ($file == *.so || $file == /usr/bin/*) ]] || continue
    missing=$(ldd "$file" | grep 'not found' || true)
    [[ -z $missing ]] || fail "$file lacks $missing"
done

elements=(vmafxmotion)
! has gstreamer1.0-vplretry || elements+=(vplretrydec)
! has gstreamer1.0-nvdecring || elements+=(nvdecringdec)
for element in "${elements[@]}"; do
    inspected=$(gst-inspect-1.0 "$element") || fail "gst-inspect-1.0 $element"
    # /lib is a link to /usr/lib.
    file=$(realpath "$(sed -n 's/^  Filename  *//p' <<<"$inspected")")
    say "$element: $file"
    [[ $file == /usr/lib/*-linux-gnu/gstreamer-1.0/* ]] || fail "$element lies in $file"
done
refused=$(gst-inspect-1.0 -b)
[[ $refused == *'Total count: 0 '* ]] || fail "GStreamer refuses a file: $refused"

runtime=$(printf '%s\n' "${files[@]}" | grep '/libvplsoft\.so$')
[[ $runtime == /usr/lib/*-linux-gnu/vplsoft/libvplsoft.so ]] || fail "the runtime lies in $runtime"
cache=$(ldconfig -p)
[[ $cache != *libvplsoft* ]] || fail "the linker finds the runtime"

gst-launch-1.0 -q videotestsrc num-buffers=50 pattern=ball \
    ! video/x-raw,format=I420,width=320,height=180,framerate=25/1 \
    ! vmafxmotion n-stats=0.5 scores-path=/tmp/scores.ndjson ! fakesink || fail "a pipeline with vmafxmotion"
frames=$(grep -c '"type":"frame"' /tmp/scores.ndjson)
((frames == 50)) || fail "$frames of 50 frames were scored"
table=$(vmafx-scores table /tmp/scores.ndjson) || fail "vmafx-scores table"
say "$(head -n 1 <<<"$table")"
vmafx-live --listen 127.0.0.1:0 --linger 0 --stdin </tmp/scores.ndjson 2>/tmp/said || fail "vmafx-live: $(cat /tmp/said)"
score-file --help >/dev/null || fail "score-file --help"

if has gstreamer1.0-vplretry; then
    gst-launch-1.0 -q filesrc location=stream.h264 ! h264parse ! vplretrydec implementation=software \
        ! vmafxmotion scores-path=/tmp/decoded.ndjson ! fakesink || fail "vplretrydec with the installed vplsoft"
    frames=$(grep -c '"type":"frame"' /tmp/decoded.ndjson)
    ((frames == 250)) || fail "vplretrydec gave $frames of 250 frames"
    say "vplretrydec decoded $frames frames with vplsoft"
fi

apt-get purge -q -y "${names[@]}"
for file in "${files[@]}"; do
    [[ ! -f $file ]] || fail "$file is still there"
done
say "everything works"
