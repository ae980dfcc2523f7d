// SPDX-License-Identifier: MPL-2.0

//! The contract of the retry ceiling: eight scenarios, simulated time, no sleeping.

use std::time::Duration;

use crate::double::{Double, Say, frame, say};
use vplretry_core::{End, Error, ErrorKind, Event, Fault, Limit, Settings, Status};

const BUSY: i32 = 2;

fn busy(count: usize) -> impl Iterator<Item = Say> {
    std::iter::repeat_n(say(BUSY), count)
}

#[test]
fn test_finite_device_busy_retry_succeeds() {
    let mut decode = Double::with_units(1)
        .script(busy(10))
        .into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().attempts, 11);
    assert_eq!(decode.stats().busy, 10);
    assert_eq!(decode.stats().max_attempts_per_frame, 11);
    assert_eq!(decode.stats().busy_time, Duration::from_millis(10));
    let double = decode.driver();
    assert_eq!(double.pauses, [Duration::from_millis(1); 10]);
    assert_eq!(double.ledger.published(), [0]);
    assert_eq!(double.ledger.now(), Duration::from_millis(10));
    assert_eq!(double.ledger.live(), 0);
}

#[test]
fn test_too_low_ceiling_fails_and_sufficient_succeeds() {
    // 24 busy answers: the frame comes at attempt 25.
    for (ceiling, enough) in [
        (10, false),
        (23, false),
        (24, false),
        (25, true),
        (60_000, true),
    ] {
        let mut decode = Double::with_units(1).script(busy(24)).into_loop(Settings {
            max_attempts: ceiling,
            ..Settings::default()
        });
        let end = decode.feed();
        let attempts = decode.stats().attempts;
        if enough {
            assert_eq!(end, Ok(End::NeedInput), "ceiling {ceiling}");
            assert_eq!(attempts, 25);
            assert_eq!(decode.driver().ledger.published(), [0]);
        } else {
            assert_eq!(end.unwrap_err().kind(), ErrorKind::Busy);
            assert_eq!(attempts, u64::from(ceiling));
            assert!(decode.driver().ledger.published().is_empty());
        }
    }
}

#[test]
fn test_true_no_progress_loop_terminates_at_60000() {
    let mut decode = Double::with_units(1)
        .then(say(BUSY))
        .into_loop(Settings::default());
    let error = decode.feed().unwrap_err();
    assert_eq!(decode.stats().attempts, 60_000);
    assert!(
        error
            .to_string()
            .starts_with("DecodeFrameAsync yielded no frame after 60000 attempts")
    );
    let Error::Exhausted(exhausted) = error else {
        panic!("{error:?}");
    };
    assert_eq!(exhausted.attempts, 60_000);
    assert_eq!(exhausted.limit, Limit::Attempts);
    assert_eq!(exhausted.status, Status::DEVICE_BUSY);
    assert_eq!(exhausted.elapsed, Duration::from_millis(59_999));
    let double = decode.driver();
    assert_eq!(double.pauses.len(), 59_999);
    assert_eq!(double.ledger.now(), Duration::from_millis(59_999));
    // The first report at once, then one a second.
    assert_eq!(
        double
            .events_where(|event| matches!(event, Event::Retry { .. }))
            .len(),
        60
    );
}

#[test]
fn test_decoded_frame_ordering_preserved() {
    let script = [3, 0, 7, 1, 4]
        .into_iter()
        .flat_map(|retries| busy(retries).chain([frame(0)]));
    let mut decode = Double::with_units(5)
        .script(script)
        .into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    let published: Vec<_> = decode
        .driver()
        .log
        .iter()
        .filter(|line| line.starts_with("publish"))
        .collect();
    assert_eq!(
        published,
        [
            "publish 0",
            "publish 1",
            "publish 2",
            "publish 3",
            "publish 4"
        ]
    );
    assert_eq!(decode.stats().busy, 15);
    assert_eq!(decode.stats().attempts, 20);
    assert_eq!(decode.stats().max_attempts_per_frame, 8);
}

#[test]
fn test_warning_with_sync_publishes_frame() {
    // The value in the header; 14 is not this warning.
    assert_eq!(Status::VIDEO_PARAM_CHANGED, Status(3));
    let mut decode = Double::with_units(1)
        .script([frame(3)])
        .into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log,
        [
            "decode 3 frame 0",
            "wait 0 0",
            "format 320",
            "publish 0",
            "params"
        ]
    );
    assert_eq!(decode.driver().ledger.live(), 0);
}

#[test]
fn test_transient_retryable_statuses() {
    for status in [13, -11, 2, 1, 8, 9, -10_000] {
        let mut decode = Double::with_units(1)
            .script([say(status); 3])
            .into_loop(Settings::default());
        assert_eq!(decode.feed(), Ok(End::NeedInput), "status {status}");
        assert_eq!(decode.stats().attempts, 4, "status {status}");
        assert_eq!(decode.driver().pauses.len(), 3, "status {status}");
        assert_eq!(decode.driver().ledger.published(), [0]);
    }
}

#[test]
fn test_hard_error_fails_immediately() {
    let mut decode = Double::with_units(1).then(say(-13)).into_loop(Settings {
        device_retries: 0,
        ..Settings::default()
    });
    let error = decode.feed().unwrap_err();
    assert_eq!(
        error.to_string(),
        "device lost with MFX_ERR_DEVICE_LOST (-13), no frame after 0 new sessions, \
         implementation double"
    );
    assert_eq!(decode.stats().attempts, 1);
    assert!(decode.driver().pauses.is_empty());

    for (status, fault, kind) in [
        (-2, Fault::Usage, ErrorKind::Internal),
        (-3, Fault::Unsupported, ErrorKind::Unsupported),
        (-18, Fault::NotForDecoding, ErrorKind::Internal),
    ] {
        let mut decode = Double::with_units(1)
            .then(say(status))
            .into_loop(Settings::default());
        let error = decode.feed().unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(
            matches!(error, Error::Fatal { fault: f, status: s, .. } if f == fault && s.0 == status)
        );
        assert_eq!(decode.stats().attempts, 1);
        assert!(decode.driver().pauses.is_empty());
    }
}

#[test]
fn test_exhaustion_exact_diagnostic_message() {
    let message = |settings, status| {
        let mut decode = Double::with_units(1).then(say(status)).into_loop(settings);
        decode.feed().unwrap_err().to_string()
    };
    assert_eq!(
        message(Settings::default(), BUSY),
        "DecodeFrameAsync yielded no frame after 60000 attempts: attempt limit reached; \
         last status MFX_WRN_DEVICE_BUSY (2), 59999 ms without progress, 0 frames pending, \
         implementation double"
    );
    assert_eq!(
        message(
            Settings {
                retry_timeout: Duration::from_millis(50),
                ..Settings::default()
            },
            BUSY
        ),
        "DecodeFrameAsync yielded no frame after 51 attempts: time limit reached; \
         last status MFX_WRN_DEVICE_BUSY (2), 50 ms without progress, 0 frames pending, \
         implementation double"
    );
    assert_eq!(
        message(Settings::default(), 5),
        "DecodeFrameAsync yielded no frame after 1000 attempts: the runtime neither delivers nor \
         consumes; last status MFX_WRN_INCOMPATIBLE_VIDEO_PARAM (5), 0 ms without progress, \
         0 frames pending, implementation double"
    );
}
