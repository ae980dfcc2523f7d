// SPDX-License-Identifier: MPL-2.0

//! The status table as text, made from the classifier itself.

use std::fmt::Write as _;

use crate::classify::{
    Action, Damage, Fault, Otherwise, Outcome, Retry, SyncAction, classify, classify_sync,
};
use crate::status::Status;

/// The table of the guide in Markdown: a row a status, the columns being what a `DecodeFrameAsync`
/// call means without and with a surface, and while draining, and what a wait means.
///
/// `docs/vplretry-core.md` carries exactly this text; a test compares the two.
pub fn status_table() -> String {
    let mut out = String::from(
        "| status | value | no surface, no sync | sync only | surface, with or without sync \
         | no surface, draining | wait |\n|---|---|---|---|---|---|---|\n",
    );
    for &(status, name) in Status::NAMED {
        row(
            &mut out,
            &format!("`{name}`"),
            &status.0.to_string(),
            status,
        );
    }
    row(&mut out, "any other error", "< 0", Status(i32::MIN));
    row(&mut out, "any other warning", "> 0", Status(i32::MAX));
    out
}

fn row(out: &mut String, name: &str, value: &str, status: Status) {
    let cell = |has_surface, has_sync, draining| {
        action_text(classify(
            Outcome {
                status,
                has_surface,
                has_sync,
            },
            draining,
        ))
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "| {name} | {value} | {} | {} | {} | {} | {} |",
        cell(false, false, false),
        cell(false, true, false),
        cell(true, true, false),
        cell(false, false, true),
        sync_text(classify_sync(status)),
    );
}

fn retry_text(retry: Retry) -> &'static str {
    match retry {
        Retry::Now => "retry now",
        Retry::ReadParams => "read parameters, retry now",
        Retry::Busy => "busy",
        Retry::Starved => "starved",
    }
}

fn damage_text(damage: Damage) -> &'static str {
    match damage {
        Damage::Unit => "soft error",
        Damage::UntilKeyframe => "soft error, wait for key frame",
    }
}

fn fault_text(fault: Fault) -> &'static str {
    match fault {
        Fault::Usage => "fatal (wrong call)",
        Fault::Unsupported => "fatal (unsupported)",
        Fault::NoMemory => "fatal (out of memory)",
        Fault::NotForDecoding => "fatal (not a decode status)",
    }
}

fn action_text(action: Action) -> String {
    match action {
        Action::Frame { reread: false } => "**frame**".into(),
        Action::Frame { reread: true } => "**frame**, then read parameters".into(),
        Action::Retry(retry) => retry_text(retry).into(),
        Action::SyncThenRetry(retry) => format!("wait, then {}", retry_text(retry)),
        Action::NeedInput => "need input".into(),
        Action::Eos => "drained".into(),
        Action::Reset => "reset once, else soft error".into(),
        Action::Grow => "grow buffer once, else soft error".into(),
        Action::Reinit(Otherwise::Soft) => {
            "re-init once, else soft error, wait for key frame".into()
        }
        Action::Reinit(Otherwise::Fatal) => "re-init once, else fatal (out of memory)".into(),
        Action::DeviceLost => "device lost".into(),
        Action::Soft(damage) => damage_text(damage).into(),
        Action::Fatal(fault) => fault_text(fault).into(),
    }
}

fn sync_text(action: SyncAction) -> String {
    match action {
        SyncAction::Done => "done".into(),
        SyncAction::DonePartial => "done, corrupted".into(),
        SyncAction::WaitAgain => "wait again".into(),
        SyncAction::FrameLost(Damage::Unit) => "frame lost".into(),
        SyncAction::FrameLost(Damage::UntilKeyframe) => "frame lost, wait for key frame".into(),
        SyncAction::DeviceLost => "device lost".into(),
        SyncAction::Fatal(fault) => fault_text(fault).into(),
    }
}
