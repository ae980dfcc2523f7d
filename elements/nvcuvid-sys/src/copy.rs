// SPDX-License-Identifier: MPL-2.0

//! [`PendingCopy`]: a copy out of a mapped surface. It owns the surface and the target until the device is
//! done, so that a surface is never unmapped, nor a target read or freed, too early.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUdeviceptr, CUmemorytype};

use crate::{CuError, Error, Event, MappedSurface, PinnedBuffer, SurfaceLayout};

/// One rectangle of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneCopy {
    /// Bytes from the surface's start; rows there are the surface's pitch apart.
    pub source: usize,
    /// Bytes of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes from the target's start.
    pub target: usize,
    /// Bytes from one row to the next in the target.
    pub target_pitch: usize,
}

/// The bytes from a plane's first to behind its last, or `None` where that is beyond any memory.
fn extent(start: usize, pitch: usize, width: usize, height: usize) -> Option<usize> {
    let rows = height.checked_sub(1)?.checked_mul(pitch)?;
    start.checked_add(rows)?.checked_add(width)
}

fn check_planes(
    planes: &[PlaneCopy],
    layout: &SurfaceLayout,
    target_size: usize,
) -> Result<(), Error> {
    let pitch = layout.pitch as usize;
    for (number, plane) in planes.iter().enumerate() {
        let refuse = |what| {
            Err(Error::Plane {
                plane: number,
                what,
            })
        };
        if plane.width == 0 || plane.height == 0 {
            return refuse("it is empty");
        }
        let source = extent(plane.source, pitch, plane.width, plane.height);
        if plane.width > pitch || source.is_none_or(|end| end > layout.size()) {
            return refuse("it ends outside the surface");
        }
        let target = extent(plane.target, plane.target_pitch, plane.width, plane.height);
        if plane.width > plane.target_pitch || target.is_none_or(|end| end > target_size) {
            return refuse("it ends outside the target");
        }
    }
    Ok(())
}

/// Where the planes go.
#[derive(Clone, Copy)]
enum Target {
    Host(*mut u8),
    Device(CUdeviceptr),
}

impl Target {
    fn memcpy(self, surface: u64, pitch: usize, plane: &PlaneCopy) -> CUDA_MEMCPY2D {
        let (kind, host, device) = match self {
            Target::Host(start) => (
                CUmemorytype::CU_MEMORYTYPE_HOST,
                start.wrapping_add(plane.target),
                0,
            ),
            Target::Device(start) => (
                CUmemorytype::CU_MEMORYTYPE_DEVICE,
                ptr::null_mut(),
                start.wrapping_add(plane.target as u64),
            ),
        };
        CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: surface.wrapping_add(plane.source as u64),
            srcArray: ptr::null_mut(),
            srcPitch: pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: kind,
            dstHost: host.cast(),
            dstDevice: device,
            dstArray: ptr::null_mut(),
            dstPitch: plane.target_pitch,
            WidthInBytes: plane.width,
            Height: plane.height,
        }
    }
}

/// A copy that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct CopyError<T> {
    /// Why.
    pub error: Error,
    /// The target, or `None` where the device may still write to it: then it is lost on purpose.
    pub target: Option<T>,
    /// The event, under the same condition.
    pub event: Option<Event>,
}

/// What is left of a copy that is done.
#[derive(Debug)]
pub struct Copied<T> {
    /// The target, with the planes in it.
    pub target: T,
    /// The event, for the next copy.
    pub event: Event,
}

/// A copy in flight. Dropping it waits, without a deadline, for the device.
#[derive(Debug)]
pub struct PendingCopy<T> {
    parts: ManuallyDrop<(Arc<MappedSurface>, T, Event)>,
}

impl MappedSurface {
    /// Puts the copy of `planes` into `buffer` into the surface's stream, and `event` behind it.
    ///
    /// # Errors
    /// [`Error::Plane`], [`Error::OtherContext`], or what the driver says. Nothing reads the surface then.
    pub fn copy_to_host(
        self: &Arc<Self>,
        buffer: PinnedBuffer,
        planes: &[PlaneCopy],
        event: Event,
    ) -> Result<PendingCopy<PinnedBuffer>, CopyError<PinnedBuffer>> {
        let (target, size) = (Target::Host(buffer.start()), buffer.size());
        if !buffer.context().is_same(self.decoder().context()) {
            return Err(CopyError {
                error: Error::OtherContext("the buffer"),
                target: Some(buffer),
                event: Some(event),
            });
        }
        start(self, buffer, target, size, planes, event)
    }

    /// Puts the copy of `planes` to the device address `target` into the surface's stream, and `event` behind
    /// it. `owner` is what keeps that memory.
    ///
    /// # Errors
    /// As for [`copy_to_host`](Self::copy_to_host).
    ///
    /// # Safety
    /// `target` has to be device memory of `size` bytes that the surface's context can write to, that `owner`
    /// keeps alive, and that nothing else writes to before the copy is done.
    pub unsafe fn copy_to_device<T>(
        self: &Arc<Self>,
        owner: T,
        target: CUdeviceptr,
        size: usize,
        planes: &[PlaneCopy],
        event: Event,
    ) -> Result<PendingCopy<T>, CopyError<T>> {
        start(self, owner, Target::Device(target), size, planes, event)
    }
}

