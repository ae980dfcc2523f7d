// SPDX-License-Identifier: MPL-2.0

//! libvmaf's options of `motion` and `float_motion`: names, ranges, defaults.

mod names;

use std::fmt;

use thiserror::Error;

pub use names::{FeatureName, feature_names};

/// Which of libvmaf's two extractors is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Extractor {
    /// `motion`: integers throughout, the one the VMAF models read.
    #[default]
    Integer,
    /// `float_motion`: 32-bit floats, the one the `vmaf_float_*` models read.
    Float,
}

impl fmt::Display for Extractor {
    /// libvmaf's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "motion",
            Self::Float => "float_motion",
        })
    }
}

/// All options with libvmaf's defaults.
///
/// Fields are public for reading and struct update; [`MotionOptions::validate`] checks them, and
/// [`crate::MotionStream::new`] calls it. `debug`, which in libvmaf adds the output `motion`, is
/// accepted by [`MotionOptions::set`] and changes nothing: that output is always there.
#[derive(Debug, Clone, PartialEq)]
pub struct MotionOptions {
    /// Integer or float.
    pub extractor: Extractor,
    /// `motion_force_zero`: every score is 0.
    pub force_zero: bool,
    /// `motion_fps_weight`, 0 to 5: factor on every score, before the cap.
    pub fps_weight: f64,
    /// `motion_max_val`, 0 to 10000: caps motion and motion2, and motion3 once more.
    pub max_val: f64,
    /// `motion_blend_factor`, 0 to 1: share of motion3 that follows motion2.
    pub blend_factor: f64,
    /// `motion_blend_offset`, 0 to 1000: cap of what the other share follows.
    pub blend_offset: f64,
    /// `motion_five_frame_window` (integer only): compare with the frame before the last.
    pub five_frame_window: bool,
    /// `motion_moving_average` (integer only): motion3 is the mean of two frames.
    pub moving_average: bool,
    /// `motion_filter_size` (float only), 0 to 9: 1 and 3 choose other filters, all else 5 taps.
    pub filter_size: u32,
    /// `motion_add_scale1` (float only): adds the score at half the size.
    pub add_scale1: bool,
    /// `motion_add_uv` (float only): adds the scores of the chroma planes.
    pub add_uv: bool,
}

impl Default for MotionOptions {
    fn default() -> Self {
        Self {
            extractor: Extractor::Integer,
            force_zero: false,
            fps_weight: 1.0,
            max_val: 10_000.0,
            blend_factor: 1.0,
            blend_offset: 40.0,
            five_frame_window: false,
            moving_average: false,
            filter_size: 5,
            add_scale1: false,
            add_uv: false,
        }
    }
}

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionValue {
    /// A switch.
    Bool(bool),
    /// A real number.
    Number(f64),
    /// A whole number.
    Integer(u32),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
        }
    }
}

/// An option that was refused: which, why, and what is allowed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum OptionError {
    /// Neither extractor has it. Aliases (`mfw`) are not names.
    #[error("unknown option `{name}`; `{extractor}` takes {}", known(*extractor))]
    Unknown {
        /// As it was given.
        name: String,
        /// The extractor that was asked.
        extractor: Extractor,
    },
    /// Only the other extractor has it.
    #[error("extractor `{extractor}` has no option `{name}`; it takes {}", known(*extractor))]
    NotOfExtractor {
        /// libvmaf's name.
        name: &'static str,
        /// The extractor that was asked.
        extractor: Extractor,
    },
    /// Not of the option's type or range. NaN is in no range.
    #[error("option `{name}` cannot be `{value}`: it takes {range}")]
    Value {
        /// libvmaf's name.
        name: &'static str,
        /// As it was given.
        value: String,
        /// What it takes.
        range: Range,
    },
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// `true` or `false`.
    Bool,
    /// 0 to this.
    Number(f64),
    /// 0 to this, whole.
    Integer(u32),
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Number(max) => write!(f, "a number from 0 to {max}"),
            Self::Integer(max) => write!(f, "a whole number from 0 to {max}"),
        }
    }
}

impl Range {
    fn parse(self, text: &str) -> Option<OptionValue> {
        let value = match self {
            Self::Bool => OptionValue::Bool(text.parse().ok()?),
            Self::Number(_) => OptionValue::Number(text.parse().ok()?),
            Self::Integer(_) => OptionValue::Integer(text.parse().ok()?),
        };
        self.contains(value).then_some(value)
    }

    fn contains(self, value: OptionValue) -> bool {
        match (self, value) {
            (Self::Bool, OptionValue::Bool(_)) => true,
            (Self::Number(max), OptionValue::Number(value)) => (0.0..=max).contains(&value),
            (Self::Integer(max), OptionValue::Integer(value)) => value <= max,
            _ => false,
        }
    }
}

