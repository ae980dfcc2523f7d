// SPDX-License-Identifier: MPL-2.0

//! What the tests of the element share: a process of their own with the software runtime in the dispatcher's
//! path, pipelines, and what came out of them.

// Each test program uses its own part of it.
#![allow(dead_code)]

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use gst::prelude::*;
use onevpl_sys::{DirectRuntime, MfxStatus};
use test_streams::{Coding, Stream};

/// After this long a pipeline hangs. No test takes a fifth of it.
pub const LIMIT: Duration = Duration::from_secs(90);
/// No test program takes a third of it.
const CHILD_LIMIT: Duration = Duration::from_secs(400);
const CHILD: &str = "VPLRETRY_TEST_CHILD";

/// Initialises GStreamer and registers the plugin, once.
pub fn init() {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        gst::init().expect("GStreamer starts");
        gstvplretry::plugin_register_static().expect("the plugin registers");
    });
}

fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let profile = test.ancestors().nth(2);
    profile.expect("tests lie in PROFILE/deps").to_owned()
}

/// The built runtime. Fails where it is missing or older than what cargo made it of.
pub fn library() -> PathBuf {
    let library = profile_folder().join("libvplsoft.so");
    let time = |path: &Path| std::fs::metadata(path).and_then(|about| about.modified());
    let built = time(&library).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; run `cargo build -p vplsoft` first",
            library.display()
        )
    });
    let sources = std::fs::read_to_string(library.with_extension("d")).unwrap_or_default();
    for source in sources.split_ascii_whitespace().skip(1) {
        let changed = time(Path::new(source));
        assert!(
            changed.is_ok_and(|changed| changed <= built),
            "{} is older than {source}; run `cargo build -p vplsoft` first",
            library.display()
        );
    }
    library
}

/// A folder with the runtime alone, for the dispatcher's search.
pub fn search_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(library(), folder.path().join("libvplsoft.so")).expect("the runtime is copied");
    folder
}

/// How a child process is set up.
#[derive(Debug, Default, Clone)]
pub struct Child<'a> {
    pub faults: &'a str,
    /// The dispatcher finds no runtime.
    pub no_search: bool,
    pub folder: Option<&'a Path>,
    /// LD_LIBRARY_PATH.
    pub libraries: Option<&'a Path>,
    /// The runtime says that it is hardware.
    pub pose: bool,
}

/// Runs `body` in a process of its own that is this test again, with the runtime in the dispatcher's path.
pub fn in_child(test: &str, body: impl FnOnce()) {
    in_child_with(test, &Child::default(), body);
}

/// Whether this is the child.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

pub fn in_child_with(test: &str, setup: &Child<'_>, body: impl FnOnce()) {
    if is_child() {
        init();
        body();
        return;
    }
    let folder = search_folder();
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("G_DEBUG", "fatal_warnings")
        .env("RUST_BACKTRACE", "1")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("ONEVPL_PRIORITY_PATH")
        .env_remove("VPLSOFT_FAULTS")
        .env("ONEVPL_SEARCH_PATH", folder.path())
        .current_dir(setup.folder.unwrap_or_else(|| Path::new("/")))
        .stdin(Stdio::null());
    if std::env::var_os("GST_REGISTRY").is_none() {
        command.env("GST_REGISTRY", profile_folder().join("gst-registry.bin"));
    }
    if let Some(libraries) = setup.libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    if setup.pose {
        command.env("VPLSOFT_POSE", "hardware");
    }
    if setup.no_search {
        command.env_remove("ONEVPL_SEARCH_PATH");
    }
    if !setup.faults.is_empty() {
        command.env("VPLSOFT_FAULTS", setup.faults);
    }
    let said = run(command);
    assert!(
        said.contains("1 passed"),
        "no test is called {test}:\n{said}"
    );
    println!("{said}");
}

