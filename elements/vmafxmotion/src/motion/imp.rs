// SPDX-License-Identifier: MPL-2.0

//! Pads, events and states. Buffers are pushed in the call that brought them; no lock is held while
//! a picture is read, a message is posted or anything is pushed.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use vmaf_motion::sad::Kernel;

use super::settings::{Settings, properties};
use super::signals::signals;
use super::state::{Hold, State};
use super::timer::Timer;
use crate::formats;
use crate::score_text::ScoreText;
use crate::session::Session;
use crate::writer::{Loss, OnLoss, ScoreWriter};

/// Time for the files to be complete when the element stops.
const CLOSE_TIME: Duration = Duration::from_secs(1);

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "vmafxmotion",
        gst::DebugColorFlags::empty(),
        Some("VMAF motion scores"),
    )
});

/// The element's instance.
#[derive(Debug)]
pub struct VmafxMotion {
    pub(super) sinkpad: gst::Pad,
    pub(super) srcpad: gst::Pad,
    pub(super) settings: Mutex<Settings>,
    pub(super) state: Mutex<State>,
    /// Runs with `hold` and `max-hold`.
    pub(super) timer: Mutex<Option<Timer>>,
}

/// A poisoned lock means that a panic was caught and posted already; the data is plain.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for VmafxMotion {
    const NAME: &'static str = "GstVmafxMotion";
    type Type = super::VmafxMotion;
    type ParentType = gst::Element;

    fn with_class(klass: &Self::Class) -> Self {
        let template = |name| klass.pad_template(name).expect("a template of this class");
        let sinkpad = gst::Pad::builder_from_template(&template("sink"))
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |this| this.chain(buffer),
                )
            })
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_event(pad, event))
            })
            .query_function(|pad, parent, query| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_query(pad, query))
            })
            .flags(gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION)
            .build();
        let srcpad = gst::Pad::builder_from_template(&template("src"))
            .query_function(|pad, parent, query| {
                Self::catch_panic_pad_function(parent, || false, |this| this.src_query(pad, query))
            })
            .flags(gst::PadFlags::PROXY_CAPS)
            .build();
        Self {
            sinkpad,
            srcpad,
            settings: Mutex::default(),
            state: Mutex::default(),
            timer: Mutex::default(),
        }
    }
}

impl ObjectImpl for VmafxMotion {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties);
        &PROPERTIES
    }

    fn signals() -> &'static [glib::subclass::Signal] {
        signals()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        lock(&self.settings).set(value, pspec);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let setting = lock(&self.settings).get(pspec);
        setting.unwrap_or_else(|| self.stats().to_value())
    }

    fn constructed(&self) {
        self.parent_constructed();
        let obj = self.obj();
        for pad in [&self.sinkpad, &self.srcpad] {
            obj.add_pad(pad).expect("a new element takes its pads");
        }
    }
}

impl GstObjectImpl for VmafxMotion {}

impl ElementImpl for VmafxMotion {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "VMAF motion scores",
                "Filter/Analyzer/Video",
                DESCRIPTION,
                env!("CARGO_PKG_AUTHORS"),
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = formats::caps();
            let template = |name, direction| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps)
                    .expect("valid templates")
            };
            vec![
                template("sink", gst::PadDirection::Sink),
                template("src", gst::PadDirection::Src),
            ]
        });
        &TEMPLATES
    }

    fn set_clock(&self, clock: Option<&gst::Clock>) -> bool {
        let accepted = self.parent_set_clock(clock);
        self.restart_hold();
        accepted
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::ReadyToPaused {
            self.start().map_err(|message| {
                self.post_error_message(message);
                gst::StateChangeError
            })?;
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::PausedToReady
            || (transition == gst::StateChange::ReadyToPaused && result.is_err())
        {
            self.stop();
        }
        result
    }
}

