// SPDX-License-Identifier: MPL-2.0

//! The table of invariants in `docs/nvdecring-core.md` names tests: each must exist and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // Only what stands directly below `#[test]`: an ignored test proves nothing.
            let mut lines = text.lines().map(str::trim).peekable();
            while let Some(line) = lines.next() {
                if line == "#[test]"
                    && let Some(name) = lines.peek().and_then(|next| next.strip_prefix("fn "))
                {
                    names.extend(name.split('(').next().map(str::to_owned));
                }
            }
        }
    }
}

#[test]
fn each_invariant_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/nvdecring-core.md")).unwrap();
    let mut tests = BTreeSet::new();
    tests_below(&root.join("src"), &mut tests);
    tests_below(&root.join("tests"), &mut tests);
    assert!(!tests.contains("every_wake_up_comes_with_a_stop_and_one_preemption"));

    let mut invariants = Vec::new();
    for line in page.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, number, _, proofs, _] = cells[..] else {
            continue;
        };
        if !number.starts_with('I') || number.len() > 3 {
            continue;
        }
        invariants.push(number.to_owned());
        let named: Vec<_> = proofs.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{number} names no test");
        for name in named {
            assert!(tests.contains(name), "{number}: there is no test {name}");
        }
    }
    let all: Vec<_> = (1..=12).map(|n| format!("I{n}")).collect();
    assert_eq!(invariants, all);
}