/// Runs a command; one that fails, or does not end in time, fails the test.
fn run(mut command: Command) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("said");
    let file = std::fs::File::create(&path).expect("a file is made");
    let copy = file.try_clone().expect("a file can be shared");
    let mut child = command
        .stdout(Stdio::from(file))
        .stderr(Stdio::from(copy))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let deadline = Instant::now() + CHILD_LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().expect("the child is killed");
            child.wait().expect("the child ends");
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = std::fs::read(&path).expect("the output is read");
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(
        status.is_some_and(|status| status.success()),
        "{status:?}\n{said}"
    );
    said
}

/// The very library that the dispatcher loads.
fn installed() -> &'static DirectRuntime {
    static INSTALLED: OnceLock<DirectRuntime> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let path = match std::env::var_os("ONEVPL_SEARCH_PATH") {
            Some(folder) => Path::new(&folder).join("libvplsoft.so"),
            None => library(),
        };
        DirectRuntime::open(&path).expect("the runtime loads")
    })
}

/// Surfaces that clients of the runtime hold.
pub fn live_surfaces() -> u32 {
    let address = installed()
        .extension("vplsoft_live_surfaces")
        .expect("the runtime exports it");
    // SAFETY: the runtime defines it so.
    let count: extern "C" fn() -> u32 = unsafe { std::mem::transmute(address) };
    count()
}

/// Sets the faults of the sessions that are opened next.
pub fn set_faults(text: &str) {
    let address = installed()
        .extension("vplsoft_set_faults")
        .expect("the runtime exports it");
    // SAFETY: the runtime defines it so.
    let set: unsafe extern "C" fn(*const std::ffi::c_char) -> MfxStatus =
        unsafe { std::mem::transmute(address) };
    let text = CString::new(text).expect("no zero in it");
    // SAFETY: a C string.
    assert_eq!(unsafe { set(text.as_ptr()) }, MfxStatus::ERR_NONE);
}

/// Waits until no surface is out: a session that was left behind frees its surfaces when its call returns.
pub fn assert_no_surfaces() {
    wait_for("surfaces are freed", || live_surfaces() == 0);
}

#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A decoded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Visible rows without padding, plane by plane.
    pub pixels: Vec<u8>,
    pub width: u32,
    pub height: u32,
    pub pts: Option<gst::ClockTime>,
    pub dts: Option<gst::ClockTime>,
    pub duration: Option<gst::ClockTime>,
    pub flags: gst::BufferFlags,
    pub fields: gst_video::VideoBufferFlags,
    pub caps: gst::Caps,
}

impl Frame {
    pub fn new(sample: &gst::Sample) -> Self {
        let buffer = sample.buffer().expect("a sample has a buffer");
        let caps = sample.caps_owned().expect("a sample has caps");
        let info = gst_video::VideoInfo::from_caps(&caps).expect("raw video");
        Self {
            pixels: pixels(buffer, &info),
            width: info.width(),
            height: info.height(),
            pts: buffer.pts(),
            dts: buffer.dts(),
            duration: buffer.duration(),
            flags: buffer.flags(),
            fields: gst_video::prelude::VideoBufferExt::video_flags(buffer),
            caps,
        }
    }

    pub fn md5(&self) -> String {
        format!("{:x}", md5::compute(&self.pixels))
    }
}

