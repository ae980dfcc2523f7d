// SPDX-License-Identifier: MPL-2.0

//! What a status means.
//!
//! Two rules come before the status: the surface is looked at first, and a sync point alone is
//! never a frame. A sync point without a surface is only a token to wait for, and only where the
//! call did not fail (some runtimes set one on every call, on `MFX_ERR_MORE_DATA` too).

use crate::status::Status;

/// What one `MFXVideoDECODE_DecodeFrameAsync` call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The returned status.
    pub status: Status,
    /// `surface_out` is not NULL.
    pub has_surface: bool,
    /// `syncp` is not NULL.
    pub has_sync: bool,
}

/// What to do after a `DecodeFrameAsync` call. With every action but [`Action::Frame`] a surface
/// that came along is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A frame: to be waited for and published.
    Frame {
        /// The stream parameters changed: read them again, after this frame is taken.
        reread: bool,
    },
    /// Call again with the same bytes.
    Retry(Retry),
    /// Wait for the sync point, then as [`Action::Retry`].
    SyncThenRetry(Retry),
    /// The runtime wants more bitstream.
    NeedInput,
    /// Draining is complete.
    Eos,
    /// Reset, feed the access unit again behind its parameter sets; if that was done for this
    /// access unit already, [`Damage::Unit`].
    Reset,
    /// Enlarge the bitstream buffer and call again; if that was done or cannot be done,
    /// [`Damage::Unit`].
    Grow,
    /// Drain, then initialise anew from the header in the unconsumed bytes; if that was done for
    /// this access unit already, as [`Otherwise`] says.
    Reinit(Otherwise),
    /// The device is gone: new session.
    DeviceLost,
    /// This access unit is lost, the stream goes on.
    Soft(Damage),
    /// No call can mend this.
    Fatal(Fault),
}

/// How a repeated call is paced and which budget it is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// At once; charged to the spin guard.
    Now,
    /// At once, after `MFXVideoDECODE_GetVideoParam`; charged to the spin guard.
    ReadParams,
    /// The device has no room: publish the oldest pending frame, else back off; charged to the
    /// busy budget.
    Busy,
    /// No surface is free: as [`Retry::Busy`], but the cause is downstream.
    Starved,
}

/// What is lost with a soft error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// This access unit.
    Unit,
    /// This access unit, and what refers to it: wait for a key frame. Repeated without a frame in
    /// between, it calls for a new session.
    UntilKeyframe,
}

/// What a second request for a re-initialisation within one access unit leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// [`Damage::UntilKeyframe`].
    Soft,
    /// [`Fault::NoMemory`].
    Fatal,
}

/// Why decoding cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A wrong call: NULL pointer, invalid handle, not initialised.
    Usage,
    /// The implementation does not support the stream or the function.
    Unsupported,
    /// Out of memory, also after a re-initialisation.
    NoMemory,
    /// A status that decoding cannot return.
    NotForDecoding,
}

/// Classifies a `DecodeFrameAsync` call. Total: every `i32`, with and without surface and sync
/// point, has an action. `draining` says that the call was made with a NULL bitstream; repairs that
/// feed the same bytes again do not exist then and become [`Damage::Unit`].
///
/// Source: `mfxvideo.h`, the error recovery chapter of the oneVPL specification, and what runtimes
/// were seen to return; the whole table is in `docs/vplretry-core.md`.
pub fn classify(outcome: Outcome, draining: bool) -> Action {
    let Outcome {
        status,
        has_surface,
        has_sync,
    } = outcome;
    if status.is_error() {
        return error_action(status, has_surface, draining);
    }
    if has_surface {
        return Action::Frame {
            reread: status == Status::VIDEO_PARAM_CHANGED,
        };
    }
    let retry = match status {
        Status::IN_EXECUTION | Status::DEVICE_BUSY | Status::TASK_WORKING | Status::TASK_BUSY => {
            Retry::Busy
        }
        Status::ALLOC_TIMEOUT_EXPIRED => Retry::Starved,
        Status::VIDEO_PARAM_CHANGED => Retry::ReadParams,
        _ => Retry::Now,
    };
    if has_sync {
        Action::SyncThenRetry(retry)
    } else {
        Action::Retry(retry)
    }
}

