// SPDX-License-Identifier: MPL-2.0

//! The bindings against the installed headers: a C program says every size, offset and constant.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use cudarc::driver::sys::CUDA_MEMCPY2D;
use nvcuvid_sys::*;

const BINDINGS: &str = include_str!("../src/bindings.rs");

/// C expression and value of each size and offset that `bindings.rs` asserts at compile time: the compiler
/// has checked already that the Rust types have these values.
fn asserted_layouts() -> BTreeMap<String, i64> {
    let text = BINDINGS.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut facts = BTreeMap::new();
    for (at, _) in text.match_indices("[\"") {
        let assertion = &text[at + 2..];
        let (what, rest) = assertion.split_once("\"]").expect("the text ends");
        let Some(expression) = c_expression(what) else {
            continue;
        };
        let (_, value) = rest.split_once(" - ").expect("an assertion subtracts");
        let (value, _) = value.split_once("usize").expect("the value is a usize");
        facts.insert(expression, value.parse().expect("an integer"));
    }
    facts
}

/// `None` for what has no name in C; `nested_offsets` reaches the members of those.
fn c_expression(what: &str) -> Option<String> {
    if what.contains("bindgen") || what.contains("Bindgen") {
        return None;
    }
    let c_type = |name: &str| match name.strip_prefix('_') {
        Some(_) => format!("struct {name}"),
        None => name.to_owned(),
    };
    let (kind, name) = what.split_once(": ").unwrap_or((what, ""));
    if kind == "Offset of field" {
        let (outer, field) = name.split_once("::")?;
        return Some(format!("offsetof({}, {field})", c_type(outer)));
    }
    let size = what.strip_prefix("Size of ").map(|name| ("sizeof", name));
    let alignment = what
        .strip_prefix("Alignment of ")
        .map(|name| ("_Alignof", name));
    let (operator, name) = size.or(alignment)?;
    // A structure that is only pointed to has no size in C.
    (name != "_CUcontextlock_st").then(|| format!("{operator}({})", c_type(name)))
}

/// Members of structures and unions without a name.
fn nested_offsets() -> Vec<(&'static str, usize)> {
    macro_rules! nested {
        ($($outer:ident: $($($path:ident).+),+;)*) => {
            vec![$($((concat!("offsetof(", stringify!($outer), ", ", stringify!($($path).+), ")"),
                      offset_of!($outer, $($path).+))),+),*]
        };
    }
    let mut facts = nested! {
        CUVIDEOFORMAT: frame_rate.numerator, frame_rate.denominator, display_area.left, display_area.top,
            display_area.right, display_area.bottom, display_aspect_ratio.x, display_aspect_ratio.y,
            video_signal_description.color_primaries, video_signal_description.transfer_characteristics,
            video_signal_description.matrix_coefficients;
        CUVIDDECODECREATEINFO: display_area.left, display_area.top, display_area.right, display_area.bottom,
            target_rect.left, target_rect.top, target_rect.right, target_rect.bottom;
        CUVIDRECONFIGUREDECODERINFO: display_area.left, display_area.top, display_area.right,
            display_area.bottom, target_rect.left, target_rect.top, target_rect.right, target_rect.bottom;
        CUVIDPICPARAMS: CodecSpecific.h264, CodecSpecific.hevc, CodecSpecific.av1,
            CodecSpecific.CodecReserved;
    };
    // Unnamed members count as members of the outer structure in C.
    macro_rules! unnamed {
        ($($outer:ident: $c:literal = $($path:ident).+;)*) => {
            [$((concat!("offsetof(", stringify!($outer), ", ", $c, ")"), offset_of!($outer, $($path).+))),*]
        };
    }
    facts.extend(unnamed! {
        CUVIDOPERATINGPOINTINFO: "av1.operating_points_cnt" = __bindgen_anon_1.av1.operating_points_cnt;
        CUVIDOPERATINGPOINTINFO: "av1.operating_points_idc" = __bindgen_anon_1.av1.operating_points_idc;
        CUVIDEOFORMATEX: "av1.max_width" = __bindgen_anon_1.av1.max_width;
        CUVIDEOFORMATEX: "av1.max_height" = __bindgen_anon_1.av1.max_height;
        CUVIDEOFORMATEX: "raw_seqhdr_data" = __bindgen_anon_1.raw_seqhdr_data;
    });
    facts
}

