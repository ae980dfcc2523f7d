// SPDX-License-Identifier: MPL-2.0

//! Random scripts: whatever a runtime answers, every access unit has exactly one fate, the order is
//! kept, nothing leaks, and no stretch without progress outlasts its budget.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use vplretry_core::{CorruptedFrames, End, FrameLoop, Settings, Status};

use crate::double::{Double, DriverError, Say, Unit, Wait, say};
use crate::ledger::Fate;

/// A random stream and a random runtime.
#[derive(Debug, Clone)]
struct Case {
    /// Length and key frame flag of each access unit.
    units: Vec<(usize, bool)>,
    script: Vec<Say>,
    waits: Vec<Wait>,
    /// Statuses of recover, reinit, reset and read_parameters.
    others: [Vec<i32>; 4],
    delay: usize,
    bite: usize,
    latency_us: u64,
    async_depth: usize,
    oversleep: u32,
    can_grow: bool,
    device_retries: u32,
    corrupted: Vec<u32>,
    policy: CorruptedFrames,
}

fn any_status() -> impl Strategy<Value = i32> {
    prop_oneof![
        8 => (0..Status::NAMED.len()).prop_map(|i| Status::NAMED[i].0.0),
        1 => any::<i32>(),
    ]
}

/// Statuses after which decoding can go on: long runs need them.
fn mild_status() -> impl Strategy<Value = i32> {
    prop::sample::select(vec![
        0, 1, 2, 2, 2, 3, 4, 5, 8, 9, 12, 13, 13, -1, -5, -7, -10, -11, -12, -13, -14, -15, -16,
        -17, -21, -22, -10_000,
    ])
}

fn answer(status: impl Strategy<Value = i32>) -> impl Strategy<Value = Say> {
    (status, any::<bool>(), any::<bool>(), 0..8_u8).prop_map(|(status, surface, sync, kind)| {
        match kind {
            0 => Say::Eat(status),
            1 => Say::Nibble(status),
            2..4 => say(status),
            _ => Say::Status {
                status,
                surface,
                sync,
            },
        }
    })
}

fn script() -> impl Strategy<Value = Vec<Say>> {
    let answers = prop_oneof![
        6 => Just(vec![Say::Natural]),
        4 => answer(mild_status()).prop_map(|say| vec![say]),
        2 => (1..12_usize).prop_map(|n| vec![say(2); n]),
        1 => Just(vec![say(13); 4]),
    ];
    let mild = vec(answers, 0..60).prop_map(|parts| parts.concat());
    let wild = vec(answer(any_status()), 0..30);
    prop_oneof![3 => mild, 1 => wild]
}

fn case() -> impl Strategy<Value = Case> {
    let wait = prop_oneof![
        12 => Just(Wait::Natural),
        2 => Just(Wait::Status(1)),
        1 => Just(Wait::Hang),
        1 => any_status().prop_map(Wait::Status),
        2 => mild_status().prop_map(Wait::Status),
    ];
    let others = || vec(prop_oneof![4 => Just(0), 1 => any_status()], 0..5);
    let stream = (
        vec((1..300_usize, prop::bool::weighted(0.3)), 1..25),
        script(),
        vec(wait, 0..40),
        [others(), others(), others(), others()],
    );
    let decoder = (
        0..6_usize,
        prop_oneof![Just(usize::MAX), 1..200_usize],
        0..50_000_u64,
        0..6_usize,
        1..4_u32,
        any::<bool>(),
        0..4_u32,
    );
    let output = (
        vec(0..25_u32, 0..4),
        prop::sample::select(vec![
            CorruptedFrames::Mark,
            CorruptedFrames::Mark,
            CorruptedFrames::Drop,
            CorruptedFrames::Error,
        ]),
    );
    (stream, decoder, output).prop_map(
        |(
            (units, script, waits, others),
            (delay, bite, latency_us, async_depth, oversleep, can_grow, device_retries),
            (corrupted, policy),
        )| Case {
            units,
            script,
            waits,
            others,
            delay,
            bite,
            latency_us,
            async_depth,
            oversleep,
            can_grow,
            device_retries,
            corrupted,
            policy,
        },
    )
}

fn settings(case: &Case) -> Settings {
    Settings {
        async_depth: case.async_depth,
        max_attempts: 20,
        retry_timeout: Duration::from_millis(30),
        sync_timeout: Duration::from_millis(100),
        spin_guard: 15,
        device_retries: case.device_retries,
        corrupted_frames: case.policy,
        ..Settings::default()
    }
}

fn build(case: &Case) -> FrameLoop<Double> {
    let settings = settings(case);
    let mut double = Double::with_units(0)
        .script(case.script.iter().copied())
        .waits(case.waits.iter().copied());
    double.delay = case.delay;
    double.bite = case.bite;
    double.latency = Duration::from_micros(case.latency_us);
    double.oversleep = case.oversleep;
    double.can_grow = case.can_grow;
    let queues = [
        &mut double.recovers,
        &mut double.reinits,
        &mut double.resets,
        &mut double.params,
    ];
    for (queue, statuses) in queues.into_iter().zip(&case.others) {
        queue.extend(statuses);
    }
    double.corruption = case.corrupted.iter().map(|&id| (id, 1)).collect();
    double.formats = [(3, 640), (4, 640), (9, 1280)].into();
    // Both budgets, a grow and a sync point before the first pause; and in time the deadline, a
    // pause that overshot, two waits and the longest pause before a new session.
    let calls = settings.max_attempts + settings.spin_guard + 3;
    let time = Duration::from_secs(1);
    double.patience = Some((calls, time));
    double.into_loop(settings)
}

