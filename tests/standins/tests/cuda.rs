// SPDX-License-Identifier: MPL-2.0

//! The libcuda stand-in, through this project's bindings and through a client of others.

#[path = "../../../elements/nvcuvid-sys/tests/common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use common::World;
use nvcuvid_sys::{Context, CuError, CuResult, Driver, Event, PinnedBuffer, Stream};

/// What memory holds that is not written yet.
const POISON: u8 = 0xdb;

fn standin() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.with_file_name("libstandin_cuda.so")
}

fn world() -> World {
    World::empty().library(&standin(), "libcuda.so.1")
}

/// An export of the stand-in, or of the driver beyond the bindings' table.
fn export<F: Copy>(name: &str) -> F {
    let driver = Driver::load().expect("the stand-in starts");
    let address = driver
        .extension(name)
        .unwrap_or_else(|| panic!("{name} is exported"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: each caller names the function with its type.
    unsafe { std::mem::transmute_copy(&address) }
}

fn mistakes() -> usize {
    export::<extern "C" fn() -> usize>("standin_cuda_mistakes")()
}

fn live() -> usize {
    export::<extern "C" fn() -> usize>("standin_cuda_live")()
}

fn context() -> Arc<Context> {
    let driver = Driver::load().expect("the stand-in starts");
    let device = driver.device(0).expect("it has a device");
    Context::retain_primary(driver, device).expect("it has a context")
}

/// Memory on the device.
struct Device {
    context: Arc<Context>,
    address: usize,
}

impl Device {
    fn new(context: &Arc<Context>, size: usize) -> Self {
        type Alloc = unsafe extern "C" fn(*mut usize, usize) -> CuResult;
        let alloc = export::<Alloc>("cuMemAlloc_v2");
        let mut address = 0;
        // SAFETY: the pointer is a local's.
        let allocate = || unsafe { alloc(&mut address, size) }.check("cuMemAlloc");
        context.with(allocate).expect("there is memory");
        Self {
            context: context.clone(),
            address,
        }
    }

    fn free(address: usize, context: &Context) -> Result<(), CuError> {
        let free = export::<extern "C" fn(usize) -> CuResult>("cuMemFree_v2");
        context.with(|| free(address).check("cuMemFree"))
    }

    fn fill(&self, value: u8, size: usize) {
        type Fill = extern "C" fn(usize, u8, usize, usize) -> CuResult;
        let fill = export::<Fill>("cuMemsetD8Async");
        let filled = self
            .context
            .with(|| fill(self.address, value, size, 0).check("cuMemsetD8Async"));
        filled.expect("it is filled");
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        Self::free(self.address, &self.context).expect("it was allocated");
    }
}

/// `cuMemcpyAsync`, which takes any two addresses.
fn copy(to: usize, from: usize, size: usize, stream: &Stream) -> Result<(), CuError> {
    type CopyAsync = extern "C" fn(usize, usize, usize, usize) -> CuResult;
    let copy = export::<CopyAsync>("cuMemcpyAsync");
    let raw = stream.raw().expose_provenance();
    stream
        .context()
        .with(|| copy(to, from, size, raw).check("cuMemcpyAsync"))
}

/// Waits for what happens by itself. The limit only ends a test that would hang.
fn until(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::yield_now();
    }
}

fn address(buffer: &mut PinnedBuffer) -> usize {
    buffer.as_mut_slice().as_mut_ptr().expose_provenance()
}

fn holds(buffer: &PinnedBuffer, value: u8) -> bool {
    buffer.as_slice().iter().all(|byte| *byte == value)
}

/// Holds a stream until it is opened: what is behind it in the stream has not begun.
struct Gate(&'static (Mutex<bool>, Condvar));

impl Gate {
    fn close(stream: &Stream) -> Self {
        type Launch =
            extern "C" fn(usize, extern "C" fn(&(Mutex<bool>, Condvar)), usize) -> CuResult;
        extern "C" fn wait(gate: &(Mutex<bool>, Condvar)) {
            let mut open = gate.0.lock().expect("nobody panics with it");
            while !*open {
                open = gate.1.wait(open).expect("nobody panics with it");
            }
        }
        let gate = Self(Box::leak(Box::default()));
        let launch = export::<Launch>("cuLaunchHostFunc");
        let raw = stream.raw().expose_provenance();
        let user = std::ptr::from_ref(gate.0).expose_provenance();
        let launched = stream
            .context()
            .with(|| launch(raw, wait, user).check("cuLaunchHostFunc"));
        launched.expect("it is put into the stream");
        gate
    }

    fn open(&self) {
        *self.0.0.lock().expect("nobody panics with it") = true;
        self.0.1.notify_all();
    }
}

#[test]
fn a_copy_is_late_and_its_target_poison_until_the_event() {
    let child = World::child(world, || {
        let context = context();
        let stream = Stream::new(&context).expect("a stream");
        let event = Event::new(&context).expect("an event");
        let device = Device::new(&context, 4096);
        device.fill(7, 4096);
        let synchronize = export::<extern "C" fn() -> CuResult>("cuCtxSynchronize");
        assert_eq!(
            context.with(|| synchronize().check("cuCtxSynchronize")),
            Ok(())
        );
        let mut buffer = PinnedBuffer::new(&context, 4096).expect("a buffer");
        let gate = Gate::close(&stream);
        copy(address(&mut buffer), device.address, 4096, &stream).expect("it starts");
        event.record(&stream).expect("it is recorded");
        assert!(holds(&buffer, POISON), "who does not wait reads poison");
        assert_eq!(event.is_reached(), Ok(false));
        gate.open();
        event.synchronize().expect("it ends");
        assert_eq!(event.is_reached(), Ok(true));
        assert!(holds(&buffer, 7));
        assert_eq!(mistakes(), 0);
    });
    drop(child);
}

#[test]
fn work_in_a_stream_keeps_its_order_and_a_stream_waits_for_anothers_event() {
    let child = World::child(
        || world().set("NVSTANDIN_COPY_US", "2000"),
        || {
            let context = context();
            let (first, second) = (
                Stream::new(&context).expect("a stream"),
                Stream::new(&context).expect("another"),
            );
            let event = Event::new(&context).expect("an event");
            let a = Device::new(&context, 512);
            let b = Device::new(&context, 512);
            let mut buffer = PinnedBuffer::new(&context, 512).expect("a buffer");
            let mut back = PinnedBuffer::new(&context, 512).expect("a buffer");
            for round in 1..20 {
                buffer.as_mut_slice().fill(round);
                // A chain in one stream: the poison of a later target never reaches an earlier copy.
                copy(a.address, address(&mut buffer), 512, &first).expect("it starts");
                copy(b.address, a.address, 512, &first).expect("it starts");
                copy(a.address, b.address, 512, &first).expect("it starts");
                event.record(&first).expect("it is recorded");
                second.wait_for(&event).expect("it waits");
                copy(address(&mut back), a.address, 512, &second).expect("it starts");
                second.synchronize().expect("it ends");
                assert!(holds(&back, round), "round {round}");
            }
            assert_eq!(mistakes(), 0);
        },
    );
    drop(child);
}

#[test]
fn what_a_client_does_wrong_is_an_error_and_counted() {
    let child = World::child(world, || {
        let context = context();
        let stream = Stream::new(&context).expect("a stream");
        let device = Device::new(&context, 512);
        let mut buffer = PinnedBuffer::new(&context, 512).expect("a buffer");
        let host = address(&mut buffer);
        let mut expected = 0;
        let mut wrong = |what: &str, answer: Option<CuResult>| {
            assert!(
                answer.is_some_and(|code| code != CuResult::SUCCESS),
                "{what}: {answer:?}"
            );
            expected += 1;
            assert_eq!(mistakes(), expected, "{what}");
        };
        let code = |result: Result<(), CuError>| result.err().map(|error| error.code);

        let alone = export::<extern "C" fn() -> CuResult>("cuCtxSynchronize");
        wrong("no context", Some(alone()));
        let pop = export::<extern "C" fn(usize) -> CuResult>("cuCtxPopCurrent_v2");
        wrong("an empty stack", Some(pop(0)));
        let push = export::<extern "C" fn(usize) -> CuResult>("cuCtxPushCurrent_v2");
        wrong("a context that never was", Some(push(0x1234)));
        wrong(
            "one byte too far",
            code(copy(host, device.address, 513, &stream)),
        );
        wrong(
            "a device's address on the host",
            code(copy(host, 0x1000_0000 + (1 << 56), 1, &stream)),
        );
        wrong(
            "memory that is not allocated",
            code(Device::free(device.address + 8, &context)),
        );
        let destroy = export::<extern "C" fn(usize) -> CuResult>("cuStreamDestroy_v2");
        let raw = Stream::new(&context)
            .expect("a stream")
            .raw()
            .expose_provenance();
        wrong("a stream that is gone", Some(destroy(raw)));
        let event = export::<extern "C" fn(usize) -> CuResult>("cuEventQuery");
        wrong(
            "an event that never was",
            code(context.with(|| event(0x77).check("cuEventQuery"))),
        );
        println!("done");
    });
    if let Some((_, said)) = child {
        assert!(said.contains("done"), "{said}");
    }
}

#[test]
fn memory_that_is_freed_under_a_copy_is_a_mistake_and_the_copy_ends_first() {
    let child = World::child(world, || {
        let context = context();
        let stream = Stream::new(&context).expect("a stream");
        let device = Device::new(&context, 512);
        let mut buffer = PinnedBuffer::new(&context, 512).expect("a buffer");
        let gate = Gate::close(&stream);
        copy(address(&mut buffer), device.address, 512, &stream).expect("it starts");
        let opener = std::thread::spawn(move || {
            until("the mistake is counted", || mistakes() > 0);
            gate.open();
        });
        drop(buffer);
        opener.join().expect("the mistake was counted");
        assert_eq!(mistakes(), 1);
        let query = export::<extern "C" fn(usize) -> CuResult>("cuStreamQuery");
        let raw = stream.raw().expose_provenance();
        assert_eq!(context.with(|| query(raw).check("cuStreamQuery")), Ok(()));
    });
    drop(child);
}

#[test]
fn in_strict_runs_the_first_mistake_ends_the_process() {
    const PROOF: &str = "STANDIN_STRICT_PROOF";
    let child = World::child(world, || {
        // A child of the child, because the end of a process is what is to be seen.
        let pop = || export::<extern "C" fn(usize) -> CuResult>("cuCtxPopCurrent_v2")(0);
        if std::env::var_os(PROOF).is_some() {
            pop();
            return;
        }
        let output = Command::new(std::env::current_exe().expect("the test's own path"))
            .args(std::env::args().skip(1))
            .env(PROOF, "1")
            .env("NVSTANDIN_STRICT", "1")
            .output()
            .expect("it runs");
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("cuCtxPopCurrent of an empty stack"),
            "{errors}"
        );
    });
    drop(child);
}

#[test]
fn a_lost_context_fails_every_call_and_another_one_works() {
    let child = World::child(world, || {
        let lost = context();
        let lose = export::<extern "C" fn(usize, u32)>("standin_cuda_lose_context");
        lose(lost.raw().expose_provenance(), CuResult::LAUNCH_FAILED.0);
        let error = Stream::new(&lost).expect_err("it is lost");
        assert_eq!(error.code, CuResult::LAUNCH_FAILED);
        assert!(PinnedBuffer::new(&lost, 1).is_err_and(|error| error.is_sticky()));
        drop(lost);
        Stream::new(&context()).expect("the primary context is a new one");
        assert_eq!(mistakes(), 0);
    });
    drop(child);
}

#[test]
fn nothing_is_left_when_every_owner_is_gone() {
    let child = World::child(world, || {
        let driver = Driver::load().expect("the stand-in starts");
        assert_eq!(
            driver.device_name(driver.device(0).expect("one")),
            Ok("Software stand-in".to_owned())
        );
        assert!(driver.device(1).is_err());
        for round in 0..50 {
            let context = if round % 2 == 0 {
                context()
            } else {
                Context::create(driver, driver.device(0).expect("one")).expect("a context")
            };
            let stream = Stream::new(&context).expect("a stream");
            let event = Event::new(&context).expect("an event");
            let device = Device::new(&context, 1 << 16);
            let mut buffer = PinnedBuffer::new(&context, 1 << 16).expect("a buffer");
            copy(device.address, address(&mut buffer), 1 << 16, &stream).expect("it starts");
            event.record(&stream).expect("it is recorded");
            assert_eq!(live(), 5);
            event.synchronize().expect("it ends");
        }
        assert_eq!(live(), 0);
        assert_eq!(mistakes(), 0);
        // The streams' threads end by themselves.
        let threads = || {
            std::fs::read_dir("/proc/self/task")
                .expect("this is Linux")
                .count()
        };
        until("the threads have ended", || threads() <= 3);
    });
    drop(child);
}

#[test]
fn every_name_that_ffmpegs_loader_insists_on_is_there() {
    let header = std::fs::read_to_string("/usr/include/ffnvcodec/dynlink_loader.h")
        .expect("NVIDIA's headers (Debian: apt install libffmpeg-nvenc-dev)");
    let names: Vec<&str> = header
        .lines()
        // Not those with _OPT, which it does without.
        .filter(|line| line.trim_start().starts_with("LOAD_SYMBOL("))
        .filter_map(|line| line.split('"').nth(1))
        .filter(|name| {
            name.strip_prefix("cu")
                .is_some_and(|rest| rest.starts_with(char::is_uppercase))
        })
        .filter(|name| !name.contains("D3D11"))
        .map(|name| &*String::leak(name.to_owned()))
        .collect();
    assert!(names.len() > 60, "only {} names were found", names.len());
    let child = World::child(world, || {
        let driver = Driver::load().expect("the stand-in starts");
        let missing: Vec<_> = names
            .iter()
            .filter(|name| driver.extension(name).is_none())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    });
    drop(child);
}

/// MD5 of ten frames that FFmpeg makes, by way of `filter`.
fn ffmpeg_md5(world: &World, filter: &str) -> String {
    let output = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-init_hw_device",
            "cuda=gpu",
            "-filter_hw_device",
            "gpu",
        ])
        .args([
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=322x182:r=10:d=1,format=nv12",
        ])
        .args(["-vf", filter, "-f", "md5", "-"])
        .env("LD_LIBRARY_PATH", world.folder())
        .env("NVSTANDIN_STRICT", "1")
        .output()
        .expect("ffmpeg (Debian: apt install ffmpeg)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ffmpeg_uploads_and_downloads_frames_through_it_unchanged() {
    let world = world();
    let direct = ffmpeg_md5(&world, "null");
    assert!(direct.starts_with("MD5="), "{direct}");
    assert_eq!(
        ffmpeg_md5(&world, "hwupload,hwdownload,format=nv12"),
        direct
    );
}