/// What stands elsewhere than in `bindings.rs`: opaque codec parameters, AV1's two fields, and the one
/// structure of the driver interface, which cudarc binds.
fn other_facts() -> Vec<(&'static str, usize)> {
    macro_rules! facts {
        ($($size:ident;)* , $($field:ident;)*) => {
            vec![$((concat!("sizeof(", stringify!($size), ")"), size_of::<$size>()),)*
                 $((concat!("offsetof(CUDA_MEMCPY2D, ", stringify!($field), ")"),
                    offset_of!(CUDA_MEMCPY2D, $field))),*]
        };
    }
    let mut facts = facts! {
        CUVIDH264PICPARAMS; CUVIDMPEG2PICPARAMS; CUVIDMPEG4PICPARAMS; CUVIDVC1PICPARAMS;
        CUVIDJPEGPICPARAMS; CUVIDHEVCPICPARAMS; CUVIDVP8PICPARAMS; CUVIDVP9PICPARAMS; CUVIDAV1PICPARAMS;
        CUvideotimestamp; tcu_ulong; CUvideopacketflags; cudaVideoCodec; CUDA_MEMCPY2D; CUdeviceptr;,
        srcXInBytes; srcY; srcMemoryType; srcHost; srcDevice; srcArray; srcPitch;
        dstXInBytes; dstY; dstMemoryType; dstHost; dstDevice; dstArray; dstPitch; WidthInBytes; Height;
    };
    facts.push((
        "offsetof(CUVIDAV1PICPARAMS, decodePicIdx)",
        av1::DECODE_PIC_IDX_OFFSET,
    ));
    facts.push(("first_byte_of_apply_grain()", av1::APPLY_GRAIN_OFFSET));
    facts.push((
        "offsetof(CUVIDVP8PICPARAMS, wFrameTagFlags)",
        frame_type::VP8_FRAME_TAG_OFFSET,
    ));
    facts.push(("vp8_inter_frame()", 1));
    facts.push(("offsetof(CUVIDVP8PICPARAMS, width)", 0));
    facts.push(("offsetof(CUVIDVP9PICPARAMS, width)", 0));
    facts.push(("offsetof(CUVIDAV1PICPARAMS, width)", 0));
    facts.push(("vp9_inter_and_intra_only()", 0x820));
    facts.push(("av1_inter_frame()", 1));
    facts
}

/// Name and value of every constant.
fn constants() -> BTreeMap<String, i64> {
    let constants = BINDINGS.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(": ")?;
        let (_, value) = rest.split_once(" = ")?;
        Some((name.to_owned(), value.trim_end_matches(';').parse().ok()?))
    });
    constants.collect()
}

