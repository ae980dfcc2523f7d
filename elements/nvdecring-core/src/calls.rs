// SPDX-License-Identifier: MPL-2.0

//! Which call each thread is in, and since when: what a watchdog has to know.

use std::fmt;
use std::time::Duration;

use crate::config::Config;
use crate::error::Error;

/// A call that may take long, or for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// [`GpuApi::open_context`](crate::GpuApi::open_context)
    OpenContext,
    /// [`GpuApi::create_parser`](crate::GpuApi::create_parser)
    CreateParser,
    /// [`GpuApi::parse`](crate::GpuApi::parse), outside its callbacks
    Parse,
    /// [`GpuApi::create_decoder`](crate::GpuApi::create_decoder)
    CreateDecoder,
    /// [`GpuApi::reconfigure`](crate::GpuApi::reconfigure)
    Reconfigure,
    /// [`GpuApi::decode`](crate::GpuApi::decode)
    Decode,
    /// The end of a parser, decoder or context
    Destroy,
    /// [`GpuApi::status`](crate::GpuApi::status)
    Status,
    /// [`GpuApi::map`](crate::GpuApi::map)
    Map,
    /// [`GpuApi::begin_copy`](crate::GpuApi::begin_copy)
    BeginCopy,
    /// [`GpuApi::finish_copy`](crate::GpuApi::finish_copy)
    FinishCopy,
    /// [`GpuApi::unmap`](crate::GpuApi::unmap)
    Unmap,
}

impl Call {
    /// How long it may take before it is reported.
    pub(crate) fn reported_after(self, config: &Config) -> Duration {
        self.limits(config).0
    }

    /// How long it may take before it is reported, and before the device is given up.
    fn limits(self, config: &Config) -> (Duration, Duration) {
        match self {
            Self::OpenContext
            | Self::CreateParser
            | Self::CreateDecoder
            | Self::Reconfigure
            | Self::Destroy => (config.open_timeout, config.open_timeout),
            Self::Parse
            | Self::Decode
            | Self::Status
            | Self::Map
            | Self::BeginCopy
            | Self::FinishCopy
            | Self::Unmap => (config.decode_timeout, config.wedge_timeout),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenContext => "opening the context",
            Self::CreateParser => "creating the parser",
            Self::Parse => "parsing",
            Self::CreateDecoder => "creating the decoder",
            Self::Reconfigure => "reconfiguring the decoder",
            Self::Decode => "decoding a picture",
            Self::Destroy => "destroying the decoder",
            Self::Status => "asking for the decode status",
            Self::Map => "mapping a picture",
            Self::BeginCopy => "starting a copy",
            Self::FinishCopy => "waiting for a copy",
            Self::Unmap => "unmapping a picture",
        })
    }
}

/// The two threads of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Owns the parser; all its callbacks come here.
    Parser,
    /// Maps, copies and hands out.
    Worker,
}

impl Role {
    pub(crate) const ALL: [Self; 2] = [Self::Parser, Self::Worker];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Parser => "parser",
            Self::Worker => "worker",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    call: Call,
    since: Duration,
    reported: bool,
}

/// The calls under way.
#[derive(Debug, Default)]
pub(crate) struct Calls([Option<Pending>; 2]);

/// What a look at the calls shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Look again at this time, at the latest.
    Fine(Option<Duration>),
    /// A call takes too long; said once a call.
    Stalled(Call, Duration),
    /// A call will not return.
    Wedged(Error),
}

impl Calls {
    pub(crate) fn enter(&mut self, role: Role, call: Call, now: Duration) {
        self.0[role as usize] = Some(Pending {
            call,
            since: now,
            reported: false,
        });
    }

    pub(crate) fn leave(&mut self, role: Role) {
        self.0[role as usize] = None;
    }

    pub(crate) fn of(&self, role: Role) -> Option<Call> {
        self.0[role as usize].map(|pending| pending.call)
    }

    pub(crate) fn watch(&mut self, config: &Config, now: Duration) -> Watch {
        let mut next: Option<Duration> = None;
        for pending in self.0.iter_mut().flatten() {
            let (report, give_up) = pending.call.limits(config);
            let elapsed = now.saturating_sub(pending.since);
            if elapsed >= give_up {
                return Watch::Wedged(Error::Wedged {
                    call: pending.call,
                    elapsed,
                });
            }
            if elapsed >= report && !pending.reported {
                pending.reported = true;
                return Watch::Stalled(pending.call, elapsed);
            }
            let limit = if pending.reported { give_up } else { report };
            let at = pending.since + limit;
            next = Some(next.map_or(at, |next| next.min(at)));
        }
        Watch::Fine(next)
    }
}
