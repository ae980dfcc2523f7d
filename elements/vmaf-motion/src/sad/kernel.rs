// SPDX-License-Identifier: MPL-2.0

//! Which code computes the SAD. The one place where the processor is looked at.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use thiserror::Error;

/// Name of the environment variable that overrides the choice.
pub const VARIABLE: &str = "VMAF_MOTION_CPU";

/// Code for the SAD of two planes. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// The reference, one sample after the other. Slow.
    Scalar,
    /// Plain Rust, vectorised by the compiler for what every processor of the target has.
    Portable,
    /// The same code compiled for AVX2.
    PortableAvx2,
    /// The same code compiled for AVX-512 (F, BW, DQ, VL).
    PortableAvx512,
    /// Written for AVX2; depths above 14 bit go to [`Kernel::PortableAvx2`].
    Avx2,
    /// Written for AVX-512 with VNNI and VBMI (Intel Ice Lake, AMD Zen 4, or later); 16 bit goes to
    /// [`Kernel::PortableAvx512`].
    Avx512,
}

impl Kernel {
    /// All kernels, whether this processor can run them or not.
    pub const ALL: [Self; 6] = [
        Self::Scalar,
        Self::Portable,
        Self::PortableAvx2,
        Self::PortableAvx512,
        Self::Avx2,
        Self::Avx512,
    ];

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::PortableAvx2 | Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::PortableAvx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::PortableAvx512.is_available()
                    && is_x86_feature_detected!("avx512vnni")
                    && is_x86_feature_detected!("avx512vbmi")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The kernels that this processor can run.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// The fastest kernel that this processor can run.
    pub fn best() -> Self {
        [Self::Avx512, Self::Avx2]
            .into_iter()
            .find(|kernel| kernel.is_available())
            .unwrap_or(Self::Portable)
    }

    /// The kernel that `VMAF_MOTION_CPU` names, or the best where it is unset or empty.
    ///
    /// # Errors
    /// [`KernelError`] when the variable names no kernel or one that this processor cannot run.
    pub fn from_env() -> Result<Self, KernelError> {
        Self::of_variable(std::env::var(VARIABLE))
    }

    fn of_variable(value: Result<String, std::env::VarError>) -> Result<Self, KernelError> {
        match value {
            Ok(name) if !name.is_empty() => name.parse(),
            Err(std::env::VarError::NotUnicode(name)) => Err(KernelError::Unknown {
                name: name.to_string_lossy().into_owned(),
            }),
            _ => Ok(Self::best()),
        }
    }

    /// [`Kernel::from_env`], read once in the life of the process, and the best kernel where that is
    /// an error. A caller that wants to report the error asks [`Kernel::from_env`] itself.
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Kernel> = OnceLock::new();
        *CHOSEN.get_or_init(|| Self::from_env().unwrap_or_else(|_| Self::best()))
    }

    /// Itself where this processor can run it.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`].
    pub fn require(self) -> Result<Self, KernelError> {
        if self.is_available() {
            Ok(self)
        } else {
            Err(KernelError::Unsupported { kernel: self })
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable-baseline",
            Self::PortableAvx2 => "portable-avx2",
            Self::PortableAvx512 => "portable-avx512",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = KernelError;

    /// `scalar`, `portable` (compiled for the widest vectors of this processor), `avx2`, `avx512`,
    /// or one of the portable ones by its full name.
    fn from_str(name: &str) -> Result<Self, KernelError> {
        if name == "portable" {
            let clones = [Self::PortableAvx512, Self::PortableAvx2];
            let widest = clones.into_iter().find(|kernel| kernel.is_available());
            return Ok(widest.unwrap_or(Self::Portable));
        }
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.name() == name)
            .ok_or_else(|| KernelError::Unknown {
                name: name.to_owned(),
            })?
            .require()
    }
}

/// A kernel that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    /// Not a name of a kernel.
    #[error(
        "there is no motion kernel named {name:?}: set {VARIABLE} to scalar, portable, avx2 or avx512, or unset it"
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The processor lacks instructions.
    #[error(
        "this processor cannot run the motion kernel {kernel}: set {VARIABLE} to portable or unset it"
    )]
    Unsupported {
        /// What was asked for.
        kernel: Kernel,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kernel in Kernel::available() {
            assert_eq!(kernel.to_string().parse(), Ok(kernel));
        }
        assert!("portable".parse::<Kernel>().is_ok_and(Kernel::is_available));
        let unknown = "sse9".parse::<Kernel>().unwrap_err().to_string();
        assert!(unknown.contains("sse9") && unknown.contains("VMAF_MOTION_CPU"));
    }

    #[test]
    fn the_variable_names_a_kernel_or_says_why_not() {
        use std::env::VarError;
        use std::os::unix::ffi::OsStringExt;
        let of = |text: &str| Kernel::of_variable(Ok(text.to_owned()));
        assert_eq!(of("scalar"), Ok(Kernel::Scalar));
        assert_eq!(of(""), Ok(Kernel::best()));
        assert_eq!(
            Kernel::of_variable(Err(VarError::NotPresent)),
            Ok(Kernel::best())
        );
        let unknown = |name: &str| {
            Err(KernelError::Unknown {
                name: name.to_owned(),
            })
        };
        assert_eq!(of("sse9"), unknown("sse9"));
        let bytes = std::ffi::OsString::from_vec(vec![b'a', 0xff]);
        let found = Kernel::of_variable(Err(VarError::NotUnicode(bytes)));
        assert_eq!(found, unknown("a\u{fffd}"));
    }

    #[test]
    fn a_kernel_that_is_not_there_is_refused() {
        for kernel in Kernel::ALL {
            let refused = kernel.to_string().parse::<Kernel>().is_err();
            assert_eq!(refused, !kernel.is_available());
        }
        assert!(Kernel::best().is_available());
    }
}