pub fn pixels(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Vec<u8> {
    use gst_video::VideoFrameExt;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
        .expect("a frame can be mapped");
    let format = info.format_info();
    let mut out = Vec::new();
    for plane in 0..frame.n_planes() {
        let component = (0..frame.n_components())
            .find(|&c| format.plane()[c as usize] == plane)
            .expect("a plane has a component");
        let stride = frame.plane_stride()[plane as usize] as usize;
        let bytes = frame.comp_width(component) as usize * frame.comp_pstride(component) as usize;
        let rows = frame.comp_height(component) as usize;
        let data = frame.plane_data(plane).expect("a plane");
        for row in 0..rows {
            out.extend_from_slice(&data[row * stride..row * stride + bytes]);
        }
    }
    out
}

/// What a pipeline gave.
#[derive(Debug, Default)]
pub struct Played {
    pub frames: Vec<Frame>,
    /// Text, and debug text.
    pub errors: Vec<(gst::glib::Error, String)>,
    pub warnings: Vec<String>,
    pub infos: Vec<String>,
    pub elements: Vec<gst::Structure>,
    pub eos: bool,
    pub stats: Option<gst::Structure>,
}

impl Played {
    pub fn stat(&self, name: &str) -> u64 {
        let stats = self.stats.as_ref().expect("the decoder is called dec");
        stats
            .get(name)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn md5s(&self) -> Vec<String> {
        self.frames.iter().map(Frame::md5).collect()
    }

    pub fn named(&self, name: &str) -> Vec<&gst::Structure> {
        self.elements.iter().filter(|s| s.name() == name).collect()
    }

    /// The one error there is.
    #[track_caller]
    pub fn error(&self) -> &gst::glib::Error {
        match &self.errors[..] {
            [] => panic!("no error: {self:?}"),
            [first, ..] => &first.0,
        }
    }

    /// Every access unit has one fate.
    #[track_caller]
    pub fn assert_accounts(&self) {
        let parts = ["frames", "dropped", "errored", "flushed", "without-picture"];
        let sum: u64 = parts.iter().map(|name| self.stat(name)).sum();
        assert_eq!(self.stat("frames-in"), sum, "{:?}", self.stats);
    }

    /// Ended without an error, with every frame.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.errors.is_empty(), "{:?}", self.errors);
        assert!(self.eos);
        self.assert_accounts();
        for name in ["dropped", "errored", "flushed", "unmatched"] {
            assert_eq!(self.stat(name), 0, "{name}: {:?}", self.stats);
        }
    }

    fn take(&mut self, message: &gst::Message) {
        match message.view() {
            gst::MessageView::Error(error) => self
                .errors
                .push((error.error(), error.debug().unwrap_or_default().to_string())),
            gst::MessageView::Warning(warning) => {
                self.warnings.push(warning.error().to_string());
            }
            gst::MessageView::Info(info) => self.infos.push(info.error().to_string()),
            gst::MessageView::Element(element) => {
                self.elements
                    .extend(element.structure().map(gst::StructureRef::to_owned));
            }
            gst::MessageView::Eos(_) => self.eos = true,
            _ => {}
        }
    }
}

/// A pipeline with an appsink called `out`.
pub struct Player {
    pub pipeline: gst::Pipeline,
    pub sink: gst_app::AppSink,
    pub played: Played,
}

impl Player {
    pub fn new(launch: &str) -> Self {
        init();
        let launch = format!("{launch} ! appsink name=out sync=false");
        let pipeline = gst::parse::launch(&launch)
            .unwrap_or_else(|error| panic!("{launch}: {error}"))
            .downcast::<gst::Pipeline>()
            .expect("a pipeline");
        let sink = pipeline.by_name("out").expect("an appsink");
        let pad = sink.static_pad("sink").expect("a sink pad");
        // An appsink of 1.22 cannot say that its application reads GstVideoMeta.
        pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, |_, info| {
            if let Some(gst::PadProbeData::Query(query)) = &mut info.data
                && let gst::QueryViewMut::Allocation(query) = query.view_mut()
            {
                query.add_allocation_meta::<gst_video::VideoMeta>(None);
                return gst::PadProbeReturn::Handled;
            }
            gst::PadProbeReturn::Ok
        });
        Self {
            sink: sink.downcast().expect("an appsink"),
            pipeline,
            played: Played::default(),
        }
    }

    /// Access units without times get those of 25 frames a second, in their order.
    pub fn stamp(self) -> Self {
        let pad = self.decoder().static_pad("sink").expect("a sink pad");
        let count = std::sync::atomic::AtomicU64::new(0);
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data {
                let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let buffer = buffer.make_mut();
                buffer.set_pts(gst::ClockTime::from_mseconds(40 * number));
                buffer.set_dts(gst::ClockTime::from_mseconds(40 * number));
                buffer.set_duration(gst::ClockTime::from_mseconds(40));
            }
            gst::PadProbeReturn::Ok
        });
        self
    }

    pub fn decoder(&self) -> gst::Element {
        self.pipeline
            .by_name("dec")
            .expect("the decoder is called dec")
    }

    /// Messages so far.
    pub fn read_bus(&mut self) {
        let bus = self.pipeline.bus().expect("a pipeline has a bus");
        while let Some(message) = bus.pop() {
            self.played.take(&message);
        }
    }

    pub fn play(&self) {
        // An error on the way is told on the bus.
        let _ = self.pipeline.set_state(gst::State::Playing);
    }

    /// Pulls until the end, an error, or that many frames.
    pub fn pull(&mut self, most: usize) {
        let deadline = Instant::now() + LIMIT;
        let mut pulled = 0;
        while pulled < most {
            self.read_bus();
            // What was pushed before an error waits in the appsink.
            let failed = !self.played.errors.is_empty();
            let patience = gst::ClockTime::from_mseconds(if failed { 0 } else { 20 });
            match self.sink.try_pull_sample(patience) {
                Some(sample) => {
                    self.played.frames.push(Frame::new(&sample));
                    pulled += 1;
                }
                // The message comes behind the last frame.
                None if self.played.eos || failed => break,
                None => assert!(Instant::now() < deadline, "the pipeline hangs"),
            }
        }
        self.read_bus();
    }

    /// Stops; how long that took.
    pub fn stop(&mut self) -> Duration {
        if let Some(decoder) = self.pipeline.by_name("dec") {
            self.played.stats = Some(decoder.property("stats"));
        }
        let started = Instant::now();
        self.pipeline
            .set_state(gst::State::Null)
            .expect("the pipeline stops");
        let took = started.elapsed();
        self.read_bus();
        took
    }

    /// From the beginning to the end.
    pub fn run(mut self) -> Played {
        self.play();
        self.pull(usize::MAX);
        self.stop();
        std::mem::take(&mut self.played)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// Plays a pipeline that ends before its appsink.
pub fn decode(launch: &str) -> Played {
    Player::new(launch).run()
}

/// The elements from a stream's file to its access units.
pub fn source(stream: &Stream) -> String {
    source_of(&stream.path, stream.coding)
}

pub fn source_of(path: &Path, coding: Coding) -> String {
    let parse = match coding {
        Coding::H264 => "h264parse",
        Coding::H265 => "h265parse",
        Coding::Vp8 => "ivfparse",
        Coding::Vp9 => "ivfparse ! vp9parse",
        Coding::Av1 => "ivfparse ! av1parse",
    };
    format!("filesrc location=\"{}\" ! {parse}", path.display())
}

/// A stream through the element with these properties.
pub fn through(stream: &Stream, properties: &str) -> Played {
    let source = source(stream);
    decode(&format!(
        "{source} ! vplretrydec name=dec implementation=software {properties}"
    ))
}

/// A stream that ffmpeg makes of its test picture.
pub fn encode(encoder: &str, options: &[&str], frames: u32, file: &Path) {
    let source = "testsrc2=size=320x180:rate=25";
    let mut command = Command::new("ffmpeg");
    command
        .args(["-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", source])
        .args(["-frames:v", &frames.to_string(), "-c:v", encoder])
        .args(options);
    if encoder == "libx265" {
        command.args(["-x265-params", "log-level=error"]);
    }
    let status = command
        .arg(file)
        .status()
        .expect("ffmpeg runs (Debian: apt install ffmpeg)");
    assert!(status.success(), "{command:?}");
}
