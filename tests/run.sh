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
# With VMAFX_SECOND_TRY a test program that fails runs once more by itself, and the first failure is told at
# the end: on a busy machine a foreign decoder, a browser or a process start may take longer than is waited for.
if [[ -z ${VMAFX_SECOND_TRY:-} ]]; then
    in_root cargo test --locked "${cargo_profile[@]}" "$@" </dev/null
else
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if ! in_root cargo test --locked --no-fail-fast "${cargo_profile[@]}" "$@" </dev/null 2>&1 | tee "$log"; then
        # cargo's list of what failed: `-p PACKAGE --test NAME`, a line each.
        mapfile -t failed < <(sed -n '/^error: [0-9]* targets\{0,1\} failed:/,$s/^ *`\(-p .*\)`$/\1/p' "$log")
        ((${#failed[@]} > 0 && ${#failed[@]} <= 3)) || fail 1 "tests failed, see above"
        for target in "${failed[@]}"; do
            say "failed, and runs once more: cargo test $target"
            read -ra arguments <<<"$target"
            in_root cargo test --locked "${cargo_profile[@]}" "${arguments[@]}" </dev/null
        done
        say "these failed at first and passed alone: ${failed[*]}"
    fi
fi
say "all tests passed"
