// SPDX-License-Identifier: MPL-2.0

//! The properties that a user sets.

use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use nvdecring_core::{Config, Error, Overflow, RingDepth};
use nvdecring_gpu::Codec;

use super::{NvdecRingCorrupted, NvdecRingOverflow};

/// Milliseconds that one call may be given at most: ten minutes.
const LONGEST: u32 = 600_000;
/// A call that is not back after this many times the decode timeout will not come back.
const WEDGED: u32 = 4;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    ring_depth: u32,
    overflow: NvdecRingOverflow,
    decode_timeout: u32,
    max_display_delay: u32,
    num_output_surfaces: u32,
    pub(super) cuda_device_id: u32,
    pub(super) cuda_memory: bool,
    pub(super) corrupted_frames: NvdecRingCorrupted,
    pub(super) frame_messages: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ring_depth: 8,
            overflow: NvdecRingOverflow::default(),
            decode_timeout: 500,
            max_display_delay: 0,
            num_output_surfaces: 2,
            cuda_device_id: 0,
            cuda_memory: false,
            corrupted_frames: NvdecRingCorrupted::default(),
            frame_messages: false,
        }
    }
}

fn count(
    name: &str,
    nick: &str,
    blurb: &str,
    (min, max): (u32, u32),
    default: u32,
) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(min)
        .maximum(max)
        .default_value(default)
        .mutable_ready()
        .build()
}

fn switch(name: &str, nick: &str, blurb: &str, default: bool) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_ready()
        .build()
}

/// All properties, `stats` included.
pub(super) fn properties() -> Vec<glib::ParamSpec> {
    let defaults = Settings::default();
    vec![
        count(
            "ring-depth",
            "Ring depth",
            "Pictures that may wait between the parser and downstream; each takes a decode surface more",
            (1, RingDepth::MAX.into()),
            defaults.ring_depth,
        ),
        glib::ParamSpecEnum::builder_with_default("overflow", defaults.overflow)
            .nick("Overflow")
            .blurb("What happens to a frame that comes while the ring is full")
            .mutable_ready()
            .build(),
        count(
            "decode-timeout",
            "Decode timeout",
            "Milliseconds that the oldest picture may take before it is given up; a call of the driver that \
             takes four times as long, and at least 2 seconds, ends the stream",
            (1, LONGEST),
            defaults.decode_timeout,
        ),
        count(
            "max-display-delay",
            "Maximum display delay",
            "Pictures that the parser may hold back beyond what reordering needs (ulMaxDisplayDelay); the ring \
             overlaps decoding and output without any. Always 0 for VP8, VP9 and AV1",
            (0, 4),
            defaults.max_display_delay,
        ),
        count(
            "num-output-surfaces",
            "Output surfaces",
            "Pictures mapped at a time: 2 to copy one while the next is mapped, 1 to save the memory",
            (1, 2),
            defaults.num_output_surfaces,
        ),
        count(
            "cuda-device-id",
            "CUDA device",
            "Number of the CUDA device that decodes",
            (0, i32::MAX as u32),
            defaults.cuda_device_id,
        ),
        switch(
            "cuda-memory",
            "CUDA memory",
            "Offer pictures in device memory (memory:CUDAMemory) where downstream takes them",
            defaults.cuda_memory,
        ),
        glib::ParamSpecEnum::builder_with_default("corrupted-frames", defaults.corrupted_frames)
            .nick("Corrupted frames")
            .blurb("What happens to a picture that the device could not decode whole")
            .mutable_ready()
            .build(),
        switch(
            "frame-messages",
            "Frame messages",
            "Post an element message nvdecringdec-frame with the times of each picture",
            defaults.frame_messages,
        ),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb("Account of the frames since the element was started (nvdecringdec-stats)")
            .read_only()
            .build(),
    ]
}

