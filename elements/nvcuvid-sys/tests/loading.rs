// SPDX-License-Identifier: MPL-2.0

//! What is said on a machine that lacks something, and that nothing panics there.

mod common;

use common::World;
use nvcuvid_sys::{Driver, LoadError, Nvcuvid};

/// The names under which a machine may have the driver.
fn no_driver() -> World {
    World::empty().rubbish("libcuda.so").rubbish("libcuda.so.1")
}

fn say_driver_error() {
    println!(
        "said: {}",
        Driver::load().expect_err("the driver cannot be used")
    );
}

#[test]
fn a_missing_driver_is_named_with_what_to_install() {
    let child = World::child(World::empty, || match Driver::load() {
        Err(error) => println!("said: {error}"),
        Ok(driver) => println!("found: {:?}", driver.path()),
    });
    let Some((world, said)) = child else { return };
    if said.contains("found: ") {
        // A machine with a driver: it is not one of ours.
        assert!(
            !said.contains(world.folder().to_str().expect("plain text")),
            "{said}"
        );
        return;
    }
    assert!(said.contains("libcuda.so.1 cannot be loaded"), "{said}");
    assert!(said.contains("install the NVIDIA driver"), "{said}");
    assert!(
        said.contains("No such file") || said.contains("no such file"),
        "{said}"
    );
}

#[test]
fn a_driver_that_cannot_be_loaded_is_told_with_the_loaders_reason() {
    let Some((_, said)) = World::child(no_driver, say_driver_error) else {
        return;
    };
    assert!(said.contains("libcuda.so.1 cannot be loaded"), "{said}");
    assert!(
        said.contains("file too short") || said.contains("invalid ELF"),
        "{said}"
    );
}

