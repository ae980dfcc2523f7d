// SPDX-License-Identifier: MPL-2.0

//! The bindings against the installed headers: a C program says every size, offset and status value.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use onevpl_sys::*;

const BINDINGS: &str = include_str!("../src/bindings.rs");

/// The facts of `bindings.rs`' compile-time asserts: C expression and value. The compiler has already
/// checked that the Rust types have these values.
fn asserted_facts() -> BTreeMap<String, usize> {
    let text = BINDINGS.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut facts = BTreeMap::new();
    for part in text.split("[\"").skip(1) {
        let (what, rest) = part
            .split_once("\"]")
            .expect("an assert closes its message");
        let Some(value) = rest
            .split_once(" - ")
            .and_then(|(_, tail)| tail.split_once("usize"))
        else {
            continue;
        };
        let value: usize = value.0.trim().parse().expect("an assert's number");
        // Unnamed members have no name in C; `nested_facts` has what lies in them.
        if what.contains("bindgen") || what.contains("__Bindgen") {
            continue;
        }
        let expression = if let Some(name) = what.strip_prefix("Size of ") {
            format!("sizeof({})", c_type(name))
        } else if let Some(field) = what.strip_prefix("Offset of field: ") {
            let (name, field) = field.split_once("::").expect("structure::field");
            format!(
                "offsetof({}, {})",
                c_type(name),
                field.trim_end_matches('_')
            )
        } else {
            continue;
        };
        facts.insert(expression, value);
    }
    facts
}

/// The C name of a generated type. Structures inside structures have a tag of their own in C.
fn c_type(name: &str) -> String {
    match name.rsplit_once('_') {
        Some(("mfxVariant", tag)) => format!("union {tag}"),
        Some((_, tag)) => format!("struct {tag}"),
        None => name.to_owned(),
    }
}

/// The statuses of this crate that the installed headers know too. `MORE_EXTBUFFER` is younger than API 2.8.
fn statuses_of(header: &str) -> Vec<(String, MfxStatus)> {
    let known: Vec<_> = MfxStatus::ALL
        .iter()
        .map(|status| {
            (
                format!("MFX_{}", status.name().expect("a listed status has a name")),
                *status,
            )
        })
        .filter(|(name, _)| header.contains(name.as_str()))
        .collect();
    assert!(
        known.len() + 1 >= MfxStatus::ALL.len(),
        "the headers lack more than MORE_EXTBUFFER"
    );
    known
}

/// Members of unnamed unions and structures, which C reaches by the outer structure.
fn nested_facts() -> Vec<(&'static str, usize)> {
    macro_rules! nested {
        ($($outer:ident: $($field:ident = $($path:ident).+),+;)*) => {
            vec![$($((concat!("offsetof(", stringify!($outer), ", ", stringify!($field), ")"),
                      offset_of!($outer, $($path).+))),+),*]
        };
    }
    nested! {
        mfxStructVersion: Minor = __bindgen_anon_1.Minor, Major = __bindgen_anon_1.Major;
        mfxVersion: Minor = __bindgen_anon_1.Minor, Major = __bindgen_anon_1.Major;
        mfxBitstream: EncryptedData = __bindgen_anon_1.__bindgen_anon_1.EncryptedData,
            ExtParam = __bindgen_anon_1.__bindgen_anon_1.ExtParam,
            NumExtParam = __bindgen_anon_1.__bindgen_anon_1.NumExtParam,
            CodecId = __bindgen_anon_1.__bindgen_anon_1.CodecId;
        mfxFrameInfo: Width = __bindgen_anon_1.__bindgen_anon_1.Width,
            Height = __bindgen_anon_1.__bindgen_anon_1.Height,
            CropX = __bindgen_anon_1.__bindgen_anon_1.CropX,
            CropY = __bindgen_anon_1.__bindgen_anon_1.CropY,
            CropW = __bindgen_anon_1.__bindgen_anon_1.CropW,
            CropH = __bindgen_anon_1.__bindgen_anon_1.CropH,
            BufferSize = __bindgen_anon_1.__bindgen_anon_2.BufferSize;
        mfxFrameData: Pitch = __bindgen_anon_2.Pitch, PitchLow = __bindgen_anon_2.PitchLow,
            Y = __bindgen_anon_3.Y, UV = __bindgen_anon_4.UV, V = __bindgen_anon_5.V;
        mfxFrameSurface1: FrameInterface = __bindgen_anon_1.FrameInterface;
        mfxVideoParam: mfx = __bindgen_anon_1.mfx;
        mfxInfoMFX: DecodedOrder = __bindgen_anon_1.__bindgen_anon_2.DecodedOrder,
            MaxDecFrameBuffering = __bindgen_anon_1.__bindgen_anon_2.MaxDecFrameBuffering,
            EnableReallocRequest = __bindgen_anon_1.__bindgen_anon_2.EnableReallocRequest,
            JPEGColorFormat = __bindgen_anon_1.__bindgen_anon_3.JPEGColorFormat;
    }
}

