// SPDX-License-Identifier: MPL-2.0

//! When a frame is shown, in the time lines GStreamer knows.

use gst::ClockTime;

/// The times of a frame. Each is `None` where the stream does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameTimes {
    /// Presentation timestamp of the buffer.
    pub timestamp: Option<ClockTime>,
    /// Position in the media (what a player shows).
    pub stream_time: Option<ClockTime>,
    /// Position on the pipeline's clock since it plays (what a sink synchronises to).
    pub running_time: Option<ClockTime>,
    /// From the buffer, else one frame of the caps' framerate.
    pub duration: Option<ClockTime>,
}

impl FrameTimes {
    /// The times of `buffer` in `segment`; `frame_duration` stands in where the buffer has none.
    pub(crate) fn of(
        buffer: &gst::BufferRef,
        segment: &gst::Segment,
        frame_duration: Option<ClockTime>,
    ) -> Self {
        let timestamp = buffer.pts();
        let segment = segment.downcast_ref::<ClockTime>();
        Self {
            timestamp,
            stream_time: segment.and_then(|segment| segment.to_stream_time(timestamp)),
            running_time: segment.and_then(|segment| segment.to_running_time(timestamp)),
            duration: buffer.duration().or(frame_duration),
        }
    }

    /// End of the frame on the timestamps' line.
    pub(crate) fn end(&self) -> Option<ClockTime> {
        let end = self
            .timestamp?
            .checked_add(self.duration.unwrap_or(ClockTime::ZERO));
        end.or(self.timestamp)
    }

    pub(crate) fn write(&self, structure: &mut gst::StructureRef) {
        structure.set("timestamp", self.timestamp);
        structure.set("stream-time", self.stream_time);
        structure.set("running-time", self.running_time);
        structure.set("duration", self.duration);
    }

    pub(crate) fn read(structure: &gst::StructureRef) -> Self {
        let time = |name: &str| structure.get::<Option<ClockTime>>(name).ok().flatten();
        Self {
            timestamp: time("timestamp"),
            stream_time: time("stream-time"),
            running_time: time("running-time"),
            duration: time("duration"),
        }
    }
}