fn start<T>(
    surface: &Arc<MappedSurface>,
    owner: T,
    target: Target,
    size: usize,
    planes: &[PlaneCopy],
    event: Event,
) -> Result<PendingCopy<T>, CopyError<T>> {
    let layout = surface.layout();
    if let Err(error) = check_planes(planes, &layout, size) {
        return Err(CopyError {
            error,
            target: Some(owner),
            event: Some(event),
        });
    }
    let enqueued = enqueue(surface, target, planes).and_then(|()| event.record(surface.stream()));
    match enqueued {
        Ok(()) => Ok(PendingCopy {
            parts: ManuallyDrop::new((surface.clone(), owner, event)),
        }),
        // Planes before the failing one may be on their way: the target is given back only if they are not.
        Err(error) => match surface.stream().synchronize() {
            Ok(()) => Err(CopyError {
                error,
                target: Some(owner),
                event: Some(event),
            }),
            Err(_) => {
                std::mem::forget((owner, event));
                Err(CopyError {
                    error,
                    target: None,
                    event: None,
                })
            }
        },
    }
}

fn enqueue(surface: &MappedSurface, target: Target, planes: &[PlaneCopy]) -> Result<(), Error> {
    let context = surface.decoder().context();
    let copy = context.driver().functions().cuMemcpy2DAsync_v2;
    let pitch = surface.layout().pitch as usize;
    context.with(|| {
        for plane in planes {
            let description = target.memcpy(surface.address(), pitch, plane);
            // SAFETY: `check_planes` compared the rectangle with surface and target, and both are kept until
            // the stream is known to be done with them.
            unsafe { copy(&description, surface.stream().raw()) }.check("cuMemcpy2DAsync")?;
        }
        Ok(())
    })
}

impl<T> PendingCopy<T> {
    /// Whether the device is done, without waiting.
    ///
    /// # Errors
    /// What the driver says; a failure of the copy, or of converting the picture, shows here.
    pub fn is_complete(&self) -> Result<bool, CuError> {
        self.parts.2.is_reached()
    }

    /// Waits, without a deadline, for the device, gives up the surface and gives the target back.
    ///
    /// # Errors
    /// What the driver says. The context is lost then, and the target with it: whether the device still writes
    /// to it is not known, so it is never freed.
    pub fn wait(mut self) -> Result<Copied<T>, CuError> {
        let synchronized = self.parts.2.synchronize();
        // SAFETY: `self` is forgotten below before anything reads the parts again.
        let (surface, target, event) = unsafe { ManuallyDrop::take(&mut self.parts) };
        std::mem::forget(self);
        drop(surface);
        match synchronized {
            Ok(()) => Ok(Copied { target, event }),
            Err(error) => {
                std::mem::forget((target, event));
                Err(error)
            }
        }
    }
}

impl<T> Drop for PendingCopy<T> {
    fn drop(&mut self) {
        let synchronized = self.parts.2.synchronize();
        // SAFETY: this is the only place but `wait`, which forgets `self`, and `self` ends here.
        let (surface, target, event) = unsafe { ManuallyDrop::take(&mut self.parts) };
        drop(surface);
        if synchronized.is_err() {
            // As in `wait`: the device may still write to it.
            std::mem::forget((target, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cudaVideoSurfaceFormat_NV12;

    const LAYOUT: SurfaceLayout = SurfaceLayout {
        format: cudaVideoSurfaceFormat_NV12,
        width: 64,
        height: 32,
        pitch: 128,
    };

    fn refused(plane: PlaneCopy, size: usize) -> Option<&'static str> {
        match check_planes(&[plane], &LAYOUT, size) {
            Ok(()) => None,
            Err(Error::Plane { plane: 0, what }) => Some(what),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_plane_fits_to_its_last_byte_and_no_further() {
        let chroma = PlaneCopy {
            source: 128 * 32,
            width: 128,
            height: 16,
            target: 0,
            target_pitch: 128,
        };
        assert_eq!(refused(chroma, 128 * 16), None);
        let surface = Some("it ends outside the surface");
        assert_eq!(
            refused(
                PlaneCopy {
                    source: chroma.source + 1,
                    ..chroma
                },
                4096
            ),
            surface
        );
        assert_eq!(
            refused(
                PlaneCopy {
                    height: 17,
                    ..chroma
                },
                4096
            ),
            surface
        );
        assert_eq!(
            refused(
                PlaneCopy {
                    width: 129,
                    target_pitch: 129,
                    ..chroma
                },
                4096
            ),
            surface
        );
        let target = Some("it ends outside the target");
        assert_eq!(refused(chroma, 128 * 16 - 1), target);
        assert_eq!(
            refused(
                PlaneCopy {
                    target_pitch: 127,
                    ..chroma
                },
                4096
            ),
            target
        );
        assert_eq!(
            refused(
                PlaneCopy {
                    target: usize::MAX,
                    ..chroma
                },
                4096
            ),
            target
        );
        assert_eq!(
            refused(
                PlaneCopy {
                    target_pitch: usize::MAX,
                    ..chroma
                },
                4096
            ),
            target
        );
        assert_eq!(
            refused(
                PlaneCopy {
                    height: 0,
                    ..chroma
                },
                4096
            ),
            Some("it is empty")
        );
    }
}