#[test]
fn a_driver_without_a_device_says_so() {
    for definition in ["INIT=100", "DEVICES=0"] {
        let world = || World::empty().cuda(&[definition]);
        let Some((_, said)) = World::child(world, say_driver_error) else {
            return;
        };
        assert!(said.contains("finds no device"), "{said}");
        assert!(said.contains("nvidia-smi"), "{said}");
        let reason = if definition == "INIT=100" {
            "CUDA_ERROR_NO_DEVICE (100)"
        } else {
            "counts 0"
        };
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_driver_that_is_too_old_says_which_is_needed_also_where_it_lacks_functions() {
    let world = || World::empty().cuda(&["VERSION=11020", "WITHOUT_EVENTS"]);
    let Some((_, said)) = World::child(world, say_driver_error) else {
        return;
    };
    assert!(
        said.contains("too old: it supports CUDA 11.2, and 11.4 is needed"),
        "{said}"
    );
    assert!(said.contains("driver 470 or newer"), "{said}");
}

#[test]
fn a_driver_without_a_function_is_refused_with_its_path_before_any_call() {
    let world = || World::empty().cuda(&["WITHOUT_EVENTS"]);
    let Some((world, said)) = World::child(world, say_driver_error) else {
        return;
    };
    assert!(said.contains("function cuEventCreate is missing"), "{said}");
    let path = world.folder().join("libcuda.so.1");
    assert!(said.contains(path.to_str().expect("plain text")), "{said}");
}

#[test]
fn the_toolkits_stub_and_a_mismatch_are_told_apart() {
    for (definition, advice) in [
        ("INIT=34", "toolkit's stub"),
        ("INIT=803", "reboot"),
        ("INIT=4711", "CUresult 4711"),
    ] {
        let world = || World::empty().cuda(&[definition]);
        let Some((_, said)) = World::child(world, say_driver_error) else {
            return;
        };
        assert!(said.contains("does not start (cuInit: "), "{said}");
        assert!(said.contains(advice), "{said}");
    }
}

#[test]
fn a_device_number_beyond_the_last_is_refused() {
    let world = || World::empty().cuda(&["DEVICES=2"]);
    let child = World::child(world, || {
        let driver = Driver::load().expect("the stub starts");
        assert_eq!(driver.version().to_string(), "12.2");
        let last = driver.device(1).expect("the second of two");
        assert_eq!(driver.device_name(last).expect("it has a name"), "Stub 41");
        for index in [2, u32::MAX] {
            let error = driver.device(index).expect_err("there are two");
            assert_eq!(error, LoadError::DeviceNumber { index, count: 2 });
        }
        let again = Driver::load().expect("as before");
        assert!(std::ptr::eq(driver, again));
        println!("path: {}", driver.path().expect("it has one").display());
    });
    let Some((world, said)) = child else { return };
    let path = world.folder().join("libcuda.so.1");
    assert!(
        said.contains(&format!("path: {}", path.display())),
        "{said}"
    );
}

#[test]
fn a_missing_libnvcuvid_is_named_with_what_to_install() {
    let world = || {
        let world = World::empty().cuda(&[]);
        world.rubbish("libnvcuvid.so.1").rubbish("libnvcuvid.so")
    };
    let child = World::child(world, || {
        Driver::load().expect("the driver itself is there");
        println!("said: {}", Nvcuvid::load().expect_err("it is no library"));
    });
    let Some((_, said)) = child else { return };
    assert!(said.contains("libnvcuvid.so.1 cannot be loaded"), "{said}");
    assert!(
        said.contains("file too short") || said.contains("invalid ELF"),
        "{said}"
    );
    assert!(
        said.contains("libnvcuvid1") && said.contains("NVIDIA_DRIVER_CAPABILITIES"),
        "{said}"
    );
}

#[test]
fn a_libnvcuvid_without_a_mandatory_function_is_refused_with_its_path() {
    let world = || World::empty().cuda(&[]).nvcuvid(&["WITHOUT_DECODER"]);
    let child = World::child(world, || {
        println!(
            "said: {}",
            Nvcuvid::load().expect_err("it makes no decoder")
        );
    });
    let Some((world, said)) = child else { return };
    assert!(
        said.contains("function cuvidCreateDecoder is missing"),
        "{said}"
    );
    let path = world.folder().join("libnvcuvid.so.1");
    assert!(said.contains(path.to_str().expect("plain text")), "{said}");
}

#[test]
fn a_libnvcuvid_without_the_optional_functions_is_usable() {
    for (definitions, optional) in [(&["WITHOUT_OPTIONAL"][..], false), (&[], true)] {
        let world = || {
            World::empty()
                .cuda(&[])
                .nvcuvid(definitions)
                .set("OPTIONAL", &optional.to_string())
        };
        let child = World::child(world, || {
            let nvcuvid = Nvcuvid::load().expect("it is usable");
            let optional = std::env::var("OPTIONAL").expect("it is set") == "true";
            assert_eq!(nvcuvid.has_decode_status(), optional);
            assert_eq!(nvcuvid.has_reconfigure(), optional);
            assert!(nvcuvid.extension("stub_last_answer").is_some());
            assert!(nvcuvid.extension("no_such_export").is_none());
            let again = Nvcuvid::load().expect("as before");
            assert!(std::ptr::eq(nvcuvid, again));
        });
        if child.is_none() {
            return;
        }
    }
}

#[test]
fn a_failure_is_not_remembered() {
    let child = World::child(no_driver, || {
        Driver::load().expect_err("rubbish");
        let folder = std::env::var("LD_LIBRARY_PATH").expect("it is set");
        for name in ["libcuda.so", "libcuda.so.1"] {
            std::fs::remove_file(format!("{folder}/{name}")).expect("it was written");
        }
        let library = World::empty().cuda(&[]);
        std::fs::copy(
            library.folder().join("libcuda.so.1"),
            format!("{folder}/libcuda.so.1"),
        )
        .expect("it is copied");
        Driver::load().expect("it is installed now");
    });
    drop(child);
}