type Fed = Result<End, vplretry_core::Error<DriverError>>;

/// Feeds what the driver has, past damage.
fn feed(decode: &mut FrameLoop<Double>) -> Fed {
    loop {
        match decode.feed() {
            Ok(End::Damaged { .. }) => {}
            end => return end,
        }
    }
}

/// Feeds one access unit a call, as an element does.
fn feed_units(decode: &mut FrameLoop<Double>, case: &Case) -> Fed {
    for (id, &(len, key)) in case.units.iter().enumerate() {
        let id = id as u32;
        decode.driver_mut().hand_over(Unit { id, len, key });
        assert_eq!(feed(decode)?, End::NeedInput);
    }
    Ok(End::NeedInput)
}

/// Every unit has one fate (the double panics at a second one), nothing is alive, the counters
/// agree with the books.
fn check_books(decode: FrameLoop<Double>, failed: bool) {
    let stats = *decode.stats();
    let pending = decode.pending();
    let double = decode.into_driver();
    let ledger = &double.ledger;
    assert_eq!(ledger.live(), 0, "live surfaces");
    assert_eq!(pending, 0);
    if failed {
        ledger.error_the_rest();
    }
    let fates = ledger.fates();
    for (id, fate) in &fates {
        assert!(fate.is_some(), "unit {id} has no fate; {:#?}", double.log);
    }
    let discarded = fates
        .iter()
        .filter(|(_, fate)| matches!(fate, Some(Fate::Discarded(_))))
        .count();
    assert_eq!(stats.frames, ledger.published().len() as u64);
    assert_eq!(stats.discarded, discarded as u64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3000), ..ProptestConfig::default() })]

    #[test]
    fn every_unit_has_one_fate(case in case()) {
        let mut decode = build(&case);
        let end = feed_units(&mut decode, &case).and_then(|_| decode.drain());
        let failed = end.is_err();
        check_books(decode, failed);
    }

    #[test]
    fn so_it_is_when_cancelled_anywhere(
        case in case(),
        cancels in vec((0..25_usize, 0..60_u64), 1..6),
        resume: bool,
    ) {
        let mut decode = build(&case);
        let mut failed = false;
        for (id, &(len, key)) in case.units.iter().enumerate() {
            for &(_, calls) in cancels.iter().filter(|(at, _)| *at == id) {
                decode.driver().ledger.cancel_after(calls);
            }
            decode.driver_mut().hand_over(Unit { id: id as u32, len, key });
            match feed(&mut decode) {
                Ok(End::Cancelled) => {
                    decode.driver_mut().resume();
                    if !resume {
                        failed = decode.flush().is_err();
                        prop_assert_eq!(decode.driver().ledger.live(), 0);
                        // After a flush nothing that was handed over is still on its way.
                        if !failed {
                            let fates = decode.driver().ledger.fates();
                            prop_assert!(fates.iter().all(|(_, fate)| fate.is_some()));
                        }
                    }
                }
                Ok(end) => prop_assert_eq!(end, End::NeedInput),
                Err(_) => failed = true,
            }
            if failed {
                break;
            }
        }
        decode.driver_mut().resume();
        if !failed {
            failed = feed(&mut decode).and_then(|_| decode.drain()).is_err();
        }
        check_books(decode, failed);
    }

    #[test]
    fn a_cancelled_drain_ends_and_can_be_repeated(case in case(), calls in 0..40_u64) {
        let mut decode = build(&case);
        let mut failed = feed_units(&mut decode, &case).is_err();
        if !failed {
            decode.driver().ledger.cancel_after(calls);
            let cancelled = decode.drain();
            decode.driver_mut().resume();
            failed = match cancelled {
                Ok(End::Cancelled) => decode.drain().is_err(),
                Ok(_) => false,
                Err(_) => true,
            };
        }
        check_books(decode, failed);
    }

    /// Nothing but delays: every frame comes out, in order, and no budget ends it.
    #[test]
    fn a_runtime_that_is_only_slow_loses_nothing(
        units in 1..20_u32,
        busy in vec(0..19_usize, 0..40),
        delay in 0..5_usize,
        async_depth in 0..6_usize,
        latency_us in 0..99_000_u64,
    ) {
        let script = busy
            .iter()
            .flat_map(|&n| std::iter::repeat_n(say(2), n).chain([Say::Natural]));
        let mut double = Double::with_units(units).script(script);
        double.delay = delay;
        double.latency = Duration::from_micros(latency_us);
        let mut decode = double.into_loop(Settings {
            async_depth,
            max_attempts: 20,
            sync_timeout: Duration::from_millis(100),
            ..Settings::default()
        });
        prop_assert_eq!(decode.feed(), Ok(End::NeedInput));
        prop_assert_eq!(decode.drain(), Ok(End::Drained));
        let published = decode.driver().ledger.published();
        prop_assert_eq!(published, (0..units).collect::<Vec<_>>());
        check_books(decode, false);
    }
}
