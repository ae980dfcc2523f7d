// SPDX-License-Identifier: MPL-2.0

//! Real streams, from the test data of the `cros-codecs` package.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::workspace_root;

static CROS_CODECS: LazyLock<PathBuf> = LazyLock::new(|| {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(workspace_root())
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "cros-codecs")
        .and_then(|package| package["manifest_path"].as_str())
        .expect("cros-codecs is a dependency of this package");
    PathBuf::from(manifest).with_file_name("src")
});

/// A test stream, such as `codec/h264/test_data/test-25fps.h264`.
///
/// # Panics
///
/// If the package has no such file.
pub fn stream(path: &str) -> PathBuf {
    let path = CROS_CODECS.join(path);
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// 250 frames of 320x240, H.264 in an Annex B byte stream.
pub fn h264() -> PathBuf {
    stream("codec/h264/test_data/test-25fps.h264")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_streams_are_there() {
        let bytes = std::fs::read(super::h264()).expect("the stream can be read");
        assert!(
            bytes.starts_with(&[0, 0, 0, 1]) || bytes.starts_with(&[0, 0, 1]),
            "an Annex B stream starts with a start code"
        );
    }
}
