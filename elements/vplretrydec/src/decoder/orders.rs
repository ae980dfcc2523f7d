// SPDX-License-Identifier: MPL-2.0

//! Commands to the session thread, and what they end with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;

use super::frames::frame_of;
use super::imp::{CAT, VplRetryDec, lock};
use crate::codec::{self, StreamFormat};
use crate::failure::{Failure, Kind};
use crate::link::{Link, News, Until};
use crate::reply::Reply;
use crate::session::{self, Command, Setup};
use crate::stream_lock::StreamLock;
use crate::unit::{Token, Unit};

/// Time for the search for runtimes: an application waits for NULL to READY.
const FIND_TIME: Duration = Duration::from_secs(10);

impl VplRetryDec {
    pub(super) fn session(&self) -> Option<Arc<Link>> {
        lock(&self.state).session.clone()
    }

    /// The folder that the plugin was loaded from.
    pub(super) fn plugin_folder(&self) -> Option<PathBuf> {
        let plugin = self.obj().factory()?.plugin()?;
        Some(plugin.filename()?.parent()?.to_owned())
    }

    /// Starts a session thread and lets it look for runtimes.
    pub(super) fn find(&self) -> Result<Arc<Link>, Failure> {
        let settings = lock(&self.settings).clone();
        let link = session::start()?;
        let (work, wait) = settings.call_limits();
        link.set_limits(work, wait);
        let number = link.send(Command::Find(settings.selection(self.plugin_folder())));
        let deadline = Instant::now() + FIND_TIME;
        let listening = link.listen();
        let result = loop {
            match link.next(Until::Moment(deadline), false) {
                Some(News::Reply(Reply::Done(done, result))) if done == number => break result,
                Some(News::Reply(_) | News::Interrupted) => {}
                None | Some(News::Hung { .. } | News::Ended) => {
                    break Err(Failure::new(
                        Kind::Failed,
                        format!(
                            "the search for oneVPL runtimes has not ended in {} ms: a driver hangs; \
                             look at the kernel's log, or set implementation=software",
                            FIND_TIME.as_millis()
                        ),
                    ));
                }
            }
        };
        drop(listening);
        match result {
            Ok(()) => Ok(link),
            Err(failure) => {
                link.end();
                Err(failure)
            }
        }
    }

    pub(super) fn configure(
        &self,
        format: &StreamFormat,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = lock(&self.settings).clone();
        let live = self.is_upstream_live();
        let depth = settings.depth(live);
        let low_latency = settings.low_latency || live;
        let wrap = Arc::new(AtomicBool::new(settings.zero_copy));
        {
            let mut state = lock(&self.state);
            state.live = live;
            state.in_step = low_latency;
            state.wrap = Arc::clone(&wrap);
            state.negotiated = None;
            state.interlaced = false;
            // A byte stream's access unit ends where the next begins, unless it is said to be whole.
            state.latency =
                depth - 1 + u32::from(codec::is_byte_stream(format.codec) && !low_latency);
        }
        self.start_task()?;
        self.order(Command::Configure(Box::new(Setup {
            selection: settings.selection(self.plugin_folder()),
            format: format.clone(),
            settings: settings.limits(live),
            low_latency,
            surface_limit: settings.surface_limit,
            wrap,
        })))
    }

    pub(super) fn is_upstream_live(&self) -> bool {
        let mut query = gst::query::Latency::new();
        self.obj().sink_pad().peer_query(&mut query) && query.result().0
    }

    /// The thread ends, or hangs in a call: it keeps what it has and is not waited for.
    pub(super) fn leave_behind(&self, link: &Arc<Link>) {
        link.end();
        let mut state = lock(&self.state);
        state.last = state.session.take();
    }

