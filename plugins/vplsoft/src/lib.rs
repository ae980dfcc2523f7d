// SPDX-License-Identifier: MPL-2.0

//! A software oneVPL runtime for decoding, and one that misbehaves on command.
//!
//! The library exports the 54 functions of API 2.8 (`exports`); libavcodec does the work.
//!
//! | module | idea |
//! |---|---|
//! | `exports` | thin shims: no panic leaves them, and none calls another, because an own exported name may be bound to the dispatcher's |
//! | `legacy` | names of API 1 that the Media SDK dispatcher insists on |
//! | `session` | handles and what they stand for; a stale one is an error, never a pointer |
//! | `describe` | what the dispatcher asks before it opens a session |
//! | `pose` | software, or on demand what is taken for hardware |
//! | `params`, `query` | sequence headers, `mfxVideoParam`, and what clients ask about it |
//! | `decoder` | bitstream in, pictures out |
//! | `call` | `DecodeFrameAsync`: faults, decoding, a surface, a sync point |
//! | `surface`, `interface`, `pool` | surfaces that the runtime allocates, their functions, how many there may be |
//! | `external` | surfaces that the client brings |
//! | `task` | operations in flight: sync points, deadlines, engines |
//! | `faults` | what `VPLSOFT_FAULTS` asks of this session |
//! | `pin` | keeping the library loaded, and hanging |

mod call;
mod decoder;
mod describe;
mod exports;
mod external;
mod faults;
mod interface;
mod legacy;
mod memory;
mod params;
mod pin;
mod pool;
mod pose;
mod query;
mod session;
mod surface;
mod task;
