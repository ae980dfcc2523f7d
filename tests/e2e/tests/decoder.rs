// SPDX-License-Identifier: MPL-2.0

//! `vplretrydec` as it is installed: a staged plugin with its runtime in the folder beside, a programme that
//! knows nothing of it, and the script for real GPUs where there is none.

use e2e::{Stage, command, run, workspace_root};
use test_streams::named;

#[test]
fn the_staged_plugin_finds_the_runtime_beside_it() {
    let stage = Stage::fresh(&["vplretry"]);
    let stream = named("test-25fps.h264");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("out.nv12");
    let pipeline = format!(
        "filesrc location={} ! h264parse ! vplretrydec ! video/x-raw,format=NV12 ! filesink location={}",
        stream.path.display(),
        output.display()
    );
    let mut launch = command(&stage, "gst-launch-1.0");
    let done = run(launch
        .env_remove("ONEVPL_SEARCH_PATH")
        .env_remove("ONEVPL_PRIORITY_PATH")
        .current_dir(folder.path())
        .args(pipeline.split_whitespace()))
    .success();
    let said = done
        .stdout
        .lines()
        .find(|line| line.contains("Decoding with"));
    let said = said.unwrap_or_else(|| panic!("{done}"));
    assert!(said.contains("stage/vplsoft/libvplsoft.so"), "{said}");
    let pictures = std::fs::read(&output).expect("pictures were written");
    let expected = stream.expected();
    let size = stream.size.0 * stream.size.1 * 3 / 2;
    let sums: Vec<String> = pictures
        .chunks(size)
        .map(|picture| expected.checksum(picture))
        .collect();
    assert_eq!(sums, expected.list());
}

#[test]
fn inspection_shows_the_element_without_a_runtime() {
    let stage = Stage::fresh(&["vplretry"]);
    let done = run(command(&stage, "gst-inspect-1.0").arg("vplretrydec")).success();
    for text in [
        "none (0)",
        "Codec/Decoder/Video/Hardware",
        "retry-timeout",
        "allow-cwd-runtime",
        "implementation-name",
    ] {
        assert!(done.stdout.contains(text), "{text}: {done}");
    }
}

#[test]
fn the_script_for_gpus_skips_where_there_is_none() {
    let stage = Stage::fresh(&[]);
    let script = workspace_root().join("tests/hardware/vpl_smoke.sh");
    let empty = tempfile::tempdir().expect("a temporary folder");
    let done = run(command(&stage, &script).env("VMAFX_DRM", empty.path())).failure(77);
    assert!(done.stderr.contains("no Intel render node"), "{done}");
    // A GPU of another vendor is named.
    let device = empty.path().join("renderD128/device");
    std::fs::create_dir_all(&device).expect("a folder is made");
    std::fs::write(device.join("vendor"), "0x10de\n").expect("a file is written");
    let done = run(command(&stage, &script).env("VMAFX_DRM", empty.path())).failure(77);
    assert!(done.stderr.contains("not Intel's"), "{done}");
    run(command(&stage, &script).arg("--nonsense")).failure(2);
    run(command(&stage, &script).arg("--help")).success();
}
