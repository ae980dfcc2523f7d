// SPDX-License-Identifier: MPL-2.0

//! A decoder library without time, for the tests that bring their own clock.

use std::sync::Arc;

use super::*;

/// Decodes at once; every packet is a picture, in each surface in turn. With one surface each picture but the
/// first has to wait for the worker.
pub struct Instant {
    /// What is said of every picture.
    pub status: DecodeStatus,
    /// How many surfaces there are, at least 1.
    pub surfaces: u8,
}

impl Default for Instant {
    fn default() -> Self {
        Self {
            status: DecodeStatus::Success,
            surfaces: 1,
        }
    }
}

impl GpuApi for Instant {
    type Context = ();
    type Parser = bool;
    type Decoder = ();
    type Format = ();
    type Params = ();
    type Mapped = ();
    type Copy = ();
    type Frame = ();

    fn open_context(&self) -> Result<(), GpuError> {
        Ok(())
    }

    fn create_parser(&self) -> Result<bool, GpuError> {
        Ok(false)
    }

    fn parse(
        &self,
        begun: &mut bool,
        input: ParserInput<'_>,
        events: &mut dyn ParserEvents<Self>,
    ) -> Result<(), GpuError> {
        if input.end_of_stream {
            return Ok(());
        }
        if !std::mem::replace(begun, true) {
            events.sequence(&());
        }
        let turn = input
            .timestamp
            .unwrap_or(0)
            .rem_euclid(i64::from(self.surfaces));
        let index = u8::try_from(turn).unwrap_or(0);
        let info = PictureInfo {
            index,
            film_grain_reference: None,
            intra: true,
            reference: true,
            second_field: false,
        };
        if events.decode(info, &()) {
            events.display(Some(DisplayInfo {
                index,
                progressive: true,
                top_field_first: false,
                repeat_first_field: 0,
            }));
        }
        Ok(())
    }

    fn min_decode_surfaces(&self, (): &()) -> u8 {
        1
    }

    fn create_decoder(&self, _: &Arc<()>, (): &(), _: SurfacePlan) -> Result<(), GpuError> {
        Ok(())
    }

    fn fits(&self, (): &(), (): &(), _: SurfacePlan) -> bool {
        true
    }

    fn reconfigure(&self, (): &(), (): &(), _: SurfacePlan) -> Result<(), GpuError> {
        Ok(())
    }

    fn decode(&self, (): &(), (): &()) -> Result<(), GpuError> {
        Ok(())
    }

    fn status(&self, (): &(), _: u8) -> Result<DecodeStatus, GpuError> {
        Ok(self.status)
    }

    fn map(&self, _: &Arc<()>, _: &DisplayInfo) -> Result<(), GpuError> {
        Ok(())
    }

    fn begin_copy(&self, (): &(), (): &(), (): &()) -> Result<(), GpuError> {
        Ok(())
    }

    fn finish_copy(&self, (): ()) -> Result<(), GpuError> {
        Ok(())
    }

    fn unmap(&self, (): &(), (): ()) -> Result<(), GpuError> {
        Ok(())
    }
}

pub fn packet(token: u64) -> Packet {
    Packet {
        token: FrameToken(token),
        data: Box::new([0]),
        headers: None,
        end_of_picture: true,
        discontinuity: false,
    }
}