fn run_c(lines: &[(String, String)]) -> BTreeMap<String, i64> {
    let mut source = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#define ONEVPL_EXPERIMENTAL\n#include <vpl/mfx.h>\nint main(void) {\n",
    );
    for (key, expression) in lines {
        writeln!(
            source,
            "  printf(\"%lld\\t{key}\\n\", (long long)({expression}));"
        )
        .expect("a string grows");
    }
    source.push_str("  return 0;\n}\n");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("facts.c");
    let program = folder.path().join("facts");
    std::fs::write(&file, source).expect("the C source is written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(&compiler)
        .args(["-w", "-o"])
        .args([&program, &file])
        .output()
        .unwrap_or_else(|error| {
            panic!("no C compiler {compiler}: {error} (Debian: apt install gcc libc6-dev)")
        });
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let output = Command::new(&program).output().expect("the C program runs");
    String::from_utf8(output.stdout)
        .expect("plain text")
        .lines()
        .map(|line| {
            let (value, key) = line.split_once('\t').expect("value, tab, key");
            (key.to_owned(), value.parse().expect("an integer"))
        })
        .collect()
}

#[test]
fn sizes_offsets_and_statuses_equal_the_headers() {
    assert!(
        Path::new("/usr/include/vpl/mfx.h").exists(),
        "the oneVPL headers are missing (Debian: apt install libvpl-dev)"
    );
    let mut facts = asserted_facts();
    assert!(
        facts.len() > 250,
        "only {} facts were found in bindings.rs",
        facts.len()
    );
    facts.extend(
        nested_facts()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value)),
    );

    let mut lines: Vec<(String, String)> =
        facts.keys().map(|key| (key.clone(), key.clone())).collect();
    let header =
        std::fs::read_to_string("/usr/include/vpl/mfxdefs.h").expect("libvpl-dev is installed");
    let statuses = statuses_of(&header);
    lines.extend(
        statuses
            .iter()
            .map(|(name, _)| (name.clone(), name.clone())),
    );
    lines.push((
        "UNKNOWN".to_owned(),
        "(mfxU64)MFX_TIMESTAMP_UNKNOWN".to_owned(),
    ));
    let said = run_c(&lines);

    for (key, value) in &facts {
        assert_eq!(said[key], *value as i64, "{key}");
    }
    for (name, status) in &statuses {
        assert_eq!(said[name], i64::from(status.0), "{name}");
    }
    assert_eq!(said["UNKNOWN"] as u64, TIMESTAMP_UNKNOWN);
}

#[test]
fn no_status_of_the_headers_is_missing() {
    let header =
        std::fs::read_to_string("/usr/include/vpl/mfxdefs.h").expect("libvpl-dev is installed");
    let start = header
        .find("MFX_ERR_NONE ")
        .expect("the enumeration of statuses");
    let end = start
        + header[start..]
            .find("mfxStatus")
            .expect("the enumeration's end");
    let mut seen = 0;
    for line in header[start..end].lines() {
        let Some((name, _)) = line.trim().split_once('=') else {
            continue;
        };
        let Some(name) = name.trim().strip_prefix("MFX_") else {
            continue;
        };
        if name.starts_with("//") || name == "TASK_DONE" {
            continue;
        }
        seen += 1;
        assert!(
            MfxStatus::ALL
                .iter()
                .any(|status| status.name() == Some(name)),
            "MFX_{name} has no constant"
        );
    }
    assert!(seen >= 35, "only {seen} statuses were read from the header");
}

#[test]
fn the_structures_have_the_sizes_of_the_frozen_interface() {
    assert_eq!(size_of::<mfxBitstream>(), 72);
    assert_eq!(size_of::<mfxVideoParam>(), 208);
    assert_eq!(size_of::<mfxFrameSurface1>(), 184);
    assert_eq!(size_of::<mfxFrameSurfaceInterface>(), 112);
    assert_eq!(size_of::<mfxFrameData>(), 96);
    assert_eq!(size_of::<mfxFrameInfo>(), 68);
    assert_eq!(size_of::<mfxInfoMFX>(), 136);
    assert_eq!(size_of::<mfxImplDescription>(), 648);
    assert_eq!(size_of::<mfxVariant>(), 16);
    assert_eq!(size_of::<mfxInitializationParam>(), 40);
}