/// The value of a property whose type GObject has checked.
fn checked<'v, T: glib::value::FromValue<'v>>(value: &'v glib::Value) -> T {
    value.get().expect("GObject has checked the type")
}

impl Settings {
    pub(super) fn set(&mut self, value: &glib::Value, pspec: &glib::ParamSpec) {
        match pspec.name() {
            "ring-depth" => self.ring_depth = checked(value),
            "overflow" => self.overflow = checked(value),
            "decode-timeout" => self.decode_timeout = checked(value),
            "max-display-delay" => self.max_display_delay = checked(value),
            "num-output-surfaces" => self.num_output_surfaces = checked(value),
            "cuda-device-id" => self.cuda_device_id = checked(value),
            "cuda-memory" => self.cuda_memory = checked(value),
            "corrupted-frames" => self.corrupted_frames = checked(value),
            "frame-messages" => self.frame_messages = checked(value),
            name => unreachable!("{name} is no property that can be set"),
        }
    }

    /// `None` for what is no setting.
    pub(super) fn get(&self, pspec: &glib::ParamSpec) -> Option<glib::Value> {
        Some(match pspec.name() {
            "ring-depth" => self.ring_depth.to_value(),
            "overflow" => self.overflow.to_value(),
            "decode-timeout" => self.decode_timeout.to_value(),
            "max-display-delay" => self.max_display_delay.to_value(),
            "num-output-surfaces" => self.num_output_surfaces.to_value(),
            "cuda-device-id" => self.cuda_device_id.to_value(),
            "cuda-memory" => self.cuda_memory.to_value(),
            "corrupted-frames" => self.corrupted_frames.to_value(),
            "frame-messages" => self.frame_messages.to_value(),
            _ => return None,
        })
    }

    /// Pictures that the ring holds, and that the parser may hold back.
    pub(super) fn depth_and_delay(&self) -> (u32, u8) {
        let delay = u8::try_from(self.max_display_delay).unwrap_or(u8::MAX);
        (self.ring_depth, delay)
    }

    /// How often the watchdog looks: twice before a call counts as stalled.
    pub(super) fn watch_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.decode_timeout / 2).clamp(10, 500))
    }

    /// The ring's configuration for a codec.
    ///
    /// # Errors
    /// [`Error::Config`], which the ranges of the properties rule out.
    pub(super) fn config(&self, codec: Codec) -> Result<Config, Error> {
        let mut config = Config::new(codec.identity());
        let small = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        config.ring_depth = RingDepth::try_from(small(self.ring_depth))?;
        config.overflow = match self.overflow {
            NvdecRingOverflow::Block => Overflow::Block,
            NvdecRingOverflow::Fail => Overflow::Fail,
        };
        config.packets_ahead = nvdecring_core::PACKETS_AHEAD;
        config.decode_timeout = Duration::from_millis(self.decode_timeout.into());
        config.wedge_timeout = config
            .wedge_timeout
            .max(config.decode_timeout.saturating_mul(WEDGED));
        config.open_timeout = config.open_timeout.max(config.wedge_timeout);
        config.display_delay = codec.display_delay(small(self.max_display_delay));
        config.output_surfaces = small(self.num_output_surfaces);
        config.check()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_in_its_range_is_a_configuration() {
        for depth in [1, 16] {
            for delay in [0, 4] {
                let settings = Settings {
                    ring_depth: depth,
                    max_display_delay: delay,
                    num_output_surfaces: 1,
                    decode_timeout: LONGEST,
                    ..Settings::default()
                };
                for codec in Codec::ALL {
                    let config = settings.config(codec).expect("it is in range");
                    assert_eq!(config.ring_depth.get(), depth as u8);
                    assert!(config.wedge_timeout > config.decode_timeout);
                }
            }
        }
        let config = Settings::default().config(Codec::H264).expect("defaults");
        assert_eq!(config.decode_timeout, Duration::from_millis(500));
        assert_eq!(config.wedge_timeout, Duration::from_secs(2));
    }
}
