// SPDX-License-Identifier: MPL-2.0

//! The ring's output: hands pictures to the element, if it still exists.

use gst::glib;
use nvdecring_core::{DropReason, Event, FrameToken, Observer, Sink};

use gst::subclass::prelude::*;

use crate::dec::NvdecRingDec;
use crate::target::{Api, Picture};

/// Where the pictures of one session go. It holds no reference to the element, which would keep it alive in
/// a thread that hangs.
pub(crate) struct Output {
    element: glib::WeakRef<NvdecRingDec>,
}

impl Output {
    pub(crate) fn new(element: glib::WeakRef<NvdecRingDec>) -> Self {
        Self { element }
    }
}

impl Sink<Api> for Output {
    fn picture(&mut self, picture: Picture) {
        if let Some(element) = self.element.upgrade() {
            element.imp().picture(picture);
        }
    }

    fn dropped(&mut self, token: FrameToken, reason: DropReason) {
        if let Some(element) = self.element.upgrade() {
            element.imp().without_picture(token, &reason);
        }
    }
}

/// What is worth telling of a session goes to the bus.
pub(crate) fn observer(element: glib::WeakRef<NvdecRingDec>) -> Observer {
    Box::new(move |event| {
        let Some(element) = element.upgrade() else {
            return;
        };
        match event {
            Event::Stalled { call, elapsed } => element.imp().stalled(call, elapsed),
            Event::Recovered { by, after } => element.imp().recovered(by, &after),
        }
    })
}
