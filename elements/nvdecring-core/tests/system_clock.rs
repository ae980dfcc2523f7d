// SPDX-License-Identifier: MPL-2.0

//! The system's clock and threads: everything else is tested on virtual ones.

#[path = "common/instant.rs"]
mod instant;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use instant::{Instant, packet};
use nvdecring_core::*;

#[derive(Clone, Default)]
struct Tokens(Arc<Mutex<(Vec<u64>, Vec<String>)>>);

impl Sink<Instant> for Tokens {
    fn picture(&mut self, picture: Picture<Instant>) {
        self.0.lock().unwrap().0.push(picture.token.0);
    }

    fn dropped(&mut self, _: FrameToken, reason: DropReason) {
        self.0.lock().unwrap().1.push(reason.to_string());
    }
}

fn open(tokens: &Tokens, status: DecodeStatus, config: Config) -> Session<Instant> {
    Session::open(
        Arc::new(Instant {
            status,
            ..Instant::default()
        }),
        DeviceGate::new(),
        config,
        Box::new(tokens.clone()),
        Box::new(|_| {}),
        Arc::new(SystemClock::default()),
    )
    .unwrap()
}

#[test]
fn a_session_runs_on_the_systems_threads() {
    let tokens = Tokens::default();
    // No machine is so slow that its threads need a minute to end.
    let config = Config {
        stop_timeout: Duration::from_secs(60),
        ..Config::new(Identity::Decoded)
    };
    let session = open(&tokens, DecodeStatus::Success, config);
    for token in 0..1000 {
        session.submit(packet(token)).unwrap();
    }
    session.drain().unwrap();
    assert_eq!(session.flush(), Ok(0));
    session.submit(packet(1000)).unwrap();
    session.drain().unwrap();
    let stopped = session.stop();
    assert!(stopped.clean, "{stopped:?}");
    assert_eq!(tokens.0.lock().unwrap().0, (0..=1000).collect::<Vec<_>>());
}

#[test]
fn a_deadline_passes_by_itself() {
    let tokens = Tokens::default();
    let config = Config {
        decode_timeout: Duration::from_millis(20),
        ..Config::new(Identity::Decoded)
    };
    let session = open(&tokens, DecodeStatus::InProgress, config);
    session.submit(packet(0)).unwrap();
    session.drain().unwrap();
    assert_eq!(tokens.0.lock().unwrap().1, ["not decoded within 20ms"]);
}
