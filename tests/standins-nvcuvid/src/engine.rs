// SPDX-License-Identifier: MPL-2.0

//! The device's engines.

use std::time::Duration;

use av_backend::Engines;

/// Pictures that the driver queues; one more waits in `cuvidDecodePicture`.
pub const QUEUE: usize = 4;

/// What a picture takes where nobody says otherwise: long enough that its status is seen to be in progress.
pub const DEFAULT_LATENCY: Duration = Duration::from_micros(200);

/// The engines, where the faults say how many there are. The device is one for the whole process.
pub static ENGINES: Engines = Engines::new();

/// Never returns.
pub fn hang(call: &str) -> ! {
    av_backend::pin::hang("standin_nvcuvid", call)
}
