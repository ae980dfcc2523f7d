#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# One build of the plugins for every GStreamer from 1.22 to 1.28: builds them here, then runs the same
# files in fresh chroots of newer Debians, where only the software runtimes are built again (they follow
# libavcodec's ABI). The scores, and the pictures of each decoder, must be those of this machine.
#
# usage: tests/distributions/run.sh [trixie] [forky]
# Needs root, mmdebstrap, a Debian mirror and 4 GB in TMPDIR; 4 minutes for each. Not part of tests/run.sh.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/lib/setup.sh"

mirror=${VMAFX_MIRROR:-http://deb.debian.org/debian}
suites=("$@")
((${#suites[@]} > 0)) || suites=(trixie forky)
for suite in "${suites[@]}"; do
    case $suite in
        trixie | forky | sid) ;;
        *) fail 2 "usage: ${0##*/} [trixie] [forky] [sid]" ;;
    esac
done
(($(id -u) == 0)) || fail 3 "chroots need root"
command -v mmdebstrap >/dev/null || fail 3 "mmdebstrap is missing (Debian: apt install mmdebstrap)"
need_rust
need_packages build run runtimes
choose_profile release

say "building the workspace's plugins ($profile)"
build --workspace
stage_all
use_stage
streams=$(test_streams)
stream=$(find "$streams" -name test-25fps.h264 -print -quit)
[[ -n $stream ]] || fail 3 "test-25fps.h264 is not in $streams"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
cp "$stream" "$work/in.h264"

# What each GStreamer runs. Prints NAME and a checksum a line; a line of standard error says more.
cat >"$work/probe.sh" <<'PROBE'
set -euo pipefail
cd "$(mktemp -d)"
one() { # NAME FILE
    printf '%s %s\n' "$1" "$(md5sum <"$2" | cut -d' ' -f1)"
}
gst-inspect-1.0 --version | sed -n 2p >&2
gst-launch-1.0 -q videotestsrc num-buffers=40 pattern=ball ! video/x-raw,format=I420,width=320,height=240 \
    ! vmafxmotion n-stats-frames=12 scores-path=scores ! fakesink
one scores scores
gst-launch-1.0 -q filesrc location=/probe/in.h264 ! h264parse ! avdec_h264 ! videoconvert \
    ! video/x-raw,format=NV12 ! filesink location=software
one pictures software
if gst-inspect-1.0 vplretrydec >/dev/null; then
    ONEVPL_SEARCH_PATH=/probe/vplsoft gst-launch-1.0 -q filesrc location=/probe/in.h264 ! h264parse \
        ! vplretrydec implementation=software ! video/x-raw,format=NV12 ! filesink location=vpl
    one pictures vpl
fi
if gst-inspect-1.0 nvdecringdec >/dev/null; then
    LD_LIBRARY_PATH=/probe/standins gst-launch-1.0 -q filesrc location=/probe/in.h264 ! h264parse \
        ! nvdecringdec ! video/x-raw,format=NV12 ! filesink location=nv
    one pictures nv
fi
PROBE

# probe FOLDER: lays out what the probe needs as /probe of a root.
lay_out() {
    mkdir -p "$1/gstreamer-1.0" "$1/vplsoft" "$1/standins"
    cp "$stage_dir"/gstreamer-1.0/*.so "$1/gstreamer-1.0/"
    cp "$work/in.h264" "$work/probe.sh" "$1/"
}

# The plugins of this project, and no other folder, beside the distribution's.
run_probe() { # COMMAND... that runs bash in the root
    "$@" env -u GST_PLUGIN_PATH_1_0 GST_PLUGIN_PATH=/probe/gstreamer-1.0 GST_REGISTRY=/tmp/probe-registry.bin \
        bash /probe/probe.sh
}

say "this machine"
[[ ! -e /probe ]] || fail 3 "/probe exists; the probe wants that name"
lay_out /probe
trap 'rm -rf --one-file-system "$work" /probe /tmp/probe-registry.bin' EXIT
cp "$stage_dir/vplsoft/libvplsoft.so" /probe/vplsoft/
cp -d "$stage_dir"/standins/*.so* /probe/standins/ 2>/dev/null || true
rm -f /tmp/probe-registry.bin
run_probe env >"$work/here"
cat "$work/here"
# Every decoder gave the pictures of software.
[[ $(grep -c . "$work/here") -ge 2 && $(grep '^pictures' "$work/here" | sort -u | wc -l) == 1 ]] ||
    fail 1 "the decoders of this machine do not agree"
sort -u "$work/here" >"$work/expected"

rust_home=$(rustc --print sysroot)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
# Sources of the dependencies, so that the build in the chroot needs no network.
in_root cargo fetch --locked

for suite in "${suites[@]}"; do
    root=$work/$suite
    say "making a chroot of $suite"
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        --include=gstreamer1.0-tools,gstreamer1.0-plugins-base,gstreamer1.0-plugins-good \
        --include=gstreamer1.0-plugins-bad,gstreamer1.0-libav,libvpl2 \
        --include=gcc,libc6-dev,pkg-config,libavcodec-dev,libavutil-dev,libdav1d-dev,libclang-dev \
        "$suite" "$root" "$mirror"
    lay_out "$root/probe"
    mkdir -p "$root/src" "$root/rust" "$root/cargo"
    say "building the software runtimes in $suite"
    # The mounts live and die with this process.
    unshare -m bash -euo pipefail -c '
        root=$1
        mount --bind -o ro "$2" "$root/src"
        mount --bind -o ro "$3" "$root/rust"
        mount --bind "$4" "$root/cargo"
        mount -t proc proc "$root/proc"
        chroot "$root" env PATH=/rust/bin:/usr/bin:/bin CARGO_HOME=/cargo CARGO_TARGET_DIR=/target \
            sh -c "cd /src && cargo build --release --locked --offline $5"
    ' - "$root" "$vmafx_root" "$rust_home" "$cargo_home" "$(
        for crate in vplsoft standins standins-nvcuvid; do
            in_root cargo pkgid -p "$crate" >/dev/null 2>&1 && printf -- '-p %s ' "$crate"
        done
    )"
    cp "$root/target/release/libvplsoft.so" "$root/probe/vplsoft/"
    for library in cuda nvcuvid; do
        built=$root/target/release/libstandin_$library.so
        [[ -e $built ]] || continue
        cp "$built" "$root/probe/standins/lib$library.so.1"
        # A link: two copies would be two devices.
        ln -sfn "lib$library.so.1" "$root/probe/standins/lib$library.so"
    done
    say "$suite"
    run_probe unshare -m bash -c 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$root" >"$work/there"
    cat "$work/there"
    sort -u "$work/there" | diff "$work/expected" - ||
        fail 1 "$suite does not give what this machine gives"
    rm -rf --one-file-system "$root"
done
say "the same scores and pictures everywhere"
