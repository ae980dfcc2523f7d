// SPDX-License-Identifier: MPL-2.0

//! The example programs as a user calls them: what they print, and their exit statuses.

use std::path::Path;
use std::process::{Command, Stdio};

use standin_world::World;
use standin_world::child::finish;
use standin_world::libraries::example_program;

/// Exit status and everything that was said.
fn run(world: &World, example: &str, arguments: &[&str]) -> (i32, String) {
    let program = example_program("nvdecring-gpu", example);
    // The status goes through a shell, which `finish` does not tell apart.
    let mut command = Command::new("sh");
    command
        .args(["-c", "\"$0\" \"$@\"; echo status $?"])
        .arg(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    world.prepare(&mut command);
    let (_, text) = finish(command.spawn().expect("sh runs"));
    let status = text
        .lines()
        .filter_map(|line| line.strip_prefix("status "))
        .find_map(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{text}")), text)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

#[test]
fn decode_to_md5_prints_and_compares() {
    let world = World::new();
    let stream = test_streams::named("64x64-I-P-B-P.h264");
    let expected = stream.expected();
    let file = text(&stream.path);
    let (status, said) = run(&world, "decode_to_md5", &[file]);
    assert_eq!(status, 0, "{said}");
    for (at, sum) in expected.list().iter().enumerate() {
        assert!(
            said.contains(&format!("{sum} 64x64 packet")),
            "picture {at}: {said}"
        );
    }
    let list = format!("{file}.md5");
    let (status, said) = run(
        &world,
        "decode_to_md5",
        &[file, "--quiet", "--expect", &list],
    );
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("all 3 pictures are as expected"), "{said}");
    // The list of another stream.
    let other = test_streams::named("64x64-I-P.h264");
    let list = format!("{}.md5", text(&other.path));
    let (status, said) = run(&world, "decode_to_md5", &[file, "--expect", &list]);
    assert_eq!(status, 1, "{said}");
    let (status, said) = run(&world, "decode_to_md5", &[file, "--no-sums", "--quiet"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("3 pictures (0 damaged)"), "{said}");
}

#[test]
fn decode_to_md5_says_what_is_wrong() {
    let world = World::new();
    let stream = test_streams::named("test-25fps.h264");
    let (status, said) = run(
        &world,
        "decode_to_md5",
        &[text(&stream.path.with_extension("no"))],
    );
    assert_eq!(status, 2, "{said}");
    let (status, said) = run(&world, "decode_to_md5", &["/dev/null"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("the file is empty"), "{said}");
    let (status, said) = run(
        &world,
        "decode_to_md5",
        &[text(&stream.path), "--ring-depth", "17"],
    );
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("must be 1 to 16"), "{said}");

    let lossy = World::new().set("NVSTANDIN_FAULTS", "fail-decode=7");
    let (status, said) = run(&lossy, "decode_to_md5", &[text(&stream.path)]);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("lost: packet 7") && said.contains("damaged: References"),
        "{said}"
    );

    let bare = World::without_libraries();
    let (status, said) = run(&bare, "decode_to_md5", &[text(&stream.path)]);
    assert_eq!(status, 77, "{said}");
    assert!(said.contains("libcuda"), "{said}");
}

#[test]
fn the_probe_refuses_stand_ins_and_runs_on_them_on_request() {
    let world = World::new();
    let stream = test_streams::named("bear.h265");
    let other = test_streams::named("test-25fps.vp9");
    let (status, said) = run(&world, "nvdec_probe", &[text(&stream.path)]);
    assert_eq!(status, 3, "{said}");
    let arguments = ["--allow-stand-in", text(&stream.path), text(&other.path)];
    let (status, said) = run(&world, "nvdec_probe", &arguments);
    assert_eq!(status, 0, "{said}");
    for answer in [
        "caps H.264 8 bit: 1 engines",
        "pictures carry another packet's timestamp",
        "the second map fails: cuvidMapVideoFrame",
        "status of a shown picture, VP9: cuvidGetDecodeStatus: CUDA_ERROR_NOT_SUPPORTED",
        "reconfiguring it:",
    ] {
        assert!(said.contains(answer), "{answer}: {said}");
    }
    let (status, said) = run(
        &World::without_libraries(),
        "nvdec_probe",
        &[text(&stream.path)],
    );
    assert_eq!(status, 77, "{said}");
}
