// SPDX-License-Identifier: MPL-2.0

//! What the runtime says it is: software, or on demand hardware, so that applications which accept nothing
//! else decode with it. Nothing else changes: surfaces stay in system memory.

use std::sync::OnceLock;

use onevpl_sys::*;

/// `hardware` or `hardware:N`, N the number of the DRM render node that the dispatcher is told.
pub(crate) const VARIABLE: &str = "VPLSOFT_POSE";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pose {
    Software,
    /// Hardware behind VA-API.
    Hardware {
        render_node: Option<u32>,
    },
}

impl Pose {
    /// What `VARIABLE` asked for when the library was first asked. A value that is not understood is said
    /// on stderr and changes nothing.
    pub(crate) fn current() -> Self {
        static POSE: OnceLock<Pose> = OnceLock::new();
        *POSE.get_or_init(|| {
            let Some(text) = std::env::var_os(VARIABLE) else {
                return Self::Software;
            };
            Self::parse(&text.to_string_lossy()).unwrap_or_else(|| {
                eprintln!(
                    "vplsoft: {VARIABLE}={}: not one of software, hardware, hardware:N (render node); \
                     going on as software",
                    text.to_string_lossy()
                );
                Self::Software
            })
        })
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None if text.is_empty() || text == "software" => Some(Self::Software),
            None if text == "hardware" => Some(Self::Hardware { render_node: None }),
            Some(("hardware", node)) => Some(Self::Hardware {
                render_node: Some(node.parse().ok()?),
            }),
            _ => None,
        }
    }

    /// `mfxImplDescription.Impl`.
    pub(crate) fn kind(self) -> mfxImplType {
        match self {
            Self::Software => MFX_IMPL_TYPE_SOFTWARE,
            Self::Hardware { .. } => MFX_IMPL_TYPE_HARDWARE,
        }
    }

    pub(crate) fn acceleration(self) -> mfxAccelerationMode {
        match self {
            Self::Software => MFX_ACCEL_MODE_NA,
            Self::Hardware { .. } => MFX_ACCEL_MODE_VIA_VAAPI,
        }
    }

    /// Whether `Query` admits an `IOPattern` that `Init` refuses. GStreamer's qsv asks for video memory to
    /// find out what a device decodes, and then decodes to system memory.
    pub(crate) fn admits(self, pattern: u16) -> bool {
        self != Self::Software && u32::from(pattern) == MFX_IOPATTERN_OUT_VIDEO_MEMORY
    }

    /// `MFXQueryIMPL`.
    pub(crate) fn implementation(self) -> mfxIMPL {
        match self {
            Self::Software => MFX_IMPL_SOFTWARE as mfxIMPL,
            Self::Hardware { .. } => (MFX_IMPL_HARDWARE | MFX_IMPL_VIA_VAAPI) as mfxIMPL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_no_pose() {
        let hardware = |render_node| Some(Pose::Hardware { render_node });
        for (text, expected) in [
            ("", Some(Pose::Software)),
            ("software", Some(Pose::Software)),
            ("hardware", hardware(None)),
            ("hardware:129", hardware(Some(129))),
            ("hardware:", None),
            ("hardware:x", None),
            ("hardware:-1", None),
            ("software:1", None),
            ("gpu", None),
        ] {
            assert_eq!(Pose::parse(text), expected, "{text}");
        }
    }
}
