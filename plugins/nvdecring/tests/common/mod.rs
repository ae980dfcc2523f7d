// SPDX-License-Identifier: MPL-2.0

//! What the tests of the element share: pipelines in this process, and what came of them.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::Path;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use gst::prelude::*;
use gst_app::{AppSink, AppSinkCallbacks};
use gst_video::prelude::*;

/// Nothing that goes on takes that long on any machine.
pub const LONG: gst::ClockTime = gst::ClockTime::from_seconds(90);

/// Starts GStreamer with the plugin, once.
pub fn init() {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        gst::init().expect("GStreamer starts");
        gstnvdecring::plugin_register_static().expect("the plugin registers");
    });
}

/// A picture that came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Out {
    pub pts: Option<gst::ClockTime>,
    /// Samples without padding, plane after plane.
    pub samples: Vec<u8>,
    pub width: u32,
    pub corrupted: bool,
    pub flags: gst_video::VideoBufferFlags,
}

impl Out {
    pub fn md5(&self) -> String {
        format!("{:x}", md5::compute(&self.samples))
    }
}

/// What came of a pipeline.
#[derive(Debug, Default)]
pub struct Outcome {
    pub pictures: Vec<Out>,
    pub caps: Vec<gst::Caps>,
    /// Those of the decoder, or of the pipeline where it has none of that name.
    pub errors: Vec<String>,
    /// Those of elements that were told to stop.
    pub other_errors: Vec<String>,
    pub warnings: Vec<String>,
    pub structures: Vec<gst::Structure>,
    pub stats: Option<gst::Structure>,
    pub eos: bool,
}

impl Outcome {
    pub fn sums(&self) -> Vec<String> {
        self.pictures.iter().map(Out::md5).collect()
    }

    pub fn named(&self, name: &str) -> Vec<&gst::Structure> {
        let all = self.structures.iter();
        all.filter(|structure| structure.name() == name).collect()
    }

    pub fn stat(&self, name: &str) -> u64 {
        let stats = self.stats.as_ref().expect("the element was there");
        stats
            .get(name)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Every frame that went in came out or was counted.
    #[track_caller]
    pub fn account_is_whole(&self) {
        let ended = self.stat("pictures") + self.stat("dropped") + self.stat("failed");
        assert_eq!(
            self.stat("submitted"),
            ended + self.stat("flushed") + self.stat("inside"),
            "{:?}",
            self.stats
        );
    }
}

fn samples(sample: &gst::Sample) -> Out {
    let buffer = sample.buffer().expect("a buffer");
    let info = gst_video::VideoInfo::from_caps(sample.caps().expect("caps")).expect("video caps");
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).expect("a frame");
    let mut samples = Vec::new();
    for plane in 0..frame.n_planes() {
        // The first component of a plane of interleaved chroma has half its samples.
        let component = plane.min(frame.n_components() - 1);
        let columns = frame.comp_width(component) as usize;
        let row = columns * frame.comp_pstride(component) as usize;
        let stride = frame.plane_stride()[plane as usize] as usize;
        let data = frame.plane_data(plane).expect("a plane");
        for start in (0..frame.comp_height(component) as usize).map(|row| row * stride) {
            samples.extend_from_slice(&data[start..start + row]);
        }
    }
    Out {
        pts: buffer.pts(),
        samples,
        width: info.width(),
        corrupted: buffer.flags().contains(gst::BufferFlags::CORRUPTED),
        flags: buffer.video_flags(),
    }
}

/// A pipeline whose last element is an appsink called `out`.
pub struct Bench {
    pub pipeline: gst::Pipeline,
    pub out: Arc<Mutex<Outcome>>,
}

/// No machine is so busy that a call of these tests takes that long, unless it hangs.
pub fn patience(properties: &str) -> &'static str {
    if properties.contains("decode-timeout") {
        ""
    } else {
        "decode-timeout=30000"
    }
}

/// The parser elements and what the codec's caps need, by the file's name.
pub fn parsers(path: &Path) -> &'static str {
    let name = path.to_string_lossy();
    let ends = |suffix: &str| name.ends_with(suffix);
    if ends(".h264") {
        "h264parse"
    } else if ends(".h265") {
        "h265parse"
    } else if ends(".m2v") {
        "mpegvideoparse"
    } else if ends(".av1") {
        "ivfparse ! av1parse"
    } else if name.contains("vp8") {
        "ivfparse"
    } else {
        "ivfparse ! vp9parse"
    }
}

impl Bench {
    /// `... ! nvdecringdec name=dec {properties} ! {after} ! appsink`.
    pub fn file(path: &Path, properties: &str, after: &str) -> Self {
        let parsers = parsers(path);
        let (path, patience) = (path.display(), patience(properties));
        Self::launch(&format!(
            "filesrc location=\"{path}\" ! {parsers} ! nvdecringdec name=dec {patience} {properties} ! {after}"
        ))
    }

    /// A decoder of another plugin in its place.
    pub fn other(path: &Path, decoder: &str, after: &str) -> Self {
        let parsers = parsers(path);
        let path = path.display();
        Self::launch(&format!(
            "filesrc location=\"{path}\" ! {parsers} ! {decoder} ! {after}"
        ))
    }

