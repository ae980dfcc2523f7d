// SPDX-License-Identifier: MPL-2.0

//! What the dispatcher asks before it opens a session: the description of the implementation and the names
//! of its functions. Each request gets memory of its own, because several loaders may be alive.

use std::ffi::{CString, c_char};

use elementary_stream::Codec;
use onevpl_sys::*;

use crate::exports::EXPORTS;
use crate::memory::Registry;
use crate::params::{CODECS, MAX_SIZE};
use crate::pose::Pose;
use crate::surface::version;

/// The API that is implemented.
pub(crate) const API: mfxVersion__bindgen_ty_1 = mfxVersion__bindgen_ty_1 { Minor: 8, Major: 2 };

type DecoderEntry = mfxDecoderDescription_decoder;
type ProfileEntry = mfxDecoderDescription_decoder_decprofile;
type MemoryEntry = mfxDecoderDescription_decoder_decprofile_decmemdesc;

/// An answer and everything that it points to.
struct Answer {
    /// What the dispatcher got: an array of one handle.
    handles: Box<[mfxHDL; 1]>,
    _contents: Contents,
}

enum Contents {
    Implementation { _all: Box<Implementation> },
    Functions { _all: Box<Functions> },
    Device { _all: Box<mfxExtendedDeviceId> },
}

// SAFETY: the pointers lead to memory that the answer owns and that is never changed.
unsafe impl Send for Answer {}

#[derive(Default)]
struct Implementation {
    description: mfxImplDescription,
    acceleration: Vec<mfxAccelerationMode>,
    policies: Vec<mfxPoolAllocationPolicy>,
    codecs: Vec<DecoderEntry>,
    profiles: Vec<Vec<ProfileEntry>>,
    memories: Vec<Vec<MemoryEntry>>,
    formats: Vec<Vec<u32>>,
}

struct Functions {
    description: mfxImplementedFunctions,
    _names: Vec<CString>,
    pointers: Vec<*mut c_char>,
}

static ANSWERS: Registry<Answer> = Registry::new();

/// `MFXQueryImplsDescription`: an array of one handle, or null for what is not implemented.
pub(crate) fn query(format: mfxImplCapsDeliveryFormat) -> Option<*mut mfxHDL> {
    let (handle, contents) = match format {
        MFX_IMPLCAPS_IMPLDESCSTRUCTURE => {
            let mut all = implementation();
            let handle = (&raw mut all.description).cast();
            (handle, Contents::Implementation { _all: all })
        }
        MFX_IMPLCAPS_IMPLEMENTEDFUNCTIONS => {
            let mut all = functions();
            let handle = (&raw mut all.description).cast();
            (handle, Contents::Functions { _all: all })
        }
        MFX_IMPLCAPS_DEVICE_ID_EXTENDED => {
            let mut all = Box::new(device(Pose::current())?);
            let handle = (&raw mut *all).cast();
            (handle, Contents::Device { _all: all })
        }
        _ => return None,
    };
    let mut answer = Answer {
        handles: Box::new([handle]),
        _contents: contents,
    };
    let array = answer.handles.as_mut_ptr();
    ANSWERS.insert(handle.addr(), answer);
    Some(array)
}

/// `MFXReleaseImplDescription`.
pub(crate) fn release(handle: mfxHDL) -> MfxStatus {
    match ANSWERS.remove(handle.addr()) {
        Some(_) => MfxStatus::ERR_NONE,
        None if handle.is_null() => MfxStatus::ERR_NULL_PTR,
        None => MfxStatus::ERR_INVALID_HANDLE,
    }
}

/// Profiles, whether each has 10 bits, and the highest level.
fn capabilities(codec: Codec) -> (&'static [(u32, bool)], u16) {
    match codec {
        Codec::H264 => (
            &[
                (MFX_PROFILE_AVC_BASELINE, false),
                (MFX_PROFILE_AVC_CONSTRAINED_BASELINE, false),
                (MFX_PROFILE_AVC_MAIN, false),
                (MFX_PROFILE_AVC_EXTENDED, false),
                (MFX_PROFILE_AVC_HIGH, false),
                (MFX_PROFILE_AVC_HIGH10, true),
            ],
            62,
        ),
        Codec::H265 => (
            &[
                (MFX_PROFILE_HEVC_MAIN, false),
                (MFX_PROFILE_HEVC_MAIN10, true),
                (MFX_PROFILE_HEVC_MAINSP, false),
            ],
            62,
        ),
        Codec::Av1 => (&[(MFX_PROFILE_AV1_MAIN, true)], 63),
        Codec::Vp9 => (&[(MFX_PROFILE_VP9_0, false), (MFX_PROFILE_VP9_2, true)], 0),
        Codec::Vp8 => (
            &[
                (MFX_PROFILE_VP8_0, false),
                (MFX_PROFILE_VP8_1, false),
                (MFX_PROFILE_VP8_2, false),
                (MFX_PROFILE_VP8_3, false),
            ],
            0,
        ),
        Codec::Mpeg2 => (
            &[
                (MFX_PROFILE_MPEG2_SIMPLE, false),
                (MFX_PROFILE_MPEG2_MAIN, false),
                (MFX_PROFILE_MPEG2_HIGH, false),
            ],
            0,
        ),
        Codec::Mjpeg => (&[(MFX_PROFILE_JPEG_BASELINE, false)], 0),
    }
}

