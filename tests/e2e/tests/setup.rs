// SPDX-License-Identifier: MPL-2.0

//! The scripts' set-up: which packages it wants, what it runs, what it stages. Programs that would
//! change the machine are replaced by ones that write down how they were called.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use e2e::{Finished, run, workspace_root};
use tempfile::TempDir;

/// A folder with programs that come before the machine's own, and room for what they note.
struct Machine(TempDir);

impl Machine {
    /// A machine whose Debian packages are all installed but `missing`.
    fn new(uid: u32, missing: &[&str]) -> Self {
        let machine = Self(tempfile::tempdir().expect("a temporary folder"));
        machine.program("id", &format!("echo {uid}"));
        let missing = missing.join("|");
        machine.program(
            "dpkg-query",
            &format!(
                r#"shift 2; status=0
                for package; do case "$package" in
                    {missing}none) echo "no packages found matching $package" >&2; status=1 ;;
                    *) echo "installed:$package" ;;
                esac; done; exit $status"#,
                missing = if missing.is_empty() {
                    String::new()
                } else {
                    missing + "|"
                }
            ),
        );
        machine.program("apt-get", r#"echo "$*" >> "$0.log"; wc -c >> "$0.log""#);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn program(&self, name: &str, body: &str) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/bash\n{body}\n")).expect("the folder is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours to change");
    }

    /// Runs a script that has sourced the set-up.
    fn bash(&self, script: &str) -> Finished {
        let setup = workspace_root().join("pipelines/lib/setup.sh");
        let path = std::env::var("PATH").expect("there is a search path");
        run(Command::new("bash")
            .args(["-c", &format!("set -euo pipefail; source \"$1\"; {script}")])
            .args(["quickstart.sh".as_ref(), setup.as_os_str()])
            .env("PATH", format!("{}:{path}", self.0.path().display()))
            .env_remove("VMAFX_NO_APT")
            .env_remove("VMAFX_PROFILE")
            .stdin(Stdio::null()))
    }

    /// How apt-get was called: a line of arguments, then the bytes on its standard input, each time.
    fn apt_calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("apt-get.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

const INSTALL: &str =
    "-o DPkg::Lock::Timeout=300 install -y --no-install-recommends pkg-config gstreamer1.0-libav";

#[test]
fn nothing_is_said_or_done_when_nothing_is_missing() {
    let machine = Machine::new(0, &[]);
    let done = machine.bash("need_packages build run test").success();
    assert_eq!((done.stdout, done.stderr), (String::new(), String::new()));
    assert!(machine.apt_calls().is_empty());
}

#[test]
fn root_gets_what_is_missing_installed_and_is_told_first() {
    let machine = Machine::new(0, &["pkg-config", "gstreamer1.0-libav"]);
    let done = machine.bash("need_packages build run").success();
    assert_eq!(
        machine.apt_calls(),
        ["-o DPkg::Lock::Timeout=300 update", "0", INSTALL, "0"]
    );
    assert!(
        done.stderr
            .contains("will be installed: pkg-config gstreamer1.0-libav\n"),
        "{done}"
    );
    assert!(
        done.stderr.contains(&format!("apt-get {INSTALL}\n")),
        "{done}"
    );
    assert_eq!(
        done.stdout, "",
        "standard output belongs to the scripts' results"
    );
}

#[test]
fn a_user_gets_the_exact_command_and_nothing_is_installed() {
    let machine = Machine::new(1000, &["pkg-config", "gstreamer1.0-libav"]);
    let done = machine.bash("need_packages build run").failure(3);
    let command =
        format!("sudo apt-get -o DPkg::Lock::Timeout=300 update && sudo apt-get {INSTALL}\n");
    assert!(done.stderr.contains(&command), "{done}");
    assert!(machine.apt_calls().is_empty());
}

#[test]
fn only_the_asked_purposes_count() {
    let machine = Machine::new(1000, &["python3-gst-1.0"]);
    machine.bash("need_packages build run").success();
    machine.bash("need_packages build run test").failure(3);
}

#[test]
fn a_failing_apt_get_stops_everything() {
    let machine = Machine::new(0, &["gcc"]);
    machine.program("apt-get", "exit 100");
    let done = machine.bash("need_packages build; echo went on").failure(3);
    assert!(done.stderr.contains("apt-get update failed"), "{done}");
    assert_eq!(done.stdout, "");
}

#[test]
fn packages_can_be_left_alone() {
    let machine = Machine::new(1000, &["gcc"]);
    machine
        .bash("VMAFX_NO_APT=1; need_packages build")
        .success();
}

#[test]
fn missing_rust_and_a_wrong_profile_are_said() {
    let machine = Machine::new(0, &[]);
    let done = machine
        .bash("PATH=/nowhere CARGO_HOME=/nowhere; need_rust")
        .failure(3);
    assert!(done.stderr.contains("https://rustup.rs"), "{done}");
    let done = machine
        .bash("VMAFX_PROFILE=bench; choose_profile release")
        .failure(2);
    assert!(done.stderr.contains("must be release or debug"), "{done}");
}

#[test]
fn the_profile_decides_the_folders() {
    let machine = Machine::new(0, &[]);
    for (profile, flag) in [("debug", ""), ("release", "--release")] {
        let done = machine
            .bash(&format!(
                r#"choose_profile {profile}; echo "$stage_dir ${{cargo_profile[*]}}""#
            ))
            .success();
        let end = format!("/{profile}/stage {flag}\n");
        assert!(done.stdout.ends_with(&end), "{done}");
    }
}

/// A workspace as the staging sees it: plugin folders, and a profile folder of built libraries.
struct Built(Machine);

impl Built {
    fn new() -> Self {
        let built = Self(Machine::new(0, &[]));
        for plugin in ["vmafxmotion", "vplsoft"] {
            built.file(&format!("plugins/{plugin}/Cargo.toml"), "");
        }
        built.file("debug/libgstvmafxmotion.so", "motion");
        built.file("debug/libvplsoft.so", "soft");
        built.file("debug/libstandin_cuda.so", "cuda");
        built
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.0.path(name);
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).expect("the folder is writable");
        fs::write(path, content).expect("the folder is writable");
    }

    fn stage_all(&self) -> Finished {
        let root = self.0.path("");
        self.0.bash(&format!(
            "vmafx_root='{0}' profile_dir='{0}debug' stage_dir='{0}debug/stage'; stage_all",
            root.display()
        ))
    }

    fn staged(&self, name: &str) -> PathBuf {
        self.0.path("debug/stage").join(name)
    }
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn plugins_and_runtimes_are_staged_apart() {
    let built = Built::new();
    built.stage_all().success();
    let expected = [
        ("gstreamer-1.0/libgstvmafxmotion.so", "motion"),
        ("vplsoft/libvplsoft.so", "soft"),
        ("standins/libcuda.so", "cuda"),
        ("standins/libcuda.so.1", "cuda"),
    ];
    for (name, text) in expected {
        assert_eq!(content(&built.staged(name)), text);
    }
    let plugins = fs::read_dir(built.staged("gstreamer-1.0")).expect("the folder is there");
    assert_eq!(plugins.count(), 1, "GStreamer scans this folder");
    assert!(!built.staged("standins/libnvcuvid.so").exists());
}

#[test]
fn a_rebuilt_library_is_staged_anew_and_keeps_its_time() {
    let built = Built::new();
    built.stage_all().success();
    let library = built.0.path("debug/libgstvmafxmotion.so");
    built.file("debug/libgstvmafxmotion.so", "newer");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options()
        .append(true)
        .open(&library)
        .expect("the library is there");
    file.set_modified(time).expect("the time can be set");
    built.stage_all().success();
    let staged = built.staged("gstreamer-1.0/libgstvmafxmotion.so");
    assert_eq!(content(&staged), "newer");
    let modified = fs::metadata(&staged).and_then(|about| about.modified());
    assert_eq!(modified.expect("files have times"), time);
}

#[test]
fn what_is_no_longer_built_leaves_the_stage() {
    let built = Built::new();
    built.file("debug/stage/gstreamer-1.0/libgstgone.so", "old");
    built.file(
        "debug/stage/gstreamer-1.0/libgstvmafxmotion.so.part",
        "torn",
    );
    built.stage_all().success();
    assert!(!built.staged("gstreamer-1.0/libgstgone.so").exists());
    assert!(
        !built
            .staged("gstreamer-1.0/libgstvmafxmotion.so.part")
            .exists()
    );
    assert!(built.staged("gstreamer-1.0/libgstvmafxmotion.so").exists());
}

#[test]
fn a_library_that_was_not_built_fails() {
    let built = Built::new();
    fs::remove_file(built.0.path("debug/libgstvmafxmotion.so")).expect("it was there");
    let done = built.stage_all();
    assert!(!done.status.success());
    assert!(done.stderr.contains("libgstvmafxmotion.so"), "{done}");
}
