// SPDX-License-Identifier: MPL-2.0

//! Where the runtime lies, child processes that use it, and streams made for a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The folder of this build: target/debug or target/release.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let deps = test.parent().expect("tests lie in deps");
    deps.parent()
        .expect("deps lies in the profile's folder")
        .to_owned()
}

/// The built runtime. Fails where it is missing or older than what it is made of.
pub(crate) fn library() -> PathBuf {
    let library = profile_folder().join("libvplsoft.so");
    let build = if library
        .parent()
        .is_some_and(|folder| folder.ends_with("release"))
    {
        "cargo build --release -p vplsoft"
    } else {
        "cargo build -p vplsoft"
    };
    let built = match std::fs::metadata(&library).and_then(|data| data.modified()) {
        Ok(time) => time,
        Err(error) => panic!("{}: {error}; run `{build}` first", library.display()),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in [
        "plugins/vplsoft/src",
        "elements/av-backend/src",
        "elements/elementary-stream/src",
        "elements/fault-script/src",
        "elements/onevpl-sys/src",
    ] {
        let changed = newest(&root.join(part));
        assert!(
            changed <= built,
            "{} is older than {part}; run `{build}` first",
            library.display()
        );
    }
    library
}

fn newest(folder: &Path) -> SystemTime {
    std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .flatten()
        .map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                newest(&path)
            } else {
                entry
                    .metadata()
                    .and_then(|data| data.modified())
                    .expect("files have times")
            }
        })
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A folder with the runtime alone, for the dispatcher's search.
pub(crate) fn search_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(library(), folder.path().join("libvplsoft.so")).expect("the runtime is copied");
    folder
}

/// A command whose oneVPL search finds the runtime in `folder` and nothing by the build's own paths.
pub(crate) fn command(
    program: impl AsRef<std::ffi::OsStr>,
    folder: &Path,
    faults: &str,
) -> Command {
    let mut command = Command::new(program);
    command
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("ONEVPL_PRIORITY_PATH")
        .env("ONEVPL_SEARCH_PATH", folder)
        .current_dir(folder);
    if faults.is_empty() {
        command.env_remove("VPLSOFT_FAULTS");
    } else {
        command.env("VPLSOFT_FAULTS", faults);
    }
    command
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command; one that does not end in time is killed and fails the test.
pub(crate) fn run(mut command: Command, seconds: u64) -> Said {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let file = |path: &Path| Stdio::from(std::fs::File::create(path).expect("a file is made"));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let text = |path: &Path| {
        String::from_utf8_lossy(&std::fs::read(path).expect("the output is read")).into_owned()
    };
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Said {
                code: status.code(),
                stdout: text(&out),
                stderr: text(&err),
            };
        }
        if Instant::now() > deadline {
            child.kill().expect("the child is killed");
            child.wait().expect("the child ends");
            panic!(
                "{command:?} did not end in {seconds} s\n{}\n{}",
                text(&out),
                text(&err)
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

const CHILD: &str = "VPLSOFT_TEST_CHILD";

/// Runs `body` in a process of its own that is this test again, with the runtime in the dispatcher's path.
pub(crate) fn in_child(test: &str, faults: &str, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        body();
        return;
    }
    let folder = search_folder();
    let mut child = command(
        std::env::current_exe().expect("the test's own path"),
        folder.path(),
        faults,
    );
    child
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1");
    let said = run(child, 240);
    assert_eq!(said.code, Some(0), "{}\n{}", said.stdout, said.stderr);
    assert!(
        said.stdout.contains("1 passed"),
        "no test is called {test}: {}",
        said.stdout
    );
    println!("{}", said.stdout);
}

/// Runs one test of this program, the body of an [`in_child`], under valgrind: it finds no error, and no
/// block of the runtime's that is lost. Says so where there is no valgrind.
pub(crate) fn under_valgrind(test: &str, environment: &[(&str, &str)]) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed (Debian: apt install valgrind)");
        return;
    }
    let folder = search_folder();
    let mut child = command("valgrind", folder.path(), "");
    child
        .arg(format!(
            "--suppressions={}/tests/valgrind.supp",
            env!("CARGO_MANIFEST_DIR")
        ))
        .args([
            "--error-exitcode=99",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
            "--keep-debuginfo=yes",
            "-q",
        ])
        .arg(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", test, "--test-threads=1"])
        .envs(environment.iter().copied())
        .env(CHILD, "1");
    let said = run(child, 600);
    assert_eq!(said.code, Some(0), "{}\n{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("1 passed"), "{}", said.stdout);
}

/// A stream that ffmpeg makes of its test picture, and ffmpeg's own MD5 of each decoded picture.
pub(crate) fn made(
    codec_options: &[&str],
    extension: &str,
    pixel_format: &str,
) -> (Vec<u8>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(format!("stream.{extension}"));
    let path = file.to_str().expect("a plain path");
    let mut arguments = vec![
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=190x142:rate=25",
        "-frames:v",
        "12",
    ];
    arguments.extend_from_slice(codec_options);
    arguments.push(path);
    ffmpeg(&arguments);
    let sums = md5_of(path, pixel_format);
    (std::fs::read(&file).expect("the stream is read"), sums)
}

/// ffmpeg's MD5 of each picture of a file. `:full` behind the pixel format keeps samples of full range.
pub(crate) fn md5_of(path: &str, pixel_format: &str) -> Vec<String> {
    let (pixel_format, range) = match pixel_format.strip_suffix(":full") {
        Some(format) => (format, "scale=in_range=full:out_range=full,"),
        None => (pixel_format, ""),
    };
    let filter = format!("{range}format={pixel_format}");
    let output = ffmpeg(&[
        "-i",
        path,
        "-vf",
        &filter,
        "-noautoscale",
        "-fps_mode",
        "passthrough",
        "-f",
        "framehash",
        "-hash",
        "md5",
        "-",
    ]);
    String::from_utf8_lossy(&output)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit(',').next())
        .map(|sum| sum.trim().to_owned())
        .collect()
}

/// Runs ffmpeg and gives what it wrote to its output.
fn ffmpeg(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y"])
        .args(arguments)
        .output()
        .expect("ffmpeg runs (Debian: apt install ffmpeg)");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