fn implementation() -> Box<Implementation> {
    let mut all = Box::<Implementation>::default();
    let range = mfxRange32U {
        Min: 16,
        Max: MAX_SIZE.into(),
        Step: 16,
    };
    for (codec, id) in CODECS
        .iter()
        .filter(|(codec, _)| av_backend::is_available(*codec))
    {
        let (names, level) = capabilities(*codec);
        let mut profiles = Vec::new();
        for (profile, deep) in names {
            let mut formats = if *deep {
                vec![MFX_FOURCC_NV12, MFX_FOURCC_P010]
            } else {
                vec![MFX_FOURCC_NV12]
            };
            let mut memory = vec![MemoryEntry {
                MemHandleType: MFX_RESOURCE_SYSTEM_SURFACE,
                Width: range,
                Height: range,
                NumColorFormats: formats.len() as u16,
                ColorFormats: formats.as_mut_ptr(),
                ..Default::default()
            }];
            profiles.push(ProfileEntry {
                Profile: *profile,
                NumMemTypes: 1,
                MemDesc: memory.as_mut_ptr(),
                ..Default::default()
            });
            // The vectors move; what they point to does not.
            all.formats.push(formats);
            all.memories.push(memory);
        }
        all.codecs.push(DecoderEntry {
            CodecID: *id,
            MaxcodecLevel: level,
            NumProfiles: profiles.len() as u16,
            Profiles: profiles.as_mut_ptr(),
            ..Default::default()
        });
        all.profiles.push(profiles);
    }
    let pose = Pose::current();
    all.acceleration = vec![pose.acceleration()];
    all.policies = vec![
        MFX_ALLOCATION_OPTIMAL,
        MFX_ALLOCATION_UNLIMITED,
        MFX_ALLOCATION_LIMITED,
    ];

    let mut description = mfxImplDescription {
        Version: version(1, 2),
        Impl: pose.kind(),
        AccelerationMode: pose.acceleration(),
        ApiVersion: mfxVersion {
            __bindgen_anon_1: API,
        },
        VendorID: 0x8086, // dispatchers list nothing of another vendor
        ..Default::default()
    };
    write_text(&mut description.ImplName, "vplsoft");
    write_text(&mut description.License, "MPL-2.0");
    write_text(
        &mut description.Keywords,
        "vplsoft,software,libavcodec,CPU,MSDK,x64",
    );
    description.Dev.Version = version(1, 1);
    description.Dev.MediaAdapterType = MFX_MEDIA_UNKNOWN as u16;
    write_text(&mut description.Dev.DeviceID, "0000");
    description.Dec = mfxDecoderDescription {
        Version: version(1, 0),
        NumCodecs: all.codecs.len() as u16,
        Codecs: all.codecs.as_mut_ptr(),
        ..Default::default()
    };
    description.__bindgen_anon_1.AccelerationModeDescription = mfxAccelerationModeDescription {
        Version: version(1, 0),
        NumAccelerationModes: all.acceleration.len() as u16,
        Mode: all.acceleration.as_mut_ptr(),
        ..Default::default()
    };
    description.PoolPolicies = mfxPoolPolicyDescription {
        Version: version(1, 0),
        NumPoolPolicies: all.policies.len() as u16,
        Policy: all.policies.as_mut_ptr(),
        ..Default::default()
    };
    all.description = description;
    all
}

/// What filters for a render node look at; nothing where the pose names none.
fn device(pose: Pose) -> Option<mfxExtendedDeviceId> {
    let Pose::Hardware {
        render_node: Some(node),
    } = pose
    else {
        return None;
    };
    let mut device = mfxExtendedDeviceId {
        Version: version(1, 0),
        VendorID: 0x8086,
        DRMRenderNodeNum: node,
        DRMPrimaryNodeNum: 0x7fff_ffff, // the header's word for none
        ..Default::default()
    };
    write_text(&mut device.DeviceName, "vplsoft");
    Some(device)
}

fn functions() -> Box<Functions> {
    let names: Vec<CString> = EXPORTS
        .iter()
        .filter_map(|name| CString::new(*name).ok())
        .collect();
    let mut all = Box::new(Functions {
        description: mfxImplementedFunctions::default(),
        pointers: names.iter().map(|name| name.as_ptr().cast_mut()).collect(),
        _names: names,
    });
    all.description.NumFunctions = all.pointers.len() as u16;
    all.description.FunctionsName = all.pointers.as_mut_ptr();
    all
}

/// Writes text and leaves at least one zero behind it.
fn write_text(field: &mut [c_char], text: &str) {
    let length = text.len().min(field.len() - 1);
    for (to, from) in field.iter_mut().zip(text.as_bytes()).take(length) {
        *to = *from as c_char;
    }
}
