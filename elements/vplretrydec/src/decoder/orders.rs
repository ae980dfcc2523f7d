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
use crate::link::{Link, News};
use crate::reply::Reply;
use crate::session::{self, Command, Setup};
use crate::unit::Token;

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
        let result = loop {
            match link.next(Some(deadline), false) {
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
            state.wrap = Arc::clone(&wrap);
            state.negotiated = None;
            state.interlaced = false;
            // A byte stream's access unit ends where the next begins, unless it is said to be whole.
            state.latency =
                depth - 1 + u32::from(codec::is_byte_stream(format.codec) && !low_latency);
        }
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

    /// The thread hangs in a call: it keeps what it has and is not waited for.
    pub(super) fn leave_behind(&self, link: &Arc<Link>) {
        link.end();
        lock(&self.state).session = None;
    }

    /// Gives a command to the session, and pushes what comes back until it is done.
    pub(super) fn order(&self, command: Command) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(link) = self.session() else {
            return Err(gst::FlowError::Error);
        };
        let number = link.send(command);
        let mut flow = Ok(gst::FlowSuccess::Ok);
        loop {
            match link.next(None, true) {
                Some(News::Reply(Reply::Done(done, result))) if done == number => {
                    return match result {
                        Ok(()) => flow,
                        Err(failure) => Err(self.fail(&failure)),
                    };
                }
                Some(News::Reply(reply)) => {
                    let heeded = self.heed(&link, reply);
                    if flow.is_ok() && heeded.is_err() {
                        flow = heeded;
                        link.give_up(number);
                    }
                }
                Some(News::Interrupted) => return Err(gst::FlowError::Flushing),
                Some(News::Hung { call, elapsed }) => {
                    self.leave_behind(&link);
                    let name = link.implementation().unwrap_or_default().0;
                    let text = format!(
                        "{call} has not returned for {} ms, implementation {name}: the runtime hangs, its \
                         session is abandoned; look at the kernel's log, and restart the pipeline or the process",
                        elapsed.as_millis()
                    );
                    return Err(self.fail(&Failure::new(Kind::Failed, text)));
                }
                Some(News::Ended) => {
                    let text =
                        "a defect of vplretrydec: the session thread has ended; please report it";
                    return Err(self.fail(&Failure::new(Kind::Internal, text)));
                }
                None => {}
            }
        }
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

    pub(super) fn release(&self, tokens: impl IntoIterator<Item = Token>) {
        let obj = self.obj();
        for token in tokens {
            if let Some(frame) = frame_of(&obj, token) {
                obj.release_frame(frame);
            }
        }
    }

    pub(super) fn implementation(&self) -> Option<(String, String)> {
        self.session()?.implementation()
    }

    pub(super) fn stats(&self) -> gst::Structure {
        let state = lock(&self.state);
        let session = state.session.as_ref();
        let stats = session.map(|link| link.stats()).unwrap_or_default();
        let implementation = session.and_then(|link| link.implementation());
        state.counters.structure(&stats, implementation)
    }
}
