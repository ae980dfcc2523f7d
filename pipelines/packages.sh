#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Builds Debian packages: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

usage() {
    cat <<'END'
usage: packages.sh [FOLDER]

Builds Debian packages for the distribution it runs on into FOLDER (target/debian), in place of the .deb files
there: one a plugin, vplsoft (the software oneVPL runtime, in a folder of its own), and vmafx-tools. Each
package's metadata stands in the Cargo.toml of its crate.

Debian packages and cargo-deb that are missing are installed first; cargo-deb takes some minutes to build.

Exit status: 0 done, 1 a package cannot be built, 2 wrong usage, 3 something is missing on this machine.
END
}

case ${1-} in
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        say "unknown option $1"
        usage >&2
        exit 2
        ;;
esac
(($# <= 1)) || fail 2 "one folder, please"

need_packages build runtimes package
need_rust
VMAFX_PROFILE=release
choose_profile release
folder=${1:-${profile_dir%/*}/debian}
mkdir -p -- "$folder" || fail 1 "cannot make the folder $folder"
folder=$(cd -- "$folder" && pwd)
if ! cargo deb --version >/dev/null 2>&1; then
    say "cargo-deb is missing and will be built: cargo install cargo-deb --version 3.8.0 --locked"
    cargo install cargo-deb --version 3.8.0 --locked ||
        fail 3 "cargo-deb cannot be installed, see above"
fi

# package_of FOLDER: the name of the cargo package that lies there.
package_of() {
    sed -n 's/^name = "\(.*\)"$/\1/p' "$1/Cargo.toml" | head -n 1
}

libraries=()
for manifest in "$vmafx_root"/plugins/*/Cargo.toml; do
    grep -q '^\[package\.metadata\.deb\]$' "$manifest" ||
        fail 1 "$manifest has no [package.metadata.deb]: what is its Debian package?"
    libraries+=("$(package_of "${manifest%/Cargo.toml}")")
done
# vmafx-live's package holds the other tools, too.
build "${libraries[@]/#/-p}" -p vmafx-live -p vmafx-scores -p score-file

rm -f -- "$folder"/*.deb
# pack PACKAGE [OPTION...]: what is built, stripped of its debug information.
pack() {
    in_root cargo deb --no-build --locked --strip --output "$folder" -p "$@"
}
for library in "${libraries[@]}"; do
    pack "$library" --multiarch=same
done
pack vmafx-live
say "the packages lie in $folder"
