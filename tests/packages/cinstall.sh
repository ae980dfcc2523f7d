#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Installs every plugin with cargo-c and tries it from there: see usage below.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../pipelines/lib/setup.sh"

usage() {
    cat <<'END'
usage: tests/packages/cinstall.sh

Installs every plugin with `cargo cinstall` into a folder of its own, as an administrator would below /usr, and
inspects its elements there with gst-inspect-1.0. Needs cargo-c (Debian 13: apt install cargo-c, else
cargo install --locked cargo-c); some minutes, for it builds everything anew.

Exit status: 0 every plugin works, 1 one does not, 2 wrong usage, 3 something is missing.
END
}

no_arguments "$@"
need_packages build run
need_rust
cargo cinstall --version >/dev/null 2>&1 || fail 3 "cargo cinstall is missing: see tests/packages/cinstall.sh --help"

destination=$(mktemp -d)
trap 'rm -rf -- "$destination"' EXIT
library=/usr/lib/$(uname -m)-linux-gnu
export GST_PLUGIN_PATH=$destination$library/gstreamer-1.0 GST_REGISTRY=$destination/registry.bin
unset GST_PLUGIN_PATH_1_0 GST_REGISTRY_1_0
count=0
for manifest in "$vmafx_root"/plugins/*/Cargo.toml; do
    grep -q '^\[package.metadata.capi' "$manifest" || continue
    package=$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)
    say "cargo cinstall -p $package"
    in_root cargo cinstall --locked --release -p "$package" --prefix=/usr --libdir="$library" --destdir="$destination"
    plugin=$GST_PLUGIN_PATH/lib${package/gst-plugin-/gst}.so
    [[ -e $plugin ]] || fail 1 "$package did not install ${plugin#"$destination"}"
    mapfile -t elements < <(gst-inspect-1.0 "$plugin" | sed -n 's/^  \([a-z]*\): .*/\1/p')
    ((${#elements[@]} > 0)) || fail 1 "$package has no element"
    for element in "${elements[@]}"; do
        [[ $(gst-inspect-1.0 "$element") == *"$plugin"* ]] || fail 1 "$element is not the installed one"
        say "${plugin#"$destination"}: $element"
    done
    count=$((count + 1))
done
((count >= 3)) || fail 1 "only $count plugins have metadata for cargo-c"
say "$count plugins are installed by cargo cinstall and are found"