    /// Any pipeline, and a sink.
    pub fn launch(description: &str) -> Self {
        init();
        let description = format!(
            "{description} appsink name=out sync=false max-buffers=4 enable-last-sample=false"
        )
        .replace("!  appsink", "! appsink");
        let pipeline = gst::parse::launch(&description)
            .unwrap_or_else(|error| panic!("{description}: {error}"))
            .downcast::<gst::Pipeline>()
            .expect("a pipeline");
        let out: Arc<Mutex<Outcome>> = Arc::default();
        let sink = pipeline
            .by_name("out")
            .and_downcast::<AppSink>()
            .expect("an appsink");
        let into = out.clone();
        sink.set_callbacks(
            AppSinkCallbacks::builder()
                .new_sample(move |sink| {
                    let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                    let picture = samples(&sample);
                    let mut out = into.lock().unwrap_or_else(PoisonError::into_inner);
                    let caps = sample.caps_owned().expect("caps");
                    if out.caps.last() != Some(&caps) {
                        out.caps.push(caps);
                    }
                    out.pictures.push(picture);
                    Ok(gst::FlowSuccess::Ok)
                })
                .build(),
        );
        Self { pipeline, out }
    }

    pub fn decoder(&self) -> gst::Element {
        self.pipeline.by_name("dec").expect("the decoder")
    }

    /// Reads the bus until the end, an error, or nothing happens for too long.
    #[track_caller]
    pub fn wait(&self) {
        let bus = self.pipeline.bus().expect("a bus");
        let deadline = Instant::now() + Duration::from_secs(LONG.seconds());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = gst::ClockTime::try_from(left).expect("a short time");
            let message = bus.timed_pop(left).expect("the pipeline ends");
            if self.read(&message) {
                break;
            }
        }
        // What was posted just before.
        while let Some(message) = bus.pop() {
            self.read(&message);
        }
    }

    fn read(&self, message: &gst::Message) -> bool {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        match message.view() {
            gst::MessageView::Eos(_) => {
                out.eos = true;
                return true;
            }
            gst::MessageView::Error(error) => {
                let text = format!("{} {:?}", error.error(), error.debug());
                let from = message.src().map(|source| source.name());
                if from.as_deref() == Some("dec") || self.pipeline.by_name("dec").is_none() {
                    out.errors.push(text);
                } else {
                    out.other_errors.push(text);
                }
                return true;
            }
            gst::MessageView::Warning(warning) => out.warnings.push(warning.error().to_string()),
            gst::MessageView::Element(element) => {
                if let Some(structure) = element.structure() {
                    out.structures.push(structure.to_owned());
                }
            }
            _ => {}
        }
        false
    }

    /// Plays to the end and stops.
    #[track_caller]
    pub fn run(self) -> Outcome {
        if self.pipeline.set_state(gst::State::Playing).is_err() {
            // The error is on the bus.
        }
        self.wait();
        self.stop()
    }

    #[track_caller]
    pub fn stop(self) -> Outcome {
        let stats = self.pipeline.by_name("dec").and_then(|decoder| {
            decoder
                .has_property("stats")
                .then(|| decoder.property::<gst::Structure>("stats"))
        });
        let stopped = self.pipeline.set_state(gst::State::Null);
        // Decoders of others may fail at that too.
        assert!(stopped.is_ok() || stats.is_none(), "it goes to NULL");
        let mut out = std::mem::take(&mut *self.out.lock().unwrap_or_else(PoisonError::into_inner));
        out.stats = stats;
        out
    }
}

/// What software makes of a stream, in that format.
#[track_caller]
pub fn software(path: &Path, decoder: &str, format: &str) -> Outcome {
    let bench = Bench::other(
        path,
        decoder,
        &format!("videoconvert ! video/x-raw,format={format} !"),
    );
    let out = bench.run();
    assert!(out.eos, "{:?}", out.errors);
    out
}

#[track_caller]
pub fn equal(name: &str, ours: &Outcome, theirs: &Outcome) {
    assert!(ours.errors.is_empty(), "{name}: {:?}", ours.errors);
    assert!(!theirs.pictures.is_empty(), "{name}");
    for (at, (our, their)) in ours.pictures.iter().zip(&theirs.pictures).enumerate() {
        assert_eq!(our.pts, their.pts, "{name}: time of picture {at}");
        assert_eq!(our.md5(), their.md5(), "{name}: picture {at}");
    }
    assert_eq!(
        ours.pictures.len(),
        theirs.pictures.len(),
        "{name}: pictures"
    );
}

/// Pushes access units by hand.
pub struct Hand {
    pub bench: Bench,
    pub source: gst_app::AppSrc,
}

impl Hand {
    pub fn new(properties: &str) -> Self {
        let bench = Bench::launch(&format!(
            "appsrc name=in format=time ! nvdecringdec name=dec {} {properties} !",
            patience(properties)
        ));
        let source = bench
            .pipeline
            .by_name("in")
            .and_downcast::<gst_app::AppSrc>()
            .expect("a source");
        bench
            .pipeline
            .set_state(gst::State::Playing)
            .expect("it starts");
        Self { bench, source }
    }

    pub fn push(&self, at: u64, bytes: &[u8]) {
        let mut buffer = gst::Buffer::from_slice(bytes.to_vec());
        let inner = buffer.get_mut().expect("a new buffer");
        inner.set_pts(gst::ClockTime::from_mseconds(40 * at));
        self.source.push_buffer(buffer).expect("it is taken");
    }
}

/// Caps of the made H.264 streams of 96x64.
pub fn h264_caps() -> gst::Caps {
    gst::Caps::builder("video/x-h264")
        .field("stream-format", "byte-stream")
        .field("alignment", "au")
        .field("framerate", gst::Fraction::new(25, 1))
        .field("width", 96)
        .field("height", 64)
        .build()
}