    /// Gives a command to the session, and pushes what comes back until it is done.
    pub(super) fn order(&self, command: Command) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(link) = self.session() else {
            return Err(gst::FlowError::Error);
        };
        let number = link.send(command);
        self.listen(&link, number)
    }

    /// Gives an access unit to the session, and pushes what comes back until the one before it is done: the
    /// session then finds the next at hand and waits for nobody. What comes later is pushed when the next unit
    /// is fed, or by the task of the source pad.
    pub(super) fn feed(&self, unit: Unit) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(link) = self.session() else {
            return Err(gst::FlowError::Error);
        };
        self.prepare_spare(&link);
        let number = link.send(Command::Feed(unit));
        let mut state = lock(&self.state);
        let before = std::mem::replace(&mut state.fed, number);
        let in_step = state.in_step;
        drop(state);
        self.listen(&link, if in_step { number } else { before })
    }

    /// Pushes what has come back of the units that were fed, and waits for what is to come.
    pub(super) fn catch_up(&self) {
        if let Some(link) = self.session() {
            let fed = lock(&self.state).fed;
            let flow = self.listen(&link, fed);
            self.keep_flow(flow);
        }
    }

    /// Pushes what comes back, until the command with this number is done. To be called with the stream lock alone,
    /// which keeps the frames in order.
    fn listen(&self, link: &Arc<Link>, number: u64) -> Result<gst::FlowSuccess, gst::FlowError> {
        let _listening = link.listen();
        let mut flow = lock(&self.state)
            .flow
            .take()
            .map_or(Ok(gst::FlowSuccess::Ok), Err);
        while let Some(news) = link.next(Until::Done(number), true) {
            match news {
                News::Reply(reply) => {
                    let heeded = self.heed(link, reply);
                    if heeded.is_err() {
                        link.give_up(number);
                        flow = flow.and(heeded);
                    }
                }
                News::Interrupted => return Err(gst::FlowError::Flushing),
                News::Hung { call, elapsed } => {
                    self.leave_behind(link);
                    let name = link.implementation().unwrap_or_default().0;
                    let text = format!(
                        "{call} has not returned for {} ms, implementation {name}: the runtime hangs, its \
                         session is abandoned; look at the kernel's log, and restart the pipeline or the process",
                        elapsed.as_millis()
                    );
                    return Err(self.fail(&Failure::new(Kind::Failed, text)));
                }
                News::Ended => {
                    let text =
                        "a defect of vplretrydec: the session thread has ended; please report it";
                    return Err(self.fail(&Failure::new(Kind::Internal, text)));
                }
            }
        }
        flow
    }

    /// What downstream answered to who cannot tell upstream: the next call from there does.
    fn keep_flow(&self, flow: Result<gst::FlowSuccess, gst::FlowError>) {
        match flow {
            // A flush or a stop, which upstream hears of by itself.
            Ok(_) | Err(gst::FlowError::Flushing) => {}
            Err(error) => {
                lock(&self.state).flow.get_or_insert(error);
            }
        }
    }

    /// Lets a task of the source pad push what comes back while the streaming thread is upstream.
    pub(super) fn start_task(&self) -> Result<(), gst::FlowError> {
        let weak = self.obj().downgrade();
        let pad = self.obj().src_pad().clone();
        let pausing = pad.clone();
        pad.start_task(move || {
            let goes_on = weak.upgrade().is_some_and(|obj| obj.imp().push_unheard());
            if !goes_on {
                // It has ended already where the pad is no more.
                let _ = pausing.pause_task();
            }
        })
        .map_err(|_| {
            let text = "no thread for the source pad".to_owned();
            self.fail(&Failure::new(Kind::Failed, text))
        })
    }

    /// Pushes the next of what nobody listens to; false where there will be nothing more.
    fn push_unheard(&self) -> bool {
        let Some(link) = self.session().filter(|link| link.wait_unheard()) else {
            return false;
        };
        let obj = self.obj();
        let _held = StreamLock::hold(obj.upcast_ref());
        let flow = self.listen(&link, 0);
        self.keep_flow(flow);
        true
    }

    /// Decoding has ended: the error is posted once, and what is inside is errored.
    pub(super) fn fail(&self, failure: &Failure) -> gst::FlowError {
        let mut state = lock(&self.state);
        let told = std::mem::replace(&mut state.failed, true);
        let open = state.counters.fail();
        drop(state);
        self.release(open);
        if !told {
            gst::error!(CAT, imp = self, "{}", failure.text);
            self.post_error_message(failure.message());
        }
        gst::FlowError::Error
    }

    /// Ends the task, and waits for its thread.
    pub(super) fn end_task(&self) {
        // That there is none is good, too.
        let _ = self.obj().src_pad().stop_task();
    }

    pub(super) fn release(&self, tokens: impl IntoIterator<Item = Token>) {
        let obj = self.obj();
        for token in tokens {
            if let Some(frame) = frame_of(&obj, token) {
                obj.release_frame(frame);
            }
        }
    }

    pub(super) fn implementation(&self) -> Option<(String, String)> {
        let state = lock(&self.state);
        state
            .session
            .as_ref()
            .or(state.last.as_ref())?
            .implementation()
    }

    pub(super) fn stats(&self) -> gst::Structure {
        let state = lock(&self.state);
        let session = state.session.as_ref().or(state.last.as_ref());
        let stats = session.map(|link| link.stats()).unwrap_or_default();
        let implementation = session.and_then(|link| link.implementation());
        state.counters.structure(&stats, implementation)
    }
}
