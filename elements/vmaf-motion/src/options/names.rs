// SPDX-License-Identifier: MPL-2.0

//! Names of the features as libvmaf's collector and its reports form them.

use super::{Extractor, MotionOptions, OptionValue, SPECS};

/// The names of one output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureName {
    /// `motion_sad` (integer only), `motion`, `motion2` or `motion3`.
    pub output: &'static str,
    /// Key in libvmaf's feature collector, for `vmaf_feature_score_at_index`.
    pub collector: String,
    /// Name in libvmaf's XML, JSON and CSV reports.
    pub report: String,
}

/// Canonical name and alias of an output.
type Canonical = (&'static str, &'static str, Option<&'static str>);

const INTEGER: [Canonical; 4] = [
    ("motion_sad", "VMAF_integer_feature_motion_sad_score", None),
    (
        "motion",
        "VMAF_integer_feature_motion_score",
        Some("integer_motion"),
    ),
    (
        "motion2",
        "VMAF_integer_feature_motion2_score",
        Some("integer_motion2"),
    ),
    (
        "motion3",
        "VMAF_integer_feature_motion3_score",
        Some("integer_motion3"),
    ),
];

const FLOAT: [Canonical; 3] = [
    ("motion", "VMAF_feature_motion_score", Some("motion")),
    ("motion2", "VMAF_feature_motion2_score", Some("motion2")),
    ("motion3", "VMAF_feature_motion3_score", Some("motion3")),
];

/// The names of all outputs under these options. Options that differ from their defaults are
/// spelled behind the name, sorted by their full names; numbers keep six digits, so two settings
/// can share a name (as in libvmaf).
pub fn feature_names(options: &MotionOptions) -> Vec<FeatureName> {
    let suffix = suffix(options);
    let outputs: &[Canonical] = match options.extractor {
        Extractor::Integer => &INTEGER,
        Extractor::Float => &FLOAT,
    };
    let name = |&(output, canonical, alias): &Canonical| {
        let report = format!("{}{suffix}", alias.unwrap_or(canonical));
        FeatureName {
            output,
            collector: if suffix.is_empty() {
                canonical.to_owned()
            } else {
                report.clone()
            },
            report,
        }
    };
    outputs.iter().map(name).collect()
}

fn suffix(options: &MotionOptions) -> String {
    let defaults = MotionOptions::default();
    let own = SPECS
        .iter()
        .filter(|spec| spec.belongs_to(options.extractor));
    let changed = own.filter(|spec| (spec.get)(options) != (spec.get)(&defaults));
    changed
        .map(|spec| match (spec.get)(options) {
            OptionValue::Bool(_) => format!("_{}", spec.alias),
            OptionValue::Number(value) => format!("_{}_{}", spec.alias, general(value)),
            OptionValue::Integer(value) => format!("_{}_{value}", spec.alias),
        })
        .collect()
}

/// C's `%g`: six significant digits, no trailing zeros, an exponent below 1e-4 and from 1e6 on.
fn general(value: f64) -> String {
    let trim = |digits: &str| -> String {
        match digits.split_once('.') {
            Some((whole, part)) if part.trim_end_matches('0').is_empty() => whole.to_owned(),
            Some(_) => digits.trim_end_matches('0').to_owned(),
            None => digits.to_owned(),
        }
    };
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..=5) => {
            let decimals = (5 - exponent) as usize;
            trim(&format!("{value:.decimals$}"))
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(digits), exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_is_c_percent_g() {
        for (value, text) in [
            (0.0, "0"),
            (18.0, "18"),
            (0.3, "0.3"),
            (0.123_456_789, "0.123457"),
            (9_999.999_9, "10000"),
            (1234.5678, "1234.57"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (0.000_1, "0.0001"),
            (0.000_012_345_678, "1.23457e-05"),
            (0.000_099_999_99, "0.0001"),
            (5e-324, "4.94066e-324"),
        ] {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn without_options_the_collector_has_the_canonical_name() {
        let names = feature_names(&MotionOptions::default());
        let collector: Vec<_> = names.iter().map(|name| name.collector.as_str()).collect();
        assert_eq!(
            collector,
            [
                "VMAF_integer_feature_motion_sad_score",
                "VMAF_integer_feature_motion_score",
                "VMAF_integer_feature_motion2_score",
                "VMAF_integer_feature_motion3_score"
            ]
        );
        let report: Vec<_> = names.iter().map(|name| name.report.as_str()).collect();
        assert_eq!(
            report,
            [
                "VMAF_integer_feature_motion_sad_score",
                "integer_motion",
                "integer_motion2",
                "integer_motion3"
            ]
        );
    }

    #[test]
    fn suffixes_are_sorted_by_full_name() {
        let options = MotionOptions {
            fps_weight: 0.7,
            max_val: 7.5,
            blend_factor: 0.3,
            blend_offset: 5.0,
            five_frame_window: true,
            moving_average: true,
            ..MotionOptions::default()
        };
        let motion2 = &feature_names(&options)[2];
        assert_eq!(
            motion2.collector,
            "integer_motion2_mbf_0.3_mbo_5_mffw_mfw_0.7_mmxv_7.5_mma"
        );
        let float = MotionOptions {
            extractor: Extractor::Float,
            add_scale1: true,
            add_uv: true,
            filter_size: 3,
            ..MotionOptions::default()
        };
        assert_eq!(feature_names(&float)[1].collector, "motion2_mdc_mau_mfs_3");
    }
}