/// What `gst-inspect-1.0` shows first.
const DESCRIPTION: &str = "Scores the motion of the video that flows through it, as libvmaf 3.2 \
    does, bit for bit: motion at once, motion2 and motion3 one frame later. Buffers go on at once \
    and untouched, with the scores as VmafxMotionMeta; the bus gets vmafxmotion-frame, \
    vmafxmotion-window and vmafxmotion-summary messages, scores-path an NDJSON file. Windows are \
    cut by n-stats or n-stats-frames, or asked for with submit-window";

impl VmafxMotion {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        if let Err(error) = Kernel::from_env() {
            gst::element_imp_warning!(
                self,
                gst::LibraryError::Settings,
                ("{error}; scoring with {} instead", Kernel::chosen())
            );
        }
        let settings = lock(&self.settings).clone();
        let refused = |error: String| gst::error_msg!(gst::LibraryError::Settings, ("{error}"));
        let plan = settings.plan().map_err(refused)?;
        let session = Session::new(0, &plan).map_err(|error| refused(error.to_string()))?;
        let unwritable =
            |error: String| gst::error_msg!(gst::ResourceError::OpenWrite, ("{error}"));
        let writer = settings.scores_path.as_ref().map(|path| {
            ScoreWriter::open(path, settings.scores_append, self.on_loss("scores-path"))
                .map_err(|error| unwritable(error.to_string()))
        });
        let writer = writer.transpose()?.map(Arc::new);
        let text = settings.score_text_path.as_ref().map(|path| {
            ScoreText::open(path, self.on_loss("score-text-path"))
                .map_err(|error| unwritable(format!("score-text-path {}: {error}", path.display())))
        });
        let text = text.transpose()?.map(Arc::new);
        let hold = Hold::new(&settings);
        if hold.is_some_and(|hold| hold.limit.is_some()) {
            *lock(&self.timer) = Some(self.start_timer()?);
        }
        *lock(&self.state) = State {
            plan: Some(Arc::new(plan)),
            session: Some(session),
            hold,
            writer,
            text,
            ..State::default()
        };
        Ok(())
    }

    fn start_timer(&self) -> Result<Timer, gst::ErrorMessage> {
        let element = self.obj().downgrade();
        let wake = move || {
            if let Some(element) = element.upgrade() {
                element.imp().release_expired();
            }
        };
        Timer::start(wake).map_err(|error| {
            gst::error_msg!(
                gst::ResourceError::Failed,
                ("No thread for max-hold: {error}")
            )
        })
    }

    /// The pads are inactive: nothing is pushed any more.
    fn stop(&self) {
        let timer = lock(&self.timer).take();
        if let Some(timer) = timer {
            timer.stop();
        }
        lock(&self.state).held.clear();
        self.end_session("the element stops");
        let waiting = lock(&self.state).session.take();
        if let Some(mut session) = waiting {
            self.publish(&session.abandon());
        }
        let State { writer, text, .. } = std::mem::take(&mut *lock(&self.state));
        if let Some(writer) = writer.and_then(Arc::into_inner) {
            writer.close(CLOSE_TIME);
        }
        if let Some(text) = text {
            text.close(CLOSE_TIME);
        }
    }

    /// Warns of lost lines; called once, by a writer.
    fn on_loss(&self, property: &'static str) -> OnLoss {
        let element = self.obj().downgrade();
        Arc::new(move |loss| {
            let Some(element) = element.upgrade() else {
                return;
            };
            let advice =
                "lines are dropped and counted in stats (lines-dropped); the stream goes on";
            match loss {
                Loss::Write(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::NoSpaceLeft,
                        ("No space left for {property}: {advice}")
                    );
                }
                Loss::Write(error) => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Write,
                        ("Cannot write to {property}: {error}; {advice}")
                    );
                }
                Loss::Slow => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Write,
                        ("{property} takes the scores too slowly: {advice}")
                    );
                }
                Loss::Unfinished => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Write,
                        ("{property} did not take the last scores in time: they are lost")
                    );
                }
            }
        })
    }
}
