// SPDX-License-Identifier: MPL-2.0

//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Parser};

/// Serves a live page of motion scores and decoder health, an overlay for OBS, and metrics.
///
/// / is the page, /?overlay=1 the overlay (transparent), /metrics is for Prometheus, /state the page's data as
/// JSON. SIGINT or SIGTERM ends the stream, so that its last windows are scored and written; a second one ends
/// the program at once.
///
/// Exit status: 0 the stream ended or was stopped, 1 it failed, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
#[command(group = ArgGroup::new("source").required(true))]
pub(crate) struct Cli {
    /// Score the first video stream of this address: file:///..., rtsp://..., srt://..., https://...
    #[arg(long, group = "source", value_name = "URI")]
    pub(crate) uri: Option<String>,
    /// Run this pipeline, written as for gst-launch-1.0, with a vmafxmotion in it
    #[arg(long, group = "source", value_name = "PIPELINE")]
    pub(crate) launch: Option<String>,
    /// Show the score records (NDJSON) that come on standard input
    #[arg(long, group = "source")]
    pub(crate) stdin: bool,

    /// Where to listen; another address than that of this machine alone shows the page to others
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8086")]
    pub(crate) listen: SocketAddr,
    /// A host name that browsers may reach the page by, beside localhost and addresses; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Browsers that may watch at once; more are told to come back later
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_clients: u32,
    /// A browser that has taken nothing for so long is disconnected
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) client_timeout: Duration,
    /// Newest frames that are kept and shown
    #[arg(long, value_name = "FRAMES", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) history: u32,

    /// With --uri: length of a window of pooled scores
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) window: Duration,
    /// With --uri: score file (NDJSON) to write; an existing one is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// With --uri: score as fast as the machine can, not at the stream's own pace
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// How long the pipeline may take to end when it is asked to
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) stop_timeout: Duration,
    /// How long the page is served after the stream has ended or failed; `forever` until a signal comes
    #[arg(long, value_name = "SECONDS|forever", default_value = "3", value_parser = linger)]
    pub(crate) linger: Linger,
}

/// How long the page outlives the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linger {
    /// So long.
    For(Duration),
    /// Until a signal.
    Forever,
}

/// Seconds above 0 that are a day at most.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be above 0 and at most 86400".to_owned())
    }
}

fn linger(text: &str) -> Result<Linger, String> {
    match text {
        "forever" => Ok(Linger::Forever),
        "0" => Ok(Linger::For(Duration::ZERO)),
        _ => seconds(text).map(Linger::For),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["vmafx-live"].iter().chain(arguments))
    }

    #[test]
    fn exactly_one_source() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["--stdin", "--uri", "file:///a"]).is_err());
        let cli = parse(&["--stdin"]).expect("a source");
        assert!(cli.listen.ip().is_loopback());
    }

    #[test]
    fn times_are_seconds_in_range() {
        for bad in ["-1", "0", "nan", "1e9", "x"] {
            assert!(parse(&["--stdin", "--window", bad]).is_err(), "{bad}");
        }
        let cli = parse(&["--stdin", "--linger", "forever", "--window", "0.5"]).expect("good");
        assert_eq!(cli.linger, Linger::Forever);
        assert_eq!(cli.window, Duration::from_millis(500));
        let cli = parse(&["--stdin", "--linger", "0"]).expect("good");
        assert_eq!(cli.linger, Linger::For(Duration::ZERO));
    }
}
