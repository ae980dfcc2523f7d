// SPDX-License-Identifier: MPL-2.0

//! Where pictures are copied to.

use nvdecring_gpu::{HostMemory, Nvdec};

/// The decoder library as this element uses it.
pub(crate) type Api = Nvdec<HostMemory>;

/// A session of it.
pub(crate) type Session = nvdecring_core::Session<Api>;

/// A decoded picture.
pub(crate) type Picture = nvdecring_core::Picture<Api>;
