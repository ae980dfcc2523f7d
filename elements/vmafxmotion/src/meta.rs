// SPDX-License-Identifier: MPL-2.0

//! The scores on a buffer: a `GstCustomMeta` that Rust, C and Python read without our headers.

use gst::glib;
use gst::meta::CustomMeta;

use crate::messages::{Fields, WrongStructure};

/// Name of the meta and of its structure.
pub const META_NAME: &str = "VmafxMotionMeta";

/// Registers the meta with GStreamer, once for all callers. Without tags: elements that copy or
/// convert the picture keep it.
pub(crate) fn register() {
    if !CustomMeta::is_registered(META_NAME) {
        CustomMeta::register(META_NAME, &[]);
    }
}

/// The frames whose scores became final with a buffer: one, or the first two of a five-frame
/// window, which have equal scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FinalFrames {
    /// First of them (field `final-first`).
    pub first: u64,
    /// Last of them (field `final-frame`).
    pub last: u64,
    /// Their `motion2`.
    pub motion2: f64,
    /// Their `motion3`.
    pub motion3: f64,
}

/// What the element puts on a buffer.
///
/// | field | type | is |
/// |---|---|---|
/// | `session` | u64 | number of the session, from 0 |
/// | `frame` | u64 | index of this frame in its session, from 0 |
/// | `motion` | f64 | score of this frame against the one before (final at once) |
/// | `final-first`, `final-frame` | u64 | frames that became final with this buffer; absent if none did |
/// | `motion2`, `motion3` | f64 | the scores of those frames; absent if none did |
/// | `final` | bool | they are the scores of this very frame |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MotionScore {
    /// Number of the session, from 0.
    pub session: u64,
    /// Index of this frame in its session, from 0.
    pub frame: u64,
    /// Score of this frame against the earlier frame of its window.
    pub motion: f64,
    /// What became final with this buffer.
    pub finals: Option<FinalFrames>,
    /// Whether `finals` speaks of this very frame.
    pub is_final: bool,
}

impl MotionScore {
    /// The scores on a buffer, or `None` where no `vmafxmotion` has seen it.
    pub fn from_buffer(buffer: &gst::BufferRef) -> Option<Self> {
        if !CustomMeta::is_registered(META_NAME) {
            return None;
        }
        let meta = CustomMeta::from_buffer(buffer, META_NAME).ok()?;
        Self::try_from(meta.structure()).ok()
    }

    /// Puts the scores on a buffer, in the place of those of an element further up.
    ///
    /// # Errors
    /// When the meta is not registered.
    pub(crate) fn attach(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        // Asking by name allocates; most buffers have no custom meta at all.
        let some = buffer
            .iter_meta::<gst::Meta>()
            .any(|meta| meta.try_as_custom_meta().is_some());
        if some && let Ok(mut meta) = CustomMeta::from_mut_buffer(buffer, META_NAME) {
            meta.mut_structure().remove_fields([
                "final-first",
                "final-frame",
                "motion2",
                "motion3",
            ]);
            self.write(meta.mut_structure());
            return Ok(());
        }
        self.write(CustomMeta::add(buffer, META_NAME)?.mut_structure());
        Ok(())
    }

    fn write(&self, structure: &mut gst::StructureRef) {
        structure.set("session", self.session);
        structure.set("frame", self.frame);
        structure.set("motion", self.motion);
        if let Some(finals) = self.finals {
            structure.set("final-first", finals.first);
            structure.set("final-frame", finals.last);
            structure.set("motion2", finals.motion2);
            structure.set("motion3", finals.motion3);
        }
        structure.set("final", self.is_final);
    }
}

/// The structure of the meta, as `gst_custom_meta_get_structure` gives it.
impl TryFrom<&gst::StructureRef> for MotionScore {
    type Error = WrongStructure;

    fn try_from(structure: &gst::StructureRef) -> Result<Self, WrongStructure> {
        let fields = Fields::of(structure, META_NAME)?;
        let finals = || {
            Some(FinalFrames {
                first: structure.get("final-first").ok()?,
                last: structure.get("final-frame").ok()?,
                motion2: structure.get("motion2").ok()?,
                motion3: structure.get("motion3").ok()?,
            })
        };
        Ok(Self {
            session: fields.get("session")?,
            frame: fields.get("frame")?,
            motion: fields.get("motion")?,
            finals: finals(),
            is_final: fields.get("final")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORE: MotionScore = MotionScore {
        session: 3,
        frame: 9,
        motion: 1.25,
        finals: Some(FinalFrames {
            first: 8,
            last: 8,
            motion2: 0.1,
            motion3: 0.2,
        }),
        is_final: false,
    };

    #[test]
    fn what_is_attached_is_read() {
        gst::init().unwrap();
        register();
        register();
        let mut buffer = gst::Buffer::new();
        assert_eq!(MotionScore::from_buffer(&buffer), None);
        SCORE.attach(buffer.make_mut()).unwrap();
        assert_eq!(MotionScore::from_buffer(&buffer), Some(SCORE));
        assert_eq!(MotionScore::from_buffer(&buffer.copy()), Some(SCORE));
    }

    #[test]
    fn a_second_element_s_scores_replace_the_first_s() {
        gst::init().unwrap();
        register();
        let mut buffer = gst::Buffer::new();
        SCORE.attach(buffer.make_mut()).unwrap();
        let other = MotionScore {
            finals: None,
            motion: 2.0,
            ..SCORE
        };
        other.attach(buffer.make_mut()).unwrap();
        assert_eq!(MotionScore::from_buffer(&buffer), Some(other));
        assert_eq!(buffer.iter_meta::<gst::Meta>().count(), 1);
    }
}
