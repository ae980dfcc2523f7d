// SPDX-License-Identifier: MPL-2.0

//! The guide says what the code does.

use vplretry_core::table::status_table;
use vplretry_core::{Action, Outcome, Settings, Status, classify};

fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vplretry-core.md");
    std::fs::read_to_string(path).expect("the guide in the repository's docs folder")
}

fn rows(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

#[test]
fn the_status_table_is_the_classifier() {
    let guide = guide();
    let (_, rest) = guide
        .split_once("<!-- status table: begin -->\n")
        .expect("the beginning of the table");
    let (table, _) = rest
        .split_once("<!-- status table: end -->")
        .expect("the end of the table");
    assert_eq!(
        rows(table),
        rows(&status_table()),
        "cargo run -p vplretry-core --example status-table prints the table as it should be"
    );
}

/// The table has no column for a surface while draining, nor for a sync point alone while draining:
/// the guide says how they follow.
#[test]
fn the_columns_that_the_table_leaves_out_follow_from_the_others() {
    let action = |status, has_surface, has_sync, draining| {
        classify(
            Outcome {
                status,
                has_surface,
                has_sync,
            },
            draining,
        )
    };
    for &(status, _) in Status::NAMED {
        assert_eq!(
            action(status, true, false, false),
            action(status, true, true, false)
        );
        if status.is_error() {
            assert_eq!(
                action(status, false, true, true),
                action(status, false, false, true)
            );
        } else {
            for (surface, sync) in [(false, false), (false, true), (true, true)] {
                assert_eq!(
                    action(status, surface, sync, true),
                    action(status, surface, sync, false)
                );
            }
        }
        if status.is_error() {
            let expected = match action(status, true, true, false) {
                Action::Reset | Action::Grow | Action::Reinit(_) => {
                    Action::Soft(vplretry_core::Damage::Unit)
                }
                other => other,
            };
            assert_eq!(action(status, true, true, true), expected);
        }
    }
}

#[test]
fn the_defaults_are_the_ones_in_the_guide() {
    let s = Settings::default();
    let guide = guide();
    for row in [
        format!("| `async_depth` | {} |", s.async_depth),
        format!("| `retry_interval` | {} us |", s.retry_interval.as_micros()),
        format!("| `max_attempts` | {} |", s.max_attempts),
        format!("| `retry_timeout` | {} ms |", s.retry_timeout.as_millis()),
        format!("| `sync_timeout` | {} ms |", s.sync_timeout.as_millis()),
        format!("| `sync_slice` | {} ms |", s.sync_slice.as_millis()),
        format!("| `spin_guard` | {} |", s.spin_guard),
        format!("| `frame_guard` | {} |", s.frame_guard),
        format!("| `device_retries` | {} |", s.device_retries),
        format!("| `recovery_delay` | {} ms |", s.recovery_delay.as_millis()),
        format!("| `damage_streak` | {} |", s.damage_streak),
        format!(
            "| `report_interval` | {} ms |",
            s.report_interval.as_millis()
        ),
        format!("| `corrupted_frames` | {:?} |", s.corrupted_frames),
    ] {
        assert!(guide.contains(&row), "{row}");
    }
}
