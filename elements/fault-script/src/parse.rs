// SPDX-License-Identifier: MPL-2.0

//! Reading the text.

use std::str::FromStr;

use crate::script::parse_script;
use crate::{DeviceLost, Faults, Latency, Times};

/// Every key, for the message about an unknown one.
const KEYS: &str = "busy, busy-with-sync, script, latency-us, engines, pool, fail-decode, status-error, \
                    device-lost, init-hang, decode-hang, sync-hang, map-hang, close-hang, corrupt, \
                    silent-resize, seed";

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such key.
    #[error("unknown key '{0}'; the keys are {KEYS}")]
    UnknownKey(String),
    /// The key stands twice.
    #[error("key '{0}' is given twice")]
    Twice(String),
    /// The key needs a value.
    #[error("key '{0}' needs a value: {1}")]
    NoValue(String, &'static str),
    /// The key takes none.
    #[error("key '{0}' takes no value")]
    SurplusValue(String),
    /// The value is not of the key's form.
    #[error("'{value}' is no value for '{key}': expected {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// What was given.
        value: String,
        /// The form.
        expected: &'static str,
    },
}

const NUMBER: &str = "a number from 0";
const POSITIVE: &str = "a number from 1";
const TIMES: &str = "a number or 'forever'";
const LATENCY: &str = "microseconds for I, P and B pictures, such as 500:800:900";
const LOST: &str = "FRAME or FRAME:SESSIONS, such as 12:2";
const SCRIPT: &str = "statuses separated by ',', each an integer or '_' with flags s, f and *COUNT, \
                      such as 2*3,_,3sf";

impl FromStr for Faults {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut faults = Faults::default();
        let mut seen: Vec<&str> = Vec::new();
        for part in text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            if seen.contains(&key) {
                return Err(FaultError::Twice(key.to_owned()));
            }
            seen.push(key);
            faults.set(Entry { key, value })?;
        }
        Ok(faults)
    }
}

impl Faults {
    fn set(&mut self, entry: Entry<'_>) -> Result<(), FaultError> {
        match entry.key {
            "busy" => self.busy = Some(entry.with(TIMES, times)?),
            "busy-with-sync" => self.busy_with_sync = Some(entry.with(TIMES, times)?),
            "script" => self.script = entry.with(SCRIPT, parse_script)?,
            "latency-us" => self.latency = Some(entry.with(LATENCY, latency)?),
            "engines" => self.engines = Some(entry.with(POSITIVE, positive)?),
            "pool" => self.pool = Some(entry.with(POSITIVE, positive)?),
            "fail-decode" => self.fail_decode = Some(entry.with(NUMBER, number)?),
            "status-error" => self.status_error = Some(entry.with(NUMBER, number)?),
            "device-lost" => self.device_lost = Some(entry.with(LOST, device_lost)?),
            "init-hang" => self.init_hang = entry.alone()?,
            "decode-hang" => self.decode_hang = Some(entry.with(NUMBER, number)?),
            "sync-hang" => self.sync_hang = Some(entry.with(NUMBER, number)?),
            "map-hang" => self.map_hang = Some(entry.with(NUMBER, number)?),
            "close-hang" => self.close_hang = entry.alone()?,
            "corrupt" => self.corrupt = Some(entry.with(NUMBER, number)?),
            "silent-resize" => self.silent_resize = entry.alone()?,
            "seed" => self.seed = Some(entry.with(NUMBER, number)?),
            unknown => return Err(FaultError::UnknownKey(unknown.to_owned())),
        }
        Ok(())
    }
}

struct Entry<'a> {
    key: &'a str,
    value: Option<&'a str>,
}

impl Entry<'_> {
    fn with<T>(
        &self,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FaultError> {
        let value = self
            .value
            .ok_or_else(|| FaultError::NoValue(self.key.to_owned(), expected))?;
        read(value).ok_or_else(|| FaultError::BadValue {
            key: self.key.to_owned(),
            value: value.to_owned(),
            expected,
        })
    }

    fn alone(&self) -> Result<bool, FaultError> {
        match self.value {
            None => Ok(true),
            Some(_) => Err(FaultError::SurplusValue(self.key.to_owned())),
        }
    }
}

