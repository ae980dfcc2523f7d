#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Changes vmaf-motion's source, one place at a time, and tells which changes no test notices. Works in a clone below
# target/, on what is committed. Usage: tests/mutants.sh FILES TESTS...
#   FILES   below elements/vmaf-motion/src, as a pattern: summary.rs, 'sad/*.rs'
#   TESTS   test programs of vmaf-motion, of which one must fail: derivation, guard, ...; lib is the unit tests
# Status 0: every change that compiles is noticed; 2: some are not; 3: some hang.
set -euo pipefail
# shellcheck source=SCRIPTDIR/../pipelines/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../pipelines/lib/setup.sh"

(($# >= 2)) || fail 2 "usage: tests/mutants.sh FILES TESTS..., such as: tests/mutants.sh summary.rs lib"
files=$1
shift
need_rust
cargo mutants --version >/dev/null 2>&1 ||
    fail 3 "cargo-mutants is missing: cargo install --locked cargo-mutants"

folder=${CARGO_TARGET_DIR:-$vmafx_root/target}/mutants
mkdir -p "$folder"
tree=$folder/tree
if [[ -d $tree ]]; then
    git -C "$tree" fetch --quiet origin HEAD
    git -C "$tree" checkout --quiet --force --detach FETCH_HEAD
else
    git clone --quiet "$vmafx_root" "$tree"
fi
programs=()
for program in "$@"; do
    if [[ $program == lib ]]; then
        programs+=(-C=--lib)
    else
        [[ -e $tree/elements/vmaf-motion/tests/$program.rs ]] || fail 2 "vmaf-motion has no test program $program"
        programs+=(-C="--test=$program")
    fi
done

cd "$tree"
export CARGO_TARGET_DIR=$folder/target
say "cargo test -p vmaf-motion: ${programs[*]#-C=}"
profile=(-C=--config=profile.dev.package.vmaf-motion.opt-level=1 -C=--config=profile.dev.debug=0)
cargo test --quiet -p vmaf-motion "${profile[@]#-C=}" "${programs[@]#-C=}" >/dev/null || fail 1 "the tests fail without a change"
exec cargo mutants --package vmaf-motion --in-place --baseline skip --timeout 120 --output "$folder" \
    --file "elements/vmaf-motion/src/$files" "${profile[@]}" "${programs[@]}"
