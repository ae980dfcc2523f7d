// SPDX-License-Identifier: MPL-2.0

//! Clients that were not shaped to this runtime: Intel's tools, and a C program from the headers alone.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use std::path::{Path, PathBuf};
use std::process::Command;

use client::stage::{command, made, run, search_folder};
use test_streams::named;

/// Streams as files, with ffmpeg's checksums: name, argument of the tools, file, pictures.
fn streams(folder: &Path) -> Vec<(&'static str, PathBuf, Vec<String>)> {
    let mut streams = Vec::new();
    for (codec, name) in [("h264", "test-25fps.h264"), ("h265", "bear.h265")] {
        let stream = named(name);
        streams.push((
            codec,
            stream.path.clone(),
            stream.expected().list().to_vec(),
        ));
    }
    let (bytes, sums) = made(
        &["-c:v", "mpeg2video", "-bf", "2", "-q:v", "3"],
        "m2v",
        "nv12",
    );
    let file = folder.join("made.m2v");
    std::fs::write(&file, bytes).expect("a stream is written");
    streams.push(("mpeg2", file, sums));
    streams
}

/// The MD5 of each picture in a file of NV12 pictures.
fn sums(file: &[u8], pictures: usize) -> Vec<String> {
    assert!(
        pictures > 0 && file.len().is_multiple_of(pictures),
        "{} bytes",
        file.len()
    );
    file.chunks(file.len() / pictures)
        .map(|picture| format!("{:x}", md5::compute(picture)))
        .collect()
}

#[test]
fn vpl_inspect_lists_the_runtime_with_its_codecs() {
    let folder = search_folder();
    let said = run(command("vpl-inspect", folder.path(), ""), 60);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for part in [
        "ImplName: vplsoft",
        "Impl: MFX_IMPL_TYPE_SOFTWARE",
        "ApiVersion: 2.8",
        "CodecID: AVC",
        "CodecID: HEVC",
        "CodecID: AV1",
        "CodecID: VP9",
        "CodecID: VP8",
        "CodecID: MPG2",
        "CodecID: JPEG",
        "MFX_PROFILE_HEVC_MAIN10",
    ] {
        assert!(
            said.stdout.contains(part),
            "{part} is missing:\n{}",
            said.stdout
        );
    }
}

#[test]
fn sample_decode_writes_the_pictures_of_software() {
    let folder = search_folder();
    for (codec, file, expected) in streams(folder.path()) {
        let out = folder.path().join(format!("{codec}.nv12"));
        let mut tool = command("sample_decode", folder.path(), "");
        tool.args([codec, "-sw", "-i"])
            .arg(&file)
            .arg("-o")
            .arg(&out);
        let said = run(tool, 120);
        assert_eq!(
            said.code,
            Some(0),
            "{codec}: {}\n{}",
            said.stdout,
            said.stderr
        );
        let written = std::fs::read(&out).expect("the tool wrote pictures");
        assert_eq!(sums(&written, expected.len()), expected, "{codec}");
    }
}

#[test]
fn a_client_from_the_headers_alone_writes_the_pictures_of_software() {
    let folder = search_folder();
    let program = folder.path().join("client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client.c");
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-lvpl")
        .output()
        .expect("a C compiler (Debian: apt install gcc libc6-dev)");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    for (codec, file, expected) in streams(folder.path()) {
        let out = folder.path().join(format!("{codec}.nv12"));
        let mut client = command("/bin/sh", folder.path(), "");
        client.args(["-c", "\"$0\" \"$1\" \"$2\" > \"$3\""]);
        client.arg(&program).arg(codec).arg(&file).arg(&out);
        let said = run(client, 120);
        assert_eq!(said.code, Some(0), "{codec}: {}", said.stderr);
        let written = std::fs::read(&out).expect("the client wrote pictures");
        assert_eq!(sums(&written, expected.len()), expected, "{codec}");
    }
}