fn number(text: &str) -> Option<u64> {
    // u64's own parser takes a sign, which is no number here.
    (!text.starts_with('+'))
        .then(|| text.parse().ok())
        .flatten()
}

fn positive(text: &str) -> Option<u64> {
    number(text).filter(|value| *value > 0)
}

fn times(text: &str) -> Option<Times> {
    match text {
        "forever" => Some(Times::Forever),
        _ => number(text).map(Times::Count),
    }
}

fn latency(text: &str) -> Option<Latency> {
    let mut parts = text.split(':').map(number);
    let latency = Latency {
        i: parts.next()??,
        p: parts.next()??,
        b: parts.next()??,
    };
    parts.next().is_none().then_some(latency)
}

fn device_lost(text: &str) -> Option<DeviceLost> {
    let (frame, sessions) = match text.split_once(':') {
        Some((frame, sessions)) => (number(frame)?, positive(sessions)?),
        None => (number(text)?, 1),
    };
    Some(DeviceLost { frame, sessions })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ScriptEntry;

    #[test]
    fn every_key_is_read() {
        let text = "busy=forever; busy-with-sync=2 ;script=2*3,_,3sf,2s;latency-us=1:2:3;engines=2;pool=4;\
                    fail-decode=5;status-error=6;device-lost=7:8;init-hang;decode-hang=9;sync-hang=10;\
                    map-hang=11;close-hang;corrupt=12;silent-resize;seed=13;";
        let entry = |status, sync, surface, repeat| ScriptEntry {
            status,
            sync,
            surface,
            repeat,
        };
        let expected = Faults {
            busy: Some(Times::Forever),
            busy_with_sync: Some(Times::Count(2)),
            script: vec![
                entry(Some(2), false, false, 3),
                entry(None, false, false, 1),
                entry(Some(3), true, true, 1),
                entry(Some(2), true, false, 1),
            ],
            latency: Some(Latency { i: 1, p: 2, b: 3 }),
            engines: Some(2),
            pool: Some(4),
            fail_decode: Some(5),
            status_error: Some(6),
            device_lost: Some(DeviceLost {
                frame: 7,
                sessions: 8,
            }),
            init_hang: true,
            decode_hang: Some(9),
            sync_hang: Some(10),
            map_hang: Some(11),
            close_hang: true,
            corrupt: Some(12),
            silent_resize: true,
            seed: Some(13),
        };
        assert_eq!(text.parse(), Ok(expected));
    }

    #[test]
    fn nothing_asks_for_nothing() {
        for text in ["", " ; ;"] {
            assert!(text.parse::<Faults>().is_ok_and(|faults| faults.is_empty()));
        }
        assert_eq!(
            "device-lost=3"
                .parse::<Faults>()
                .map(|f| f.device_lost.map(|l| l.sessions)),
            Ok(Some(1))
        );
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        for (text, part) in [
            ("bussy=3", "unknown key 'bussy'; the keys are busy,"),
            ("busy=3;busy=4", "key 'busy' is given twice"),
            ("busy", "key 'busy' needs a value: a number or 'forever'"),
            ("init-hang=1", "key 'init-hang' takes no value"),
            (
                "pool=0",
                "'0' is no value for 'pool': expected a number from 1",
            ),
            ("corrupt=-1", "'-1' is no value for 'corrupt'"),
            ("corrupt=+1", "'+1' is no value for 'corrupt'"),
            (
                "latency-us=1:2",
                "expected microseconds for I, P and B pictures",
            ),
            ("latency-us=1:2:3:4", "expected microseconds"),
            ("device-lost=1:0", "expected FRAME or FRAME:SESSIONS"),
            ("script=2,,3", "'2,,3' is no value for 'script'"),
            ("script=", "'' is no value for 'script'"),
            ("script=2*0", "is no value for 'script'"),
            ("script=_s", "is no value for 'script'"),
            ("script=2x", "is no value for 'script'"),
        ] {
            let said = text.parse::<Faults>().expect_err(text).to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-a-z0-9=;:,*_sf ]{0,60}") {
            let _ = text.parse::<Faults>();
        }
    }
}
