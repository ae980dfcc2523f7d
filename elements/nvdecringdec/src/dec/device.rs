// SPDX-License-Identifier: MPL-2.0

//! Pictures in device memory: the context that is shared with other elements, and whether downstream takes them.

use std::sync::Arc;

use gst::prelude::*;
use gst::subclass::prelude::*;
use nvcuvid_sys::Context;

use super::imp::{CAT, NvdecRingDec, lock};
use super::settings::Settings;
use crate::caps;
use crate::gstcuda::GstCuda;
use crate::target::DeviceMemory;

impl NvdecRingDec {
    /// Gets or makes the shared context, if device memory was asked for and can be had.
    pub(super) fn open_shared_context(&self) {
        let (wanted, device) = {
            let settings = lock(&self.settings);
            (settings.cuda_memory, settings.cuda_device_id)
        };
        if !wanted {
            return;
        }
        match GstCuda::get() {
            Ok(library) => {
                let obj = self.obj();
                let context = library.context(obj.upcast_ref(), device);
                if context.is_none() {
                    gst::warning!(
                        CAT,
                        imp = self,
                        "no CUDA context of GStreamer's for device {device}: pictures come in system memory"
                    );
                }
                lock(&self.shared).clone_from(&context);
            }
            Err(reason) => gst::warning!(
                CAT,
                imp = self,
                "cuda-memory: {reason}; pictures come in system memory"
            ),
        }
    }

    /// A context that the application or another element offers.
    pub(super) fn take_shared_context(&self, offered: &gst::Context) {
        if offered.context_type() != "gst.cuda.context" {
            return;
        }
        let (wanted, device) = {
            let settings = lock(&self.settings);
            (settings.cuda_memory, settings.cuda_device_id)
        };
        let (true, Ok(library)) = (wanted, GstCuda::get()) else {
            return;
        };
        let current = lock(&self.shared).clone();
        let obj = self.obj();
        let context = library.take_context(obj.upcast_ref(), offered, device, current);
        *lock(&self.shared) = context;
    }

    /// Answers a neighbour that looks for the shared context.
    pub(super) fn answers_context(&self, query: &mut gst::QueryRef) -> bool {
        if query.type_() != gst::QueryType::Context {
            return false;
        }
        let Some(context) = lock(&self.shared).clone() else {
            return false;
        };
        let obj = self.obj();
        GstCuda::get().is_ok_and(|library| library.answer(obj.upcast_ref(), query, &context))
    }

    /// Where pictures go, if downstream takes device memory.
    pub(super) fn device_memory(
        &self,
        settings: &Settings,
    ) -> Option<(Arc<Context>, DeviceMemory)> {
        if !settings.cuda_memory {
            return None;
        }
        let shared = lock(&self.shared).clone()?;
        let library = GstCuda::get().ok()?;
        let pad = self.obj().static_pad("src")?;
        let allowed = pad.allowed_caps()?;
        if !caps::take_device_memory(&allowed) {
            gst::info!(CAT, imp = self, "downstream takes no device memory");
            return None;
        }
        match library.driver_context(&shared) {
            Ok(context) => Some((context, DeviceMemory::new(library, shared))),
            Err(error) => {
                gst::warning!(CAT, imp = self, "no device memory: {error}");
                None
            }
        }
    }
}
