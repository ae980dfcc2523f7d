// SPDX-License-Identifier: MPL-2.0

//! The video decoders of a pipeline, and what they say of themselves.

use std::collections::BTreeMap;

use gst::prelude::*;
use serde_json::Value;

use super::structure::to_json;
use crate::news::{Counts, Decoder};

/// The video decoders in `bin`, at whatever depth.
pub(super) fn find(bin: &gst::Bin) -> Vec<gst::Element> {
    let mut found = Vec::new();
    let walked = bin.iterate_recurse().foreach(|element| {
        if is_video_decoder(&element) {
            found.push(element);
        }
    });
    // Elements came or went meanwhile: the next look finds them all.
    if walked.is_err() {
        found.dedup();
    }
    found.sort_by_key(|element| element.name());
    found.dedup();
    found
}

fn is_video_decoder(element: &gst::Element) -> bool {
    // decodebin and its relatives are decoders by their class, too, but bins.
    let class = element.metadata("klass").unwrap_or_default();
    class.contains("Decoder") && class.contains("Video") && !element.is::<gst::Bin>()
}

/// What `element` says of itself now.
pub(super) fn describe(element: &gst::Element) -> Decoder {
    let factory = element
        .factory()
        .map_or_else(String::new, |f| f.name().to_string());
    let stats = stats(element);
    Decoder {
        element: element.name().to_string(),
        implementation: implementation(element),
        counts: counts(&factory, &stats),
        factory,
        stats,
    }
}

fn stats(element: &gst::Element) -> BTreeMap<String, Value> {
    let is_structure = element
        .find_property("stats")
        .is_some_and(|spec| spec.value_type() == gst::Structure::static_type());
    if !is_structure {
        return BTreeMap::new();
    }
    element
        .property::<Option<gst::Structure>>("stats")
        .map(|stats| to_json(&stats))
        .unwrap_or_default()
}

fn implementation(element: &gst::Element) -> Option<String> {
    let is_text = element
        .find_property("implementation-name")
        .is_some_and(|spec| spec.value_type() == String::static_type());
    if !is_text {
        return None;
    }
    element
        .property::<Option<String>>("implementation-name")
        .filter(|name| !name.is_empty())
}

/// The counts that all decoders have, out of each one's own.
fn counts(factory: &str, stats: &BTreeMap<String, Value>) -> Option<Counts> {
    let sum = |names: &[&str]| {
        let values = names.iter().filter_map(|&name| stats.get(name)?.as_u64());
        values.fold(0, u64::saturating_add)
    };
    match factory {
        _ if stats.is_empty() => None,
        "vplretrydec" => Some(Counts {
            frames: sum(&["frames"]),
            retries: sum(&["busy", "starved"]),
            recoveries: sum(&["recoveries"]),
            dropped: sum(&["dropped", "errored", "without-picture"]),
            corrupted: sum(&["corrupted"]),
        }),
        "nvdecringdec" => Some(Counts {
            frames: sum(&["pictures"]),
            retries: sum(&["timeouts", "overflows"]),
            recoveries: sum(&["recoveries"]),
            dropped: sum(&["dropped", "failed", "corrupted-dropped"]),
            corrupted: sum(&["corrupted"]),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decoders_counts_are_put_in_common_terms() {
        let stats = |fields: &[(&str, u64)]| -> BTreeMap<String, Value> {
            fields
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.into()))
                .collect()
        };
        let vpl = stats(&[
            ("frames", 90),
            ("busy", 5),
            ("starved", 1),
            ("dropped", 2),
            ("errored", 3),
        ]);
        let counts_of = counts("vplretrydec", &vpl).expect("it counts");
        assert_eq!(
            (counts_of.frames, counts_of.retries, counts_of.dropped),
            (90, 6, 5)
        );
        let nv = stats(&[
            ("pictures", 80),
            ("timeouts", 1),
            ("recoveries", 2),
            ("corrupted", 4),
        ]);
        let counts_of = counts("nvdecringdec", &nv).expect("it counts");
        assert_eq!(
            (counts_of.frames, counts_of.retries, counts_of.recoveries),
            (80, 1, 2)
        );
        assert_eq!(counts("avdec_h264", &stats(&[])), None);
        assert_eq!(counts("other", &nv), None);
    }
}