/// One of libvmaf's options.
struct OptionSpec {
    name: &'static str,
    /// How feature names spell it.
    alias: &'static str,
    /// The only extractor that has it, or both.
    only: Option<Extractor>,
    range: Range,
    get: fn(&MotionOptions) -> OptionValue,
    set: fn(&mut MotionOptions, OptionValue),
}

impl OptionSpec {
    fn belongs_to(&self, extractor: Extractor) -> bool {
        self.only.is_none_or(|only| only == extractor)
    }
}

/// A row of the table: the field's type picks the value's variant.
macro_rules! spec {
    ($name:literal, $alias:literal, $only:expr, $range:expr, $variant:ident($field:ident)) => {
        OptionSpec {
            name: $name,
            alias: $alias,
            only: $only,
            range: $range,
            get: |options| OptionValue::$variant(options.$field),
            set: |options, value| {
                if let OptionValue::$variant(value) = value {
                    options.$field = value;
                }
            },
        }
    };
}

const FLOAT: Option<Extractor> = Some(Extractor::Float);
const INTEGER: Option<Extractor> = Some(Extractor::Integer);

/// Sorted by name, the order of suffixes in feature names.
#[rustfmt::skip]
static SPECS: [OptionSpec; 10] = [
    spec!("motion_add_scale1", "mdc", FLOAT, Range::Bool, Bool(add_scale1)),
    spec!("motion_add_uv", "mau", FLOAT, Range::Bool, Bool(add_uv)),
    spec!("motion_blend_factor", "mbf", None, Range::Number(1.0), Number(blend_factor)),
    spec!("motion_blend_offset", "mbo", None, Range::Number(1000.0), Number(blend_offset)),
    spec!("motion_filter_size", "mfs", FLOAT, Range::Integer(9), Integer(filter_size)),
    spec!("motion_five_frame_window", "mffw", INTEGER, Range::Bool, Bool(five_frame_window)),
    spec!("motion_force_zero", "force_0", None, Range::Bool, Bool(force_zero)),
    spec!("motion_fps_weight", "mfw", None, Range::Number(5.0), Number(fps_weight)),
    spec!("motion_max_val", "mmxv", None, Range::Number(10_000.0), Number(max_val)),
    spec!("motion_moving_average", "mma", INTEGER, Range::Bool, Bool(moving_average)),
];

const DEBUG: &str = "debug";

fn known(extractor: Extractor) -> String {
    let names = SPECS.iter().filter(|spec| spec.belongs_to(extractor));
    names
        .map(|spec| spec.name)
        .chain([DEBUG])
        .collect::<Vec<_>>()
        .join(", ")
}

