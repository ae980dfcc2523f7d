// SPDX-License-Identifier: MPL-2.0

//! Structures of messages and properties as JSON and as a line of text.

use std::collections::BTreeMap;

use gst::glib;
use serde_json::Value;

/// The fields that are numbers, texts or truths, by their names.
pub(super) fn to_json(structure: &gst::StructureRef) -> BTreeMap<String, Value> {
    let fields = structure.iter();
    fields
        .filter_map(|(name, value)| Some((name.to_string(), scalar(value)?)))
        .collect()
}

fn scalar(value: &glib::SendValue) -> Option<Value> {
    fn get<'a, T: glib::value::FromValue<'a>>(value: &'a glib::Value) -> Option<T> {
        value.get::<T>().ok()
    }
    let value: &glib::Value = value;
    match value.type_() {
        glib::Type::BOOL => get::<bool>(value).map(Value::from),
        glib::Type::I32 => get::<i32>(value).map(Value::from),
        glib::Type::I64 => get::<i64>(value).map(Value::from),
        glib::Type::U32 => get::<u32>(value).map(Value::from),
        glib::Type::U64 => get::<u64>(value).map(Value::from),
        glib::Type::F32 => get::<f32>(value).map(Value::from),
        glib::Type::F64 => get::<f64>(value).map(Value::from),
        glib::Type::STRING => get::<String>(value).map(Value::from),
        _ => None,
    }
}

/// The same as `name value, name value`; a clock time that is not known is left out, as is what says a thing
/// twice or is shown beside it.
pub(super) fn to_line(structure: &gst::StructureRef) -> String {
    let parts = to_json(structure).into_iter().filter_map(|(name, value)| {
        if name.ends_with("-code") || name == "implementation" {
            return None;
        }
        let text = match value {
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => text,
            Value::Number(number) if number.as_u64() == Some(u64::MAX) => return None,
            other => other.to_string(),
        };
        Some(format!("{name} {text}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_told_and_the_rest_is_left_out() {
        gst::init().expect("GStreamer starts");
        let inner = gst::Structure::new_empty("stats");
        let structure = gst::Structure::builder("vplretrydec-retry")
            .field("status", "MFX_WRN_DEVICE_BUSY (2)")
            .field("status-code", 2)
            .field("attempts", 12_u32)
            .field("timestamp", gst::ClockTime::NONE)
            .field("stats", inner)
            .build();
        assert_eq!(
            to_line(&structure),
            "attempts 12, status MFX_WRN_DEVICE_BUSY (2)"
        );
        assert_eq!(to_json(&structure).len(), 4);
    }
}
