// SPDX-License-Identifier: MPL-2.0

//! Child processes that find both stand-ins, streams, and a simple client.
#![allow(dead_code, reason = "each test program uses a part")]

#[path = "../../../../elements/nvcuvid-sys/tests/common/mod.rs"]
mod world;

pub mod client;
pub mod clips;
pub mod fields;

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use nvcuvid_sys::{Context, CuResult, Driver, Nvcuvid};
pub use world::World;

/// The folder of this build: target/debug or target/release.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let deps = test.parent().expect("tests lie in deps");
    deps.parent()
        .expect("deps lies in the profile's folder")
        .to_owned()
}

/// A built stand-in. Fails where it is missing or older than what it is made of.
fn library(name: &str, parts: &[&str]) -> PathBuf {
    let library = profile_folder().join(name);
    let build =
        "run `cargo build -p standins -p standins-nvcuvid` (with --release for a release) first";
    let built = match std::fs::metadata(&library).and_then(|data| data.modified()) {
        Ok(time) => time,
        Err(error) => panic!("{}: {error}; {build}", library.display()),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in parts {
        assert!(
            newest(&root.join(part)) <= built,
            "{} is older than {part}; {build}",
            library.display()
        );
    }
    library
}

fn newest(folder: &Path) -> SystemTime {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let times = entries.flatten().map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            newest(&path)
        } else {
            let data = entry.metadata().and_then(|data| data.modified());
            data.expect("files have times")
        }
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Both stand-ins on the library path.
pub fn world() -> World {
    let cuda = library("libstandin_cuda.so", &["tests/standins/src"]);
    let nvcuvid = library(
        "libstandin_nvcuvid.so",
        &[
            "tests/standins-nvcuvid/src",
            "elements/av-backend/src",
            "elements/elementary-stream/src",
            "elements/fault-script/src",
        ],
    );
    World::empty()
        .library(&cuda, "libcuda.so.1")
        .library(&nvcuvid, "libnvcuvid.so.1")
}

/// Runs `body` in a child that finds both stand-ins.
pub fn on_standins(body: impl FnOnce()) {
    drop(World::child(world, body));
}

/// As [`on_standins`], with environment variables.
pub fn on_standins_with(environment: &[(&'static str, &str)], body: impl FnOnce()) {
    let world = || {
        let with = |world: World, (name, value): &(&'static str, &str)| world.set(name, value);
        environment.iter().fold(world(), with)
    };
    drop(World::child(world, body));
}

fn export_of<F: Copy>(address: Option<*mut std::ffi::c_void>, name: &str) -> F {
    let address = address.unwrap_or_else(|| panic!("{name} is exported"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: each caller names the function with its type.
    unsafe { std::mem::transmute_copy(&address) }
}

/// An export of the libcuda stand-in.
pub fn cuda_export<F: Copy>(name: &str) -> F {
    let driver = Driver::load().expect("the stand-in starts");
    export_of(driver.extension(name), name)
}

/// An export of the libnvcuvid stand-in.
pub fn export<F: Copy>(name: &str) -> F {
    export_of(nvcuvid().extension(name), name)
}

pub fn nvcuvid() -> &'static Nvcuvid {
    Nvcuvid::load().expect("the stand-in is complete")
}

pub fn mistakes() -> usize {
    let here = export::<extern "C" fn() -> usize>("standin_nvcuvid_mistakes")();
    let all = cuda_export::<extern "C" fn() -> usize>("standin_cuda_mistakes")();
    assert!(here <= all, "libcuda counts every mistake");
    all
}

pub fn overwritten() -> usize {
    export::<extern "C" fn() -> usize>("standin_nvcuvid_overwritten")()
}

/// Parsers, decoders and mapped surfaces, and what libcuda has.
pub fn live() -> (usize, usize) {
    let here = export::<extern "C" fn() -> usize>("standin_nvcuvid_live")();
    let cuda = cuda_export::<extern "C" fn() -> usize>("standin_cuda_live")();
    (here, cuda)
}

/// Sets the faults of what is created from now on.
pub fn set_faults(text: &str) -> CuResult {
    let set: unsafe extern "C" fn(*const std::ffi::c_char) -> CuResult =
        export("standin_nvcuvid_set_faults");
    let text = CString::new(text).expect("no zero byte");
    // SAFETY: the text is a C string.
    unsafe { set(text.as_ptr()) }
}

pub fn context() -> Arc<Context> {
    let driver = Driver::load().expect("the stand-in starts");
    let device = driver.device(0).expect("it has a device");
    Context::retain_primary(driver, device).expect("it has a context")
}