impl MotionOptions {
    /// Sets one option by libvmaf's name and spelling (`motion_max_val`, `18`).
    ///
    /// # Errors
    /// [`OptionError`]; nothing changes.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let extractor = self.extractor;
        if name == DEBUG {
            return Range::Bool
                .parse(value)
                .map(drop)
                .ok_or_else(|| OptionError::Value {
                    name: DEBUG,
                    value: value.to_owned(),
                    range: Range::Bool,
                });
        }
        let Some(spec) = SPECS.iter().find(|spec| spec.name == name) else {
            return Err(OptionError::Unknown {
                name: name.to_owned(),
                extractor,
            });
        };
        if !spec.belongs_to(extractor) {
            return Err(OptionError::NotOfExtractor {
                name: spec.name,
                extractor,
            });
        }
        let value = spec.range.parse(value).ok_or_else(|| OptionError::Value {
            name: spec.name,
            value: value.to_owned(),
            range: spec.range,
        })?;
        (spec.set)(self, value);
        Ok(())
    }

    /// Checks every option against its range, and that the extractor has those that are set.
    ///
    /// # Errors
    /// The first [`OptionError`].
    pub fn validate(&self) -> Result<(), OptionError> {
        for spec in &SPECS {
            let value = (spec.get)(self);
            if !spec.range.contains(value) {
                return Err(OptionError::Value {
                    name: spec.name,
                    value: value.to_string(),
                    range: spec.range,
                });
            }
            if !spec.belongs_to(self.extractor) && value != (spec.get)(&Self::default()) {
                return Err(OptionError::NotOfExtractor {
                    name: spec.name,
                    extractor: self.extractor,
                });
            }
        }
        Ok(())
    }

    /// The options of this extractor by name, sorted.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, OptionValue)> + '_ {
        let own = SPECS.iter().filter(|spec| spec.belongs_to(self.extractor));
        own.map(|spec| (spec.name, (spec.get)(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that users read: each names the option, what was given and what it takes.
    #[test]
    fn a_refusal_says_what_is_allowed() {
        let mut options = MotionOptions::default();
        let mut refusal =
            |name: &str, value: &str| options.set(name, value).unwrap_err().to_string();
        for (name, value, parts) in [
            ("motion_force_zero", "1", ["`1`", "true or false"]),
            ("motion_blend_factor", "7", ["`7`", "a number from 0 to 1"]),
            (
                "motion_blend_offset",
                "x",
                ["`x`", "a number from 0 to 1000"],
            ),
            ("no_such", "1", ["`no_such`", "`motion` takes"]),
            (
                "motion_filter_size",
                "3",
                ["`motion`", "`motion_filter_size`"],
            ),
        ] {
            let said = refusal(name, value);
            for part in parts {
                assert!(
                    said.contains(part),
                    "{name}={value}: {part} is missing: {said}"
                );
            }
        }
        assert_eq!(Extractor::Float.to_string(), "float_motion");
        for (value, text) in [
            (OptionValue::Bool(true), "true"),
            (OptionValue::Number(0.5), "0.5"),
            (OptionValue::Integer(3), "3"),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn each_extractor_lists_its_own_options_with_their_values() {
        let mut options = MotionOptions::default();
        options.set("motion_max_val", "40.5").unwrap();
        let listed: Vec<_> = options.values().collect();
        assert!(listed.contains(&("motion_max_val", OptionValue::Number(40.5))));
        assert!(listed.is_sorted_by_key(|(name, _)| *name));
        let names = |options: &MotionOptions| -> Vec<_> {
            options.values().map(|(name, _)| name).collect()
        };
        let float = MotionOptions {
            extractor: Extractor::Float,
            ..options.clone()
        };
        assert!(!names(&options).contains(&"motion_add_uv"));
        assert!(names(&float).contains(&"motion_add_uv"));
    }

    #[test]
    fn sorted_by_name() {
        assert!(SPECS.is_sorted_by_key(|spec| spec.name));
    }

    #[test]
    fn every_option_takes_its_range_and_nothing_else() {
        for spec in &SPECS {
            let mut options = MotionOptions {
                extractor: spec.only.unwrap_or_default(),
                ..MotionOptions::default()
            };
            let (good, bad): (&[&str], &[&str]) = match spec.range {
                Range::Bool => (&["true", "false"], &["1", "yes", "True", ""]),
                Range::Number(1.0) => (
                    &["0", "1", "0.25", "1e-3", ".5"],
                    &["1.0000001", "-0.1", "nan", "inf", "0.5x", ""],
                ),
                Range::Number(5.0) => (&["5", "0.7"], &["5.1", "NaN", "-inf"]),
                Range::Number(1000.0) => (&["1000", "40"], &["1000.5", "nan"]),
                Range::Number(_) => (&["10000", "18"], &["10000.5", "nan", "1e9"]),
                Range::Integer(_) => (&["0", "9"], &["10", "-1", "2.5", "nan"]),
            };
            for value in good {
                options.set(spec.name, value).unwrap();
                options.validate().unwrap();
            }
            let before = options.clone();
            for value in bad {
                let message = options.set(spec.name, value).unwrap_err().to_string();
                assert!(
                    message.contains(spec.name) && message.contains(&format!("`{value}`")),
                    "{message}"
                );
                assert!(message.contains(&spec.range.to_string()), "{message}");
                assert_eq!(options, before, "a refused value changed {}", spec.name);
            }
        }
    }

    #[test]
    fn unknown_names_and_aliases_are_refused() {
        let mut options = MotionOptions::default();
        for name in ["motion_fps", "mfw", "motion-max-val", ""] {
            let message = options.set(name, "1").unwrap_err().to_string();
            assert!(
                message.contains(&format!("`{name}`")) && message.contains("motion_max_val"),
                "{message}"
            );
        }
        assert_eq!(options.set("debug", "true"), Ok(()));
        assert!(options.set("debug", "2").is_err());
    }

    #[test]
    fn each_extractor_refuses_the_others_options() {
        let mut integer = MotionOptions::default();
        let refused = OptionError::NotOfExtractor {
            name: "motion_add_uv",
            extractor: Extractor::Integer,
        };
        assert_eq!(integer.set("motion_add_uv", "true"), Err(refused.clone()));
        integer.add_uv = true;
        assert_eq!(integer.validate(), Err(refused));
        let float = MotionOptions {
            extractor: Extractor::Float,
            moving_average: true,
            ..MotionOptions::default()
        };
        assert!(float.validate().is_err());
    }

    #[test]
    fn fields_are_validated() {
        for max_val in [f64::NAN, -1.0, 10_001.0, f64::INFINITY] {
            let options = MotionOptions {
                max_val,
                ..MotionOptions::default()
            };
            assert!(
                options
                    .validate()
                    .unwrap_err()
                    .to_string()
                    .contains("motion_max_val")
            );
        }
    }
}
