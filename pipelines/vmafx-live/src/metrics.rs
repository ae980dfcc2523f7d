// SPDX-License-Identifier: MPL-2.0

//! `/metrics`: the state as Prometheus reads it, made when it is asked for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::hub::Hub;
use crate::news::{Counts, News, Phase};

/// What `encode` writes.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const FEATURES: [&str; 3] = ["motion", "motion2", "motion3"];

/// The counts of a decoder: a metric's name, what it is, and how to read it.
type DecoderMetric = (&'static str, &'static str, fn(&Counts) -> u64);
const DECODER: [DecoderMetric; 5] = [
    ("frames", "Frames that the decoder put out", |c| c.frames),
    (
        "retries",
        "Calls that the decoder had to repeat, or waits that ran out",
        |c| c.retries,
    ),
    (
        "recoveries",
        "Sessions or decoders replaced after a failure",
        |c| c.recoveries,
    ),
    (
        "dropped_frames",
        "Frames that the decoder took and did not put out",
        |c| c.dropped,
    ),
    ("corrupted_frames", "Frames with damage", |c| c.corrupted),
];

/// All metrics in OpenMetrics' text form.
pub(crate) fn encode(hub: &Arc<Hub>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("vmafx");
    registry.register_collector(Box::new(Scrape(hub.clone())));
    let mut text = String::new();
    encode_text(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Scrape(Arc<Hub>);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let known = self.0.known();
        let mut out = Out(&mut encoder);
        scores(&mut out, &known)?;
        pipeline(&mut out, &known)?;
        decoders(&mut out, &known)?;
        let audience = &self.0.audience;
        let clients = audience.clients.load(Ordering::Relaxed) as f64;
        out.gauge("clients", "Browsers that watch", None, clients)?;
        let refused = audience.refused.load(Ordering::Relaxed);
        out.counter(
            "clients_refused",
            "Browsers refused, for there were too many",
            refused,
        )?;
        let behind = audience.behind.load(Ordering::Relaxed);
        out.counter(
            "clients_behind",
            "Times a browser was too slow and got all anew",
            behind,
        )
    }
}

fn scores(out: &mut Out<'_, '_>, known: &News) -> fmt::Result {
    let totals = &known.totals;
    out.counter("frames", "Frames scored", totals.frames)?;
    out.counter("windows", "Windows pooled", totals.windows)?;
    out.counter("sessions", "Sessions begun", totals.sessions)?;
    if let Some(row) = known.frames.back() {
        let mut metric = out.describe(
            "frame_score",
            "Score of the newest frame",
            None,
            MetricType::Gauge,
        )?;
        for (feature, score) in FEATURES.iter().zip(row.scores()) {
            gauge(&mut metric, &[("feature", *feature)], score)?;
        }
    }
    if let Some(window) = known.windows.back() {
        let mut metric = out.describe(
            "window_score",
            "Score of the newest window",
            None,
            MetricType::Gauge,
        )?;
        for (name, value) in &window.window.values {
            if let (Some((feature, method)), Some(value)) = (name.split_once('.'), value.as_f64()) {
                gauge(
                    &mut metric,
                    &[("feature", feature), ("method", method)],
                    value,
                )?;
            }
        }
    }
    Ok(())
}

fn pipeline(out: &mut Out<'_, '_>, known: &News) -> fmt::Result {
    let mut metric = out.describe(
        "phase",
        "1 for the phase the stream is in",
        None,
        MetricType::Gauge,
    )?;
    for (phase, name) in Phase::ALL {
        let is = if phase == known.phase { 1.0 } else { 0.0 };
        gauge(&mut metric, &[("phase", name)], is)?;
    }
    let health = &known.health;
    let seconds = Some(&Unit::Seconds);
    if let Some(latency) = health.latency {
        out.gauge(
            "pipeline_latency",
            "Latency that the pipeline reports",
            seconds,
            latency as f64 / 1e3,
        )?;
    }
    if let Some(delay) = health.delay {
        out.gauge(
            "score_delay",
            "From when the newest frame was due to its scores",
            seconds,
            delay as f64 / 1e3,
        )?;
    }
    out.counter(
        "late_frames",
        "Frames dropped by elements for being late",
        health.late,
    )?;
    out.counter(
        "warnings",
        "Warnings of the pipeline",
        known.totals.warnings,
    )
}

fn decoders(out: &mut Out<'_, '_>, known: &News) -> fmt::Result {
    let decoders = known.decoders.as_deref().unwrap_or_default();
    let counting: Vec<_> = decoders
        .iter()
        .filter_map(|decoder| Some((decoder, decoder.counts?)))
        .collect();
    if counting.is_empty() {
        return Ok(());
    }
    for (name, help, read) in DECODER {
        let name = format!("decoder_{name}");
        let mut metric = out.describe(&name, help, None, MetricType::Counter)?;
        for (decoder, counts) in &counting {
            let labels = [
                ("element", decoder.element.as_str()),
                ("factory", decoder.factory.as_str()),
            ];
            metric
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&read(counts), None)?;
        }
    }
    Ok(())
}

/// The encoder, with the two forms that are needed.
struct Out<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Out<'_, '_> {
    fn describe<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.describe(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: f64) -> fmt::Result {
        self.describe(name, help, unit, MetricType::Gauge)?
            .encode_gauge(&value)
    }
}

fn gauge(metric: &mut MetricEncoder<'_>, labels: &impl EncodeLabelSet, value: f64) -> fmt::Result {
    metric.encode_family(labels)?.encode_gauge(&value)
}
