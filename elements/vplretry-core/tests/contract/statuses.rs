// SPDX-License-Identifier: MPL-2.0

//! Every row of the status table, with all four combinations of surface and sync point, feeding and
//! draining, and as the end of a wait. The expectations are written out by hand.

use proptest::prelude::*;
use vplretry_core::{
    Action, Damage, Fault, Otherwise, Outcome, Retry, Status, SyncAction, classify, classify_sync,
};

/// What a status means: without a surface; with a sync point alone; with a surface (the sync point
/// does not matter then); as the end of a wait.
struct Row {
    value: i32,
    name: &'static str,
    plain: Action,
    sync_only: Action,
    surface: Action,
    wait: SyncAction,
    /// Without a surface while draining, where that differs.
    draining: Option<Action>,
}

const SOFT: Action = Action::Soft(Damage::Unit);
const SOFT_KEY: Action = Action::Soft(Damage::UntilKeyframe);
const USAGE: Action = Action::Fatal(Fault::Usage);
const UNSUPPORTED: Action = Action::Fatal(Fault::Unsupported);
const FOREIGN: Action = Action::Fatal(Fault::NotForDecoding);
const LOST: SyncAction = SyncAction::FrameLost(Damage::Unit);
const LOST_KEY: SyncAction = SyncAction::FrameLost(Damage::UntilKeyframe);
const FRAME: Action = Action::Frame { reread: false };

/// An error that means the same with and without surface, feeding and draining.
const fn error(value: i32, name: &'static str, action: Action, wait: SyncAction) -> Row {
    Row {
        value,
        name,
        plain: action,
        sync_only: action,
        surface: action,
        wait,
        draining: None,
    }
}

/// An error with a repair that needs the bytes again: draining has none.
const fn repair(value: i32, name: &'static str, action: Action) -> Row {
    Row {
        draining: Some(SOFT),
        ..error(value, name, action, LOST)
    }
}

/// A negative status that is a request; a surface with it breaks the rules.
const fn request(value: i32, name: &'static str, action: Action) -> Row {
    Row {
        surface: SOFT,
        ..error(value, name, action, LOST)
    }
}

/// Success or a warning: a surface is a frame, a sync point alone something to wait for.
const fn warning(value: i32, name: &'static str, retry: Retry, wait: SyncAction) -> Row {
    Row {
        value,
        name,
        plain: Action::Retry(retry),
        sync_only: Action::SyncThenRetry(retry),
        surface: FRAME,
        wait,
        draining: None,
    }
}

const REINIT: Action = Action::Reinit(Otherwise::Soft);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    warning(0, "MFX_ERR_NONE", Retry::Now, SyncAction::Done),
    error(-1, "MFX_ERR_UNKNOWN", SOFT_KEY, LOST_KEY),
    error(-2, "MFX_ERR_NULL_PTR", USAGE, SyncAction::Fatal(Fault::Usage)),
    error(-3, "MFX_ERR_UNSUPPORTED", UNSUPPORTED, SyncAction::Fatal(Fault::Unsupported)),
    repair(-4, "MFX_ERR_MEMORY_ALLOC", Action::Reinit(Otherwise::Fatal)),
    repair(-5, "MFX_ERR_NOT_ENOUGH_BUFFER", Action::Grow),
    error(-6, "MFX_ERR_INVALID_HANDLE", USAGE, SyncAction::Fatal(Fault::Usage)),
    error(-7, "MFX_ERR_LOCK_MEMORY", SOFT, LOST),
    error(-8, "MFX_ERR_NOT_INITIALIZED", USAGE, SyncAction::Fatal(Fault::Usage)),
    error(-9, "MFX_ERR_NOT_FOUND", SOFT, LOST),
    Row { draining: Some(Action::Eos), ..request(-10, "MFX_ERR_MORE_DATA", Action::NeedInput) },
    request(-11, "MFX_ERR_MORE_SURFACE", Action::Retry(Retry::Starved)),
    repair(-12, "MFX_ERR_ABORTED", Action::Reset),
    error(-13, "MFX_ERR_DEVICE_LOST", Action::DeviceLost, SyncAction::DeviceLost),
    repair(-14, "MFX_ERR_INCOMPATIBLE_VIDEO_PARAM", REINIT),
    repair(-15, "MFX_ERR_INVALID_VIDEO_PARAM", REINIT),
    error(-16, "MFX_ERR_UNDEFINED_BEHAVIOR", SOFT_KEY, LOST_KEY),
    error(-17, "MFX_ERR_DEVICE_FAILED", Action::DeviceLost, SyncAction::DeviceLost),
    error(-18, "MFX_ERR_MORE_BITSTREAM", FOREIGN, SyncAction::Fatal(Fault::NotForDecoding)),
    error(-21, "MFX_ERR_GPU_HANG", Action::DeviceLost, SyncAction::DeviceLost),
    repair(-22, "MFX_ERR_REALLOC_SURFACE", REINIT),
    error(-23, "MFX_ERR_RESOURCE_MAPPED", SOFT, LOST),
    error(-24, "MFX_ERR_NOT_IMPLEMENTED", UNSUPPORTED, SyncAction::Fatal(Fault::Unsupported)),
    error(-25, "MFX_ERR_MORE_EXTBUFFER", FOREIGN, SyncAction::Fatal(Fault::NotForDecoding)),
    warning(1, "MFX_WRN_IN_EXECUTION", Retry::Busy, SyncAction::WaitAgain),
    warning(2, "MFX_WRN_DEVICE_BUSY", Retry::Busy, SyncAction::WaitAgain),
    Row {
        surface: Action::Frame { reread: true },
        ..warning(3, "MFX_WRN_VIDEO_PARAM_CHANGED", Retry::ReadParams, SyncAction::Done)
    },
    warning(4, "MFX_WRN_PARTIAL_ACCELERATION", Retry::Now, SyncAction::Done),
    warning(5, "MFX_WRN_INCOMPATIBLE_VIDEO_PARAM", Retry::Now, SyncAction::Done),
    warning(6, "MFX_WRN_VALUE_NOT_CHANGED", Retry::Now, SyncAction::Done),
    warning(7, "MFX_WRN_OUT_OF_RANGE", Retry::Now, SyncAction::Done),
    warning(8, "MFX_TASK_WORKING", Retry::Busy, SyncAction::WaitAgain),
    warning(9, "MFX_TASK_BUSY", Retry::Busy, SyncAction::WaitAgain),
    warning(10, "MFX_WRN_FILTER_SKIPPED", Retry::Now, SyncAction::Done),
    warning(12, "MFX_ERR_NONE_PARTIAL_OUTPUT", Retry::Now, SyncAction::DonePartial),
    warning(13, "MFX_WRN_ALLOC_TIMEOUT_EXPIRED", Retry::Starved, SyncAction::WaitAgain),
    request(-10_000, "MFX_ERR_MORE_DATA_SUBMIT_TASK", Action::Retry(Retry::Busy)),
    // No header lists these.
    error(-9999, "", SOFT, LOST),
    error(i32::MIN, "", SOFT, LOST),
    warning(11, "", Retry::Now, SyncAction::WaitAgain),
    warning(14, "", Retry::Now, SyncAction::WaitAgain),
    warning(i32::MAX, "", Retry::Now, SyncAction::WaitAgain),
];

