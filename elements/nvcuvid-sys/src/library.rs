// SPDX-License-Identifier: MPL-2.0

//! [`Nvcuvid`]: `libnvcuvid.so.1`, opened at the first use and never closed, with its functions as a table.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

use crate::LoadError;
use crate::bindings::*;
use crate::load::{address_of, explain, file_of};

/// Where it is looked for, in order: a driver installs the first name, its development package the second.
const NAMES: [&str; 2] = ["libnvcuvid.so.1", "libnvcuvid.so"];

macro_rules! functions {
    ($($name:ident: $type:ty, $need:ident;)*) => {
        /// The functions of libnvcuvid. Their documentation is that of the headers.
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case, reason = "the names are those of the C interface")]
        pub struct NvcuvidFunctions {
            $(
                #[doc = concat!("`", stringify!($name), "` (", stringify!($need), ")")]
                pub $name: functions!(@field $need, $type),
            )*
        }

        impl NvcuvidFunctions {
            fn load(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $(
                        $name: {
                            // SAFETY: the symbol is libnvcuvid's; the type is generated from its header.
                            let symbol = unsafe { library.get::<$type>(stringify!($name)) };
                            functions!(@take $need, symbol.ok().and_then(|s| *s), stringify!($name))
                        },
                    )*
                })
            }

            /// The functions without which the library is of no use.
            pub const MANDATORY: &[&str] =
                &functions!(@list mandatory, [] $($need stringify!($name);)*);
        }
    };
    (@field mandatory, $type:ty) => { <$type as Function>::Pointer };
    (@field optional, $type:ty) => { $type };
    (@take mandatory, $symbol:expr, $name:expr) => { $symbol.ok_or($name)? };
    (@take optional, $symbol:expr, $name:expr) => { $symbol };
    (@list mandatory, [$($names:expr,)*]) => { [$($names),*] };
    (@list mandatory, [$($names:expr,)*] mandatory $name:expr; $($rest:tt)*) => {
        functions!(@list mandatory, [$($names,)* $name,] $($rest)*)
    };
    (@list mandatory, [$($names:expr,)*] optional $name:expr; $($rest:tt)*) => {
        functions!(@list mandatory, [$($names,)*] $($rest)*)
    };
}

/// What is inside the `Option` of a generated function type.
pub trait Function {
    /// The pointer that is never null.
    type Pointer;
}

impl<P> Function for Option<P> {
    type Pointer = P;
}

functions! {
    cuvidCreateVideoParser: tcuvidCreateVideoParser, mandatory;
    cuvidParseVideoData: tcuvidParseVideoData, mandatory;
    cuvidDestroyVideoParser: tcuvidDestroyVideoParser, mandatory;
    cuvidGetDecoderCaps: tcuvidGetDecoderCaps, mandatory;
    cuvidCreateDecoder: tcuvidCreateDecoder, mandatory;
    cuvidDestroyDecoder: tcuvidDestroyDecoder, mandatory;
    cuvidDecodePicture: tcuvidDecodePicture, mandatory;
    cuvidMapVideoFrame64: tcuvidMapVideoFrame64, mandatory;
    cuvidUnmapVideoFrame64: tcuvidUnmapVideoFrame64, mandatory;
    cuvidGetDecodeStatus: tcuvidGetDecodeStatus, optional;
    cuvidReconfigureDecoder: tcuvidReconfigureDecoder, optional;
}

/// The loaded library.
#[derive(Debug)]
pub struct Nvcuvid {
    functions: NvcuvidFunctions,
    library: ManuallyDrop<Library>,
}

impl Nvcuvid {
    /// Opens the library. Later calls answer the same; after a failure they try again.
    ///
    /// # Errors
    /// [`LoadError::NoNvcuvid`] where it is not installed, [`LoadError::IncompleteNvcuvid`] where it lacks a
    /// mandatory function.
    pub fn load() -> Result<&'static Nvcuvid, LoadError> {
        static NVCUVID: OnceLock<Nvcuvid> = OnceLock::new();
        if let Some(library) = NVCUVID.get() {
            return Ok(library);
        }
        let library = Self::open()?;
        Ok(NVCUVID.get_or_init(|| library))
    }

    fn open() -> Result<Nvcuvid, LoadError> {
        let mut reasons = Vec::new();
        for name in NAMES {
            // SAFETY: loading libnvcuvid runs its own set-up and nothing else.
            let library = match unsafe { Library::new(name) } {
                Ok(library) => ManuallyDrop::new(library),
                Err(error) => {
                    reasons.push(explain(&error));
                    continue;
                }
            };
            return match NvcuvidFunctions::load(&library) {
                Ok(functions) => Ok(Nvcuvid { functions, library }),
                Err(function) => Err(LoadError::IncompleteNvcuvid {
                    library: loaded_name(&library).unwrap_or_else(|| name.to_owned()),
                    function,
                }),
            };
        }
        Err(LoadError::NoNvcuvid {
            reason: reasons.swap_remove(0),
        })
    }

    /// The table, for calls that this crate does not wrap.
    pub fn functions(&self) -> &NvcuvidFunctions {
        &self.functions
    }

    /// Whether the driver has `cuvidGetDecodeStatus`. It still answers only for some codecs.
    pub fn has_decode_status(&self) -> bool {
        self.functions.cuvidGetDecodeStatus.is_some()
    }

    /// Whether the driver has `cuvidReconfigureDecoder`.
    pub fn has_reconfigure(&self) -> bool {
        self.functions.cuvidReconfigureDecoder.is_some()
    }

    /// The file that was loaded.
    pub fn path(&self) -> Option<PathBuf> {
        file_of(self.functions.cuvidCreateDecoder as *const () as usize)
    }

    /// The address of an export beyond the table, or `None` where there is none of that name.
    pub fn extension(&self, name: &str) -> Option<*mut c_void> {
        address_of(&self.library, name)
    }
}

/// The file of a library, if it exports any of the names at all.
fn loaded_name(library: &Library) -> Option<String> {
    let address = NvcuvidFunctions::MANDATORY
        .iter()
        .find_map(|name| address_of(library, name))?;
    Some(file_of(address as usize)?.display().to_string())
}
