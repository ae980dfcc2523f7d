// SPDX-License-Identifier: MPL-2.0

//! Queries pass as if the element were not there.

mod common;

use common::{Bench, gray, gray_caps};
use gst::ClockTime;
use gst::prelude::*;

#[test]
fn latency_is_the_neighbours() {
    let mut bench = Bench::gray(16, 12, |_| {});
    bench
        .harness
        .set_upstream_latency(ClockTime::from_mseconds(17));
    assert_eq!(
        bench.harness.query_latency(),
        Some(ClockTime::from_mseconds(17))
    );
}

#[test]
fn allocation_is_asked_of_the_peer() {
    let bench = Bench::gray(16, 12, |_| {});
    // The harness' sink adds what an application asks for.
    let sinkpad = bench.harness.sinkpad().unwrap();
    sinkpad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, |_, info| {
        if let Some(query) = info.query_mut()
            && let gst::QueryViewMut::Allocation(allocation) = query.view_mut()
        {
            allocation.add_allocation_pool(None::<&gst::BufferPool>, 1024, 5, 9);
            return gst::PadProbeReturn::Handled;
        }
        gst::PadProbeReturn::Ok
    });
    let mut query = gst::query::Allocation::new(Some(&gray_caps(16, 12)), true);
    assert!(bench.harness.srcpad().unwrap().peer_query(&mut query));
    let pools: Vec<_> = query.allocation_pools().collect();
    assert_eq!(pools.len(), 1);
    assert_eq!((pools[0].1, pools[0].2, pools[0].3), (1024, 5, 9));
    assert!(
        query
            .find_allocation_meta::<gst_video::VideoMeta>()
            .is_none()
    );
}

#[test]
fn a_video_meta_that_downstream_takes_is_offered_upstream() {
    let mut bench = Bench::gray(16, 12, |_| {});
    let api = gst_video::VideoMeta::meta_api();
    bench.harness.add_propose_allocation_meta(api, None);
    let mut query = gst::query::Allocation::new(Some(&gray_caps(16, 12)), false);
    assert!(bench.harness.srcpad().unwrap().peer_query(&mut query));
    assert!(
        query
            .find_allocation_meta::<gst_video::VideoMeta>()
            .is_some()
    );
}

#[test]
fn drain_and_custom_queries_reach_the_peer() {
    let mut bench = Bench::gray(16, 12, |_| {});
    bench.score(gray(16, 12, 0));
    let sinkpad = bench.harness.sinkpad().unwrap();
    sinkpad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, |_, info| {
        match info.query().map(|query| query.type_()) {
            Some(gst::QueryType::Drain | gst::QueryType::Custom) => gst::PadProbeReturn::Handled,
            _ => gst::PadProbeReturn::Ok,
        }
    });
    let srcpad = bench.harness.srcpad().unwrap();
    assert!(srcpad.peer_query(&mut gst::query::Drain::new()));
    let question = gst::Structure::new_empty("question");
    assert!(srcpad.peer_query(&mut gst::query::Custom::new(question)));
}

#[test]
fn caps_are_the_peers_where_they_can_be_scored() {
    let mut bench = Bench::new(|_| {});
    bench
        .harness
        .set_sink_caps_str("video/x-raw,format={NV12,RGB},width=[1,100],height=48");
    let caps = bench.harness.srcpad().unwrap().peer_query_caps(None);
    let caps = caps.to_string();
    assert!(
        caps.contains("NV12") && !caps.contains("RGB") && caps.contains("48"),
        "{caps}"
    );
}
