// SPDX-License-Identifier: MPL-2.0

//! What the page says of a session beside its series.

use serde_json::{Map, Value, json};
use vmaf_motion::pool::{Feature, Method};

use crate::session::Session;
use crate::table::changed_options;

/// The facts of a session. `name` is that of its file; frames are numbers, since the page finds a
/// frame's exact index and time in the series.
pub(super) fn digest(name: &str, session: Session, windows_left_out: u64) -> Value {
    let header = &session.header;
    let pools: Map<String, Value> = Feature::ALL
        .into_iter()
        .map(|feature| {
            let methods = [Method::Min, Method::Mean, Method::Max, Method::HarmonicMean];
            let pool = |method: Method| session.pools.feature(feature).pool(method);
            let values: Map<String, Value> = methods
                .into_iter()
                .map(|method| (method.name().to_owned(), pool(method).into()))
                .collect();
            (feature.name().to_owned(), values.into())
        })
        .collect();
    let mut facts = json!({
        "file": name,
        "session": header.session,
        "width": header.width,
        "height": header.height,
        "format": header.format,
        "depth": header.depth,
        "extractor": header.extractor,
        "version": header.version,
        "options": changed_options(header),
        "frames": session.frames,
        "missing": session.missing,
        "untimed": session.frames - session.timed,
        "inTime": session.in_time(),
        "jumps": session.jumps(),
        "windows": session.windows,
        "windowsLeftOut": windows_left_out,
        "pools": pools,
    });
    let (mut cuts, found) = session.cuts.finish_counted();
    cuts.sort_by_key(|cut| cut.frame);
    facts["cuts"] = cuts.iter().map(|cut| cut.frame).collect();
    facts["cutsFound"] = found.into();
    facts
}
