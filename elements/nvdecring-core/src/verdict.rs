// SPDX-License-Identifier: MPL-2.0

//! What becomes of a picture that leaves: its surfaces go back, its damage is judged.

use std::time::Duration;

use crate::api::{DecodeStatus, ErrorClass, GpuApi, GpuError};
use crate::output::Damage;
use crate::ring::Ticket;
use crate::state::{Open, State};

impl<G: GpuApi> State<G> {
    /// Gives the surfaces of a slot back. The decoder is let go by the caller, outside the lock.
    pub(crate) fn release(&mut self, ticket: Ticket) -> Option<Open<G>> {
        let picture = self.ring.picture(ticket)?;
        let (hold, open) = (picture.hold.take(), picture.open.take());
        if let Some(hold) = hold {
            self.pictures.release(hold);
        }
        open
    }

    /// What can be said of a picture that was copied.
    pub(crate) fn judge(&mut self, ticket: Ticket, status: Option<DecodeStatus>) -> Damage {
        let Some(picture) = self.ring.picture(ticket) else {
            return Damage::None;
        };
        let (order, reference) = (picture.decoded.order, picture.decoded.reference);
        let damage = match status {
            Some(DecodeStatus::Error) => Damage::Errors,
            Some(DecodeStatus::Concealed) => Damage::Concealed,
            Some(DecodeStatus::Success | DecodeStatus::Unknown | DecodeStatus::InProgress)
            | None => {
                if self.health.depends_on_damage(order) {
                    Damage::References
                } else {
                    Damage::None
                }
            }
        };
        if reference && matches!(damage, Damage::Errors | Damage::Concealed) {
            self.health.damage(order);
        }
        self.health.intact();
        damage
    }
}

/// The error of a picture that is not decoded in time.
pub(crate) fn timed_out(limit: Duration) -> GpuError {
    GpuError {
        call: "cuvidGetDecodeStatus",
        // CUDA_ERROR_LAUNCH_TIMEOUT says the same of a kernel.
        code: 702,
        text: format!("in progress for {limit:?}"),
        class: ErrorClass::Single,
    }
}
