// SPDX-License-Identifier: MPL-2.0

//! [`Error`]: why a call of this crate failed after the libraries were loaded.

use crate::{CuError, CuResult};

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The driver refused.
    #[error(transparent)]
    Cuda(#[from] CuError),
    /// The installed libnvcuvid lacks an optional function.
    #[error("the installed libnvcuvid lacks {0}: a newer NVIDIA driver has it")]
    Unsupported(&'static str),
    /// The picture index names no surface of the decoder.
    #[error("picture index {index} is outside the decoder's {surfaces} surfaces")]
    PictureIndex {
        /// The index that was given.
        index: i64,
        /// The decoder's surfaces.
        surfaces: u32,
    },
    /// A plane to be copied lies outside its surface or its target.
    #[error("plane {plane} does not fit: {what}")]
    Plane {
        /// Its number in the list.
        plane: usize,
        /// What it does not fit into.
        what: &'static str,
    },
    /// A decoder cannot be reconfigured while a surface of it is mapped.
    #[error("{0} surfaces are mapped: unmap them before the decoder is reconfigured")]
    SurfacesMapped(usize),
    /// A surface cannot be mapped while the decoder is being reconfigured.
    #[error("the decoder is being reconfigured")]
    Reconfiguring,
    /// A parameter is out of range.
    #[error("{0}")]
    Parameter(String),
    /// Two things belong to different contexts.
    #[error("{0} belongs to another CUDA context")]
    OtherContext(&'static str),
}

impl Error {
    /// The driver's code, where the driver is what failed.
    pub fn code(&self) -> Option<CuResult> {
        match self {
            Error::Cuda(error) => Some(error.code),
            _ => None,
        }
    }

    /// Whether the context is lost with it ([`CuResult::is_sticky`]).
    pub fn is_sticky(&self) -> bool {
        self.code().is_some_and(CuResult::is_sticky)
    }
}