fn outcome(value: i32, has_surface: bool, has_sync: bool) -> Outcome {
    Outcome {
        status: Status(value),
        has_surface,
        has_sync,
    }
}

#[test]
fn every_row_with_all_combinations() {
    for row in ROWS {
        let value = row.value;
        for draining in [false, true] {
            let plain = row.draining.filter(|_| draining).unwrap_or(row.plain);
            let sync_only = row.draining.filter(|_| draining).unwrap_or(row.sync_only);
            // A repair is no repair while draining, with or without a surface.
            let surface = match row.surface {
                Action::Reset | Action::Grow | Action::Reinit(_) if draining => SOFT,
                action => action,
            };
            for (has_surface, has_sync, expected) in [
                (false, false, plain),
                (false, true, sync_only),
                (true, false, surface),
                (true, true, surface),
            ] {
                assert_eq!(
                    classify(outcome(value, has_surface, has_sync), draining),
                    expected,
                    "status {value}, surface {has_surface}, sync {has_sync}, draining {draining}"
                );
            }
        }
        assert_eq!(classify_sync(Status(value)), row.wait, "wait {value}");
    }
}

#[test]
fn every_named_status_is_a_row() {
    let named: Vec<_> = ROWS
        .iter()
        .filter(|row| !row.name.is_empty())
        .map(|row| (Status(row.value), row.name))
        .collect();
    assert_eq!(named, Status::NAMED);
}

#[test]
fn statuses_have_the_values_and_names_of_the_header() {
    assert_eq!(i32::from(Status::VIDEO_PARAM_CHANGED), 3);
    assert_eq!(i32::from(Status::WRN_INCOMPATIBLE_VIDEO_PARAM), 5);
    assert_eq!(i32::from(Status::INCOMPATIBLE_VIDEO_PARAM), -14);
    assert_eq!(Status::from(2), Status::DEVICE_BUSY);
    assert_eq!(Status(2).to_string(), "MFX_WRN_DEVICE_BUSY (2)");
    assert_eq!(Status(77).to_string(), "mfxStatus 77");
    assert_eq!(Status(77).name(), None);
}

/// The header of an installed libvpl-dev says the same; without one there is nothing to compare.
#[test]
fn statuses_agree_with_an_installed_header() {
    let Ok(header) = std::fs::read_to_string("/usr/include/vpl/mfxdefs.h") else {
        eprintln!("no /usr/include/vpl/mfxdefs.h: values not compared with a header");
        return;
    };
    let mut compared = 0;
    for line in header.lines() {
        let Some((name, rest)) = line.split_once('=') else {
            continue;
        };
        let value = rest.split(&[',', '/'][..]).next().unwrap_or("").trim();
        let Ok(value) = value.parse::<i32>() else {
            continue;
        };
        let name = name.trim();
        if let Some(&(status, _)) = Status::NAMED.iter().find(|(_, named)| *named == name) {
            assert_eq!(status.0, value, "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 35, "{compared} statuses found in the header");
}

proptest! {
    #[test]
    fn the_classifier_is_total(value: i32, has_surface: bool, has_sync: bool, draining: bool) {
        let action = classify(outcome(value, has_surface, has_sync), draining);
        let is_frame = matches!(action, Action::Frame { .. });
        prop_assert_eq!(is_frame, has_surface && value >= 0);
        if matches!(action, Action::SyncThenRetry(_)) {
            prop_assert!(has_sync && !has_surface && value >= 0);
        }
        if draining {
            let feeds_again = matches!(
                action,
                Action::NeedInput | Action::Reset | Action::Grow | Action::Reinit(_)
            );
            prop_assert!(!feeds_again);
        } else {
            prop_assert_ne!(action, Action::Eos);
        }
        if has_surface {
            let same = classify(outcome(value, true, !has_sync), draining);
            prop_assert_eq!(action, same);
        }
        if value < 0 {
            let finished = matches!(
                classify_sync(Status(value)),
                SyncAction::Done | SyncAction::DonePartial | SyncAction::WaitAgain
            );
            prop_assert!(!finished);
        }
    }
}