fn error_action(status: Status, has_surface: bool, draining: bool) -> Action {
    let repair = |action| {
        if draining {
            Action::Soft(Damage::Unit)
        } else {
            action
        }
    };
    match status {
        // These ask for another call and cannot come with a surface.
        Status::MORE_DATA | Status::MORE_SURFACE | Status::MORE_DATA_SUBMIT_TASK if has_surface => {
            Action::Soft(Damage::Unit)
        }
        Status::MORE_DATA if draining => Action::Eos,
        Status::MORE_DATA => Action::NeedInput,
        Status::MORE_SURFACE => Action::Retry(Retry::Starved),
        Status::MORE_DATA_SUBMIT_TASK => Action::Retry(Retry::Busy),

        Status::ABORTED => repair(Action::Reset),
        Status::NOT_ENOUGH_BUFFER => repair(Action::Grow),
        Status::INCOMPATIBLE_VIDEO_PARAM
        | Status::REALLOC_SURFACE
        | Status::INVALID_VIDEO_PARAM => repair(Action::Reinit(Otherwise::Soft)),
        Status::MEMORY_ALLOC => repair(Action::Reinit(Otherwise::Fatal)),

        _ => hard_error_action(status),
    }
}

/// The errors that mean the same whether `DecodeFrameAsync` or a wait returns them.
fn hard_error_action(status: Status) -> Action {
    match status {
        Status::DEVICE_LOST | Status::DEVICE_FAILED | Status::GPU_HANG => Action::DeviceLost,
        Status::UNKNOWN | Status::UNDEFINED_BEHAVIOR => Action::Soft(Damage::UntilKeyframe),
        Status::NULL_PTR | Status::INVALID_HANDLE | Status::NOT_INITIALIZED => {
            Action::Fatal(Fault::Usage)
        }
        Status::UNSUPPORTED | Status::NOT_IMPLEMENTED => Action::Fatal(Fault::Unsupported),
        Status::MORE_BITSTREAM | Status::MORE_EXTBUFFER => Action::Fatal(Fault::NotForDecoding),
        _ => Action::Soft(Damage::Unit),
    }
}

/// What to do after a wait (`MFXVideoCORE_SyncOperation` or the surface's `Synchronize`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncAction {
    /// The frame is complete.
    Done,
    /// The frame is complete in part: to be treated as corrupted.
    DonePartial,
    /// Not finished within the time of this call: wait again, until the sync timeout.
    WaitAgain,
    /// This frame is lost, the stream goes on.
    FrameLost(Damage),
    /// The device is gone: new session.
    DeviceLost,
    /// No call can mend this.
    Fatal(Fault),
}

/// Classifies the status of a wait. Total over `i32`.
///
/// Warnings that say something about the parameters come with finished work. An unlisted warning
/// counts as unfinished: a frame is never read too early, and the sync timeout ends the wait.
pub fn classify_sync(status: Status) -> SyncAction {
    match status {
        Status::NONE
        | Status::VIDEO_PARAM_CHANGED
        | Status::PARTIAL_ACCELERATION
        | Status::WRN_INCOMPATIBLE_VIDEO_PARAM
        | Status::VALUE_NOT_CHANGED
        | Status::OUT_OF_RANGE
        | Status::FILTER_SKIPPED => SyncAction::Done,
        Status::PARTIAL_OUTPUT => SyncAction::DonePartial,
        status if !status.is_error() => SyncAction::WaitAgain,
        // The next decode call meets the shortage again and has the repair for it.
        status => match hard_error_action(status) {
            Action::DeviceLost => SyncAction::DeviceLost,
            Action::Fatal(fault) => SyncAction::Fatal(fault),
            Action::Soft(damage) => SyncAction::FrameLost(damage),
            _ => SyncAction::FrameLost(Damage::Unit),
        },
    }
}
