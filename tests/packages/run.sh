#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Installs the Debian packages into a clean bookworm and tries them there: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/lib/setup.sh"

usage() {
    cat <<'END'
usage: tests/packages/run.sh [FOLDER]

Builds the packages (pipelines/packages.sh), or takes those in FOLDER, and installs them with apt into a clean
Debian 12 of its own, which goes away afterwards. There each plugin is inspected, a pipeline is run through
vmafxmotion, the tools read its scores, vplretrydec decodes a real stream with the installed vplsoft (where
the plugin is among the packages), and the packages are removed again without leaving a file.

Needs root and Debian's mirrors; about 2 minutes with the packages built.

Exit status: 0 everything works, 1 something does not, 2 wrong usage, 3 something is missing.
END
}

case ${1-} in
    -h | --help)
        usage
        exit 0
        ;;
esac
(($# <= 1)) || fail 2 "one folder, please"
(($(id -u) == 0)) || fail 3 "a clean Debian is made and entered as root"
need_packages chroot
need_rust

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages"
if (($# == 1)); then
    cp -- "$1"/*.deb "$work/packages/"
else
    "$vmafx_root/pipelines/packages.sh" "$work/packages"
fi
cp "$(test_streams)/src/codec/h264/test_data/test-25fps.h264" "$work/packages/stream.h264"
cp "$vmafx_root/tests/packages/in-chroot.sh" "$work/packages/"

log=$work/mmdebstrap.log
say "making a clean bookworm and installing into it"
status=0
# shellcheck disable=SC2016 # mmdebstrap's shell knows the folder
# format=null: nothing is kept of it. The checks are a hook in it.
mmdebstrap --variant=minbase --format=null --skip=cleanup/apt \
    --customize-hook="copy-in '$work/packages' /root" \
    --customize-hook='chroot "$1" bash /root/packages/in-chroot.sh' \
    bookworm >"$log" 2>&1 || status=$?
grep '^in-chroot: ' "$log" || true
if ((status != 0)) || ! grep -q '^in-chroot: everything works$' "$log"; then
    tail -n 40 "$log" >&2
    fail 1 "the packages do not work in a clean bookworm, see above"
fi
say "the packages install, work and go away again"
