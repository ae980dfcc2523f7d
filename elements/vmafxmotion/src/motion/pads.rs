// SPDX-License-Identifier: MPL-2.0

//! Events and queries: what ends a session, what keeps its place behind a held frame, what `hold`
//! adds to latency and allocation.

use std::time::Duration;

use gst::subclass::prelude::*;

use super::imp::{CAT, VmafxMotion, lock};

/// Time for the score file to be complete before EOS goes on.
const FLUSH_TIME: Duration = Duration::from_millis(200);

impl VmafxMotion {
    pub(super) fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        gst::debug!(CAT, obj = pad, "event {event:?}");
        match event.view() {
            gst::EventView::Caps(caps) if !self.set_caps(caps.caps()) => return false,
            gst::EventView::Segment(segment) => {
                let mut state = lock(&self.state);
                state.segment = Some(segment.segment().clone());
                state.discontinuity();
            }
            gst::EventView::Gap(_) => lock(&self.state).discontinuity(),
            gst::EventView::StreamStart(_) => {
                self.end_session("STREAM_START");
                self.release_all();
                lock(&self.state).eos = false;
            }
            gst::EventView::FlushStop(_) => {
                // What is held belongs to what is flushed away; its scores do not.
                lock(&self.state).held.clear();
                self.end_session("FLUSH_STOP");
                let mut state = lock(&self.state);
                state.segment = None;
                state.flow_error = None;
                state.eos = false;
            }
            gst::EventView::Eos(_) => {
                self.end_session("EOS");
                self.release_all();
                let mut state = lock(&self.state);
                state.eos = true;
                let writer = state.writer.clone();
                drop(state);
                if let Some(writer) = writer {
                    writer.flush(FLUSH_TIME);
                }
            }
            _ => {}
        }
        if event.is_serialized() {
            let mut state = lock(&self.state);
            if !state.held.is_empty() {
                state.held.push_event(event);
                return true;
            }
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    pub(super) fn sink_query(&self, pad: &gst::Pad, query: &mut gst::QueryRef) -> bool {
        if query.is_serialized() {
            // A query cannot wait for its turn: what is before it must leave now.
            self.release_all();
        }
        let answered = gst::Pad::query_default(pad, Some(&*self.obj()), query);
        let hold = lock(&self.state).hold;
        if let (true, Some(hold), gst::QueryViewMut::Allocation(allocation)) =
            (answered, hold, query.view_mut())
        {
            raise_minimum(allocation, hold.frames);
        }
        answered
    }

    pub(super) fn src_query(&self, pad: &gst::Pad, query: &mut gst::QueryRef) -> bool {
        let answered = gst::Pad::query_default(pad, Some(&*self.obj()), query);
        let added = lock(&self.state).latency;
        if let (true, gst::QueryViewMut::Latency(latency)) = (answered, query.view_mut()) {
            let (live, min, max) = latency.result();
            let max = max.map(|max| max.saturating_add(added));
            latency.set(live, min.saturating_add(added), max);
        }
        answered
    }
}

/// Buffers that are held come on top of what downstream needs.
fn raise_minimum(allocation: &mut gst::query::Allocation, held: u64) {
    let held = u32::try_from(held).unwrap_or(u32::MAX);
    let pools: Vec<_> = allocation.allocation_pools().collect();
    for (index, (pool, size, min, max)) in (0..).zip(pools) {
        let min = min.saturating_add(held);
        // 0 is no limit.
        let max = if max == 0 { 0 } else { max.max(min) };
        allocation.set_nth_allocation_pool(index, pool.as_ref(), size, min, max);
    }
}
