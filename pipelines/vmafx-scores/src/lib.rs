// SPDX-License-Identifier: MPL-2.0

//! Score files of `vmafxmotion`: what a line means, how to read millions of them in bounded
//! memory, and how to show them.
//!
//! | module | idea |
//! |---|---|
//! | [`records`] | one type a line of the NDJSON |
//! | [`reader`] | lines to records, with the line number in every error |
//! | [`buckets`] | a stream of unknown length cut into a few equal parts |
//! | [`csv`] | frames or windows as a table for spreadsheets |
//! | [`merge`] | the files of a film's chunks joined into the film's |
//! | [`peaks`] | the frames that differ most from the one before |
//! | [`plot`] | sessions as a picture |
//! | [`report`] | sessions as one web page, with every frame in it |
//! | [`session`] | one session of a score file, digested |
//! | [`table`] | a session as text |
//!
//! Nothing here knows GStreamer.

pub mod buckets;
pub mod csv;
pub mod merge;
pub mod peaks;
pub mod plot;
pub mod reader;
pub mod report;
pub mod session;
pub mod table;

pub use score_records as records;
