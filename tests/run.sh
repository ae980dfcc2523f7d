#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Builds and stages the plugins, then runs every test of the workspace. Arguments go to `cargo test`
# in place of --workspace: tests/run.sh -p e2e --test quickstart
set -euo pipefail
# shellcheck source=SCRIPTDIR/../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../pipelines/lib/setup.sh"

(($# > 0)) || set -- --workspace

need_packages build run runtimes test
need_rust
choose_profile debug

say "building the workspace ($profile)"
build --workspace
say "staging the plugins in $stage_dir"
stage_all

# Tests see the staged plugins and Debian's, and nothing a user has elsewhere.
unset GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0
use_stage
export G_DEBUG=fatal_warnings RUST_BACKTRACE=1
for plugin in "$stage_dir"/gstreamer-1.0/*.so; do
    [[ -e $plugin ]] || fail 1 "no plugin was staged"
    # Also writes the registry, which the tests then only read.
    gst-inspect-1.0 "$plugin" >/dev/null || fail 1 "$plugin does not load"
done

say "running: cargo test --locked ${cargo_profile[*]} $*"
in_root cargo test --locked "${cargo_profile[@]}" "$@" </dev/null
say "all tests passed"