/// Compiles and runs a C program that prints the value of each expression.
fn said_by_c<'a>(expressions: impl Iterator<Item = &'a String>) -> BTreeMap<String, i64> {
    let mut source = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n\
         #include <ffnvcodec/dynlink_cuda.h>\n#include <ffnvcodec/dynlink_nvcuvid.h>\n\
         static inline size_t first_byte_of_apply_grain(void) {\n\
           CUVIDAV1PICPARAMS p; memset(&p, 0, sizeof p); p.apply_grain = 1;\n\
           size_t at = 0; while (!((unsigned char *)&p)[at]) at++; return at;\n}\n\
         static inline size_t vp8_inter_frame(void) {\n\
           CUVIDVP8PICPARAMS p; memset(&p, 0, sizeof p); p.vp8_frame_tag.frame_type = 1;\n\
           return ((unsigned char *)&p)[15];\n}\n\
         static inline size_t vp9_inter_and_intra_only(void) {\n\
           CUVIDVP9PICPARAMS p; memset(&p, 0, sizeof p); p.frameType = 1; p.intraOnly = 1;\n\
           unsigned short u; memcpy(&u, (char *)&p + 12, 2); return u;\n}\n\
         static inline size_t av1_inter_frame(void) {\n\
           CUVIDAV1PICPARAMS p; memset(&p, 0, sizeof p); p.frame_type = 1;\n\
           unsigned int u; memcpy(&u, (char *)&p + 20, 4); return u;\n}\n\
         int main(void) {\n",
    );
    for expression in expressions {
        writeln!(
            source,
            "  printf(\"%lld\\t{expression}\\n\", (long long)({expression}));"
        )
        .expect("a string grows");
    }
    source.push_str("  return 0;\n}\n");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, program) = (folder.path().join("facts.c"), folder.path().join("facts"));
    std::fs::write(&file, source).expect("the C source is written");
    let built = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .args([&program, &file])
        .output()
        .expect("a C compiler (Debian: apt install gcc libc6-dev)");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{errors}");
    let output = Command::new(&program).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("plain text");
    let lines = text.lines().map(|line| {
        let (value, key) = line.split_once('\t').expect("value, tab, expression");
        (key.to_owned(), value.parse().expect("an integer"))
    });
    lines.collect()
}

#[test]
fn sizes_offsets_and_constants_equal_the_headers() {
    assert!(
        Path::new("/usr/include/ffnvcodec/dynlink_nvcuvid.h").exists(),
        "NVIDIA's headers are missing (Debian: apt install libffmpeg-nvenc-dev)"
    );
    let mut facts = asserted_layouts();
    assert!(
        facts.len() >= 140,
        "only {} layouts were found",
        facts.len()
    );
    let named = constants();
    assert!(
        named.len() >= 45,
        "only {} constants were found",
        named.len()
    );
    facts.extend(named);
    for (expression, value) in nested_offsets().into_iter().chain(other_facts()) {
        let value = i64::try_from(value).expect("a small number");
        facts.insert(expression.to_owned(), value);
    }
    let said = said_by_c(facts.keys());
    assert_eq!(said.len(), facts.len());
    for (expression, value) in &facts {
        assert_eq!(said[expression], *value, "{expression}");
    }
}

#[test]
fn bit_fields_lie_where_the_headers_put_them() {
    let mut params = CUVIDPARSERPARAMS::default();
    params.set_bAnnexb(1);
    let after_delay = offset_of!(CUVIDPARSERPARAMS, ulMaxDisplayDelay) + 4;
    let start = (&raw const params).cast::<u8>();
    // SAFETY: the structure is zeroed and has more bytes than that.
    let byte = unsafe { start.wrapping_add(after_delay).read() };
    let expression = "(memset(&p, 0, sizeof p), p.bAnnexb = 1, ((unsigned char *)&p)[AT])"
        .replace("AT", &after_delay.to_string());
    let expression = format!("({{ CUVIDPARSERPARAMS p; {expression}; }})");
    let said = said_by_c([expression.clone()].iter());
    assert_eq!(said[&expression], i64::from(byte));
    assert_eq!(byte, 1);
}

#[test]
fn the_structures_have_the_sizes_of_every_driver_since_470() {
    assert_eq!(size_of::<CUVIDPARSERPARAMS>(), 136);
    assert_eq!(size_of::<CUVIDSOURCEDATAPACKET>(), 32);
    assert_eq!(size_of::<CUVIDEOFORMAT>(), 64);
    assert_eq!(size_of::<CUVIDEOFORMATEX>(), 1088);
    assert_eq!(size_of::<CUVIDPARSERDISPINFO>(), 24);
    assert_eq!(size_of::<CUVIDPICPARAMS>(), 4280);
    assert_eq!(size_of::<CUVIDDECODECREATEINFO>(), 176);
    assert_eq!(size_of::<CUVIDDECODECAPS>(), 88);
    assert_eq!(size_of::<CUVIDPROCPARAMS>(), 264);
    assert_eq!(size_of::<CUVIDGETDECODESTATUS>(), 192);
    assert_eq!(size_of::<CUVIDRECONFIGUREDECODERINFO>(), 128);
}
