// SPDX-License-Identifier: MPL-2.0

//! What the measurements share: a pipeline that ends, percentiles, the process's memory.

use std::time::Duration;

use gst::prelude::*;
use thiserror::Error;

/// A measurement that could not be taken.
#[derive(Debug, Error)]
pub enum CampaignError {
    /// GStreamer's own errors, a missing element most of all.
    #[error("{0}")]
    Gst(#[from] gst::glib::Error),
    /// The plugin cannot be registered.
    #[error("{0}")]
    Bool(#[from] gst::glib::BoolError),
    /// A state that is not reached.
    #[error("{0}")]
    State(#[from] gst::StateChangeError),
    /// An error on the bus.
    #[error("{source_name}: {error}")]
    Bus {
        /// Who posted it.
        source_name: String,
        /// What it says.
        error: gst::glib::Error,
    },
    /// `/proc/self/statm` cannot be read.
    #[error("resident memory is unknown: {0}")]
    Memory(#[from] std::io::Error),
    /// Too little was measured to say anything.
    #[error("{0}")]
    TooLittle(String),
}

/// Starts GStreamer with the plugin linked in and makes the pipeline.
///
/// # Errors
/// When an element is missing.
pub fn pipeline(launch: &str) -> Result<gst::Pipeline, CampaignError> {
    gst::init()?;
    gstvmafxmotion::plugin_register_static()?;
    let pipeline = gst::parse::launch(launch)?;
    pipeline
        .downcast::<gst::Pipeline>()
        .map_err(|_| CampaignError::TooLittle("the launch line is no pipeline".to_owned()))
}

/// Plays the pipeline to its end; `message` sees every message, and is called at least once a
/// second.
///
/// # Errors
/// The first error on the bus, and what `message` fails with.
pub fn play(
    pipeline: &gst::Pipeline,
    mut message: impl FnMut(Option<&gst::Message>) -> Result<(), CampaignError>,
) -> Result<(), CampaignError> {
    let stop = Stop(pipeline);
    pipeline.set_state(gst::State::Playing)?;
    let Some(bus) = pipeline.bus() else {
        return Err(CampaignError::TooLittle(
            "the pipeline has no bus".to_owned(),
        ));
    };
    loop {
        let popped = bus.timed_pop(gst::ClockTime::SECOND);
        message(popped.as_ref())?;
        match popped.as_ref().map(|message| message.view()) {
            Some(gst::MessageView::Eos(_)) => break,
            Some(gst::MessageView::Error(error)) => {
                return Err(CampaignError::Bus {
                    source_name: error
                        .src()
                        .map(|src| src.path_string().to_string())
                        .unwrap_or_default(),
                    error: error.error(),
                });
            }
            _ => {}
        }
    }
    drop(stop);
    Ok(())
}

/// Stops the pipeline also where the measurement fails.
struct Stop<'a>(&'a gst::Pipeline);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        // Stopping is all that is left to do.
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// Percentile `percent` of the times by the nearest rank; sorts them. `None` where there are none.
pub fn percentile(times: &mut [Duration], percent: f64) -> Option<Duration> {
    times.sort_unstable();
    let rank = (percent / 100.0 * times.len() as f64).ceil() as usize;
    times.get(rank.saturating_sub(1)).copied()
}

/// Resident memory of this process in bytes.
///
/// # Errors
/// Where `/proc` is not Linux's.
pub fn resident() -> Result<u64, std::io::Error> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages
        .map(|pages| pages * 4096)
        .ok_or_else(|| std::io::Error::other("/proc/self/statm has no second number"))
}

/// What this process has used of the processors.
pub fn processor_time() -> Duration {
    nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)
        .map(|usage| {
            let both = usage.user_time() + usage.system_time();
            let microseconds = both.tv_sec() * 1_000_000 + both.tv_usec();
            Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank() {
        let mut times: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(
            percentile(&mut times, 99.0),
            Some(Duration::from_millis(198))
        );
        assert_eq!(
            percentile(&mut times, 50.0),
            Some(Duration::from_millis(100))
        );
        assert_eq!(
            percentile(&mut times, 100.0),
            Some(Duration::from_millis(200))
        );
        assert_eq!(percentile(&mut [], 99.0), None);
    }

    #[test]
    fn a_process_has_memory() {
        assert!(resident().unwrap() > 1 << 20);
    }
}
