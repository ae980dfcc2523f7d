// SPDX-License-Identifier: MPL-2.0

//! What the decoding libraries make of one unit of the stream: pictures that were decoded, in decoding order,
//! and pictures that are to be shown, in display order.

use std::sync::{Arc, Mutex};

use av_backend::{
    Codec, DecoderOptions, Error, FieldOrder, Inspector, Picture, PictureKind, Received, Sent,
    Structure,
};

use crate::lock;
use crate::pixels::Pixels;
use crate::report::log;
use crate::surfaces::{Begun, Gate, Lease, Slots};
use crate::units::mpeg2_structure;

/// One of two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// It is the bottom one.
    pub bottom: bool,
    /// It is the second of its pair.
    pub second: bool,
}

/// A picture, or a field of one, that was decoded.
#[derive(Debug)]
pub struct Decoded {
    /// Its surface.
    pub lease: Arc<Lease>,
    /// The surface of its samples without film grain, which later pictures refer to; `lease` is the one with.
    pub without_grain: Option<Arc<Lease>>,
    /// What the surface holds when the engine is done. `None`: samples that NVDEC does not give.
    pub pixels: Option<Arc<Pixels>>,
    /// How it is predicted.
    pub kind: PictureKind,
    /// `None` for a frame.
    pub field: Option<Field>,
}

/// A picture that is to be shown.
#[derive(Debug)]
pub struct Shown {
    /// Its surface, held until it was shown.
    pub lease: Arc<Lease>,
    /// Progressive, or which field is first.
    pub order: FieldOrder,
    /// Fields by which it is shown longer, -1 for a field without its pair.
    pub repeat: i32,
    /// The stream is damaged there, and what is missing was concealed.
    pub damaged: bool,
}

/// What came of a unit.
#[derive(Debug)]
pub enum Event {
    /// In decoding order.
    Decoded(Decoded),
    /// In display order.
    Shown(Shown),
}

/// A decoding library.
pub trait Backend: Send {
    /// Decodes one unit: an access unit, a field, a frame.
    fn decode(&mut self, unit: &[u8]) -> Vec<Event>;

    /// Shows what is left, and begins anew. Parameter sets stay known.
    fn drain(&mut self) -> Vec<Event>;

    /// Gives it another set of surfaces, after a drain.
    fn set_slots(&mut self, slots: Slots);

    /// Whether a picture was not decoded because no surface was free.
    fn was_short(&self) -> bool;
}

/// libavcodec.
#[derive(Debug)]
pub struct Libav {
    decoder: av_backend::Decoder,
    inspector: Inspector,
    gate: Gate,
    /// A first field whose second has not come. Until then its frame is not complete.
    open: Option<OpenFrame>,
    /// The last field that stayed alone.
    unpaired: Vec<u64>,
}

#[derive(Debug)]
struct OpenFrame {
    begun: Begun,
    bottom: bool,
}

impl Libav {
    /// # Errors
    /// libavcodec lacks the codec, or memory.
    pub fn new(codec: Codec, full_reorder_delay: bool, slots: Slots) -> Result<Self, Error> {
        let gate = Gate {
            slots: Arc::new(Mutex::new(slots)),
            begun: Arc::default(),
        };
        let options = DecoderOptions {
            frame_threads: 1,
            full_reorder_delay,
        };
        let surfaces = Box::new(gate.clone());
        Ok(Self {
            decoder: av_backend::Decoder::open_with_surfaces(codec, options, surfaces)?,
            inspector: Inspector::new(codec)?,
            gate,
            open: None,
            unpaired: Vec::new(),
        })
    }

    fn receive(&mut self) -> Vec<Picture> {
        let mut pictures = Vec::new();
        loop {
            match self.decoder.receive() {
                Ok(Received::Picture(picture)) => pictures.push(picture),
                Ok(Received::NeedInput | Received::Drained) => return pictures,
                Err(error) => {
                    log(|| format!("a picture is damaged: {error}"));
                    if error != Error::InvalidData {
                        return pictures;
                    }
                }
            }
        }
    }

    fn send(&mut self, unit: &[u8]) -> Vec<Picture> {
        let mut pictures = Vec::new();
        loop {
            match self.decoder.send(unit, None) {
                Ok(Sent::Accepted) => break,
                Ok(Sent::Full) => pictures.extend(self.receive()),
                Err(error) => {
                    log(|| format!("a unit of {} bytes is damaged: {error}", unit.len()));
                    break;
                }
            }
        }
        pictures.extend(self.receive());
        pictures
    }

    fn shown(&self, picture: &Picture) -> Option<Event> {
        let lease = picture.tag()?.downcast::<Lease>().ok()?;
        // One that stayed a field was shown when that was clear.
        let is_known = self.unpaired.contains(&lease.token);
        (!is_known).then(|| {
            Event::Shown(Shown {
                order: picture.field_order(),
                repeat: picture.repeat_fields() as i32,
                damaged: picture.damage().any(),
                lease,
            })
        })
    }

    /// Another picture begins. libavcodec keeps a field that stayed alone to itself; NVIDIA's parser shows it.
    fn close_frame(&mut self) -> Option<Event> {
        let open = self.open.take()?;
        let lease = open.begun.lease;
        self.unpaired.push(lease.token);
        if self.unpaired.len() > 32 {
            self.unpaired.remove(0);
        }
        Some(Event::Shown(Shown {
            lease,
            order: match open.bottom {
                true => FieldOrder::BottomFirst,
                false => FieldOrder::TopFirst,
            },
            repeat: -1,
            damaged: false,
        }))
    }
}

fn decoded(begun: &Begun, kind: PictureKind, field: Option<Field>) -> Event {
    let mut pixels = Pixels::of(&begun.buffer);
    match (&mut pixels, field) {
        (
            Ok(pixels),
            Some(Field {
                bottom,
                second: false,
            }),
        ) => pixels.double_field(bottom),
        (Err(error), _) => log(|| format!("a picture has no pixels: {error}")),
        _ => {}
    }
    Event::Decoded(Decoded {
        lease: begun.lease.clone(),
        without_grain: None,
        pixels: pixels.ok().map(Arc::new),
        kind,
        field,
    })
}

impl Backend for Libav {
    fn decode(&mut self, unit: &[u8]) -> Vec<Event> {
        let info = self.inspector.inspect(unit);
        let pictures = self.send(unit);
        // Pictures before the last stand in for references that are missing; no client hears of them.
        let begun = lock(&self.gate.begun).drain(..).next_back();
        let structure = match self.decoder.codec() {
            Codec::Mpeg2 => mpeg2_structure(unit),
            _ => info.structure,
        };
        let bottom = match structure {
            Structure::Frame => None,
            Structure::TopField => Some(false),
            Structure::BottomField => Some(true),
        };
        let field = |bottom, second| Some(Field { bottom, second });
        let mut events = Vec::new();
        match (begun, bottom) {
            (Some(begun), None) => {
                events.extend(self.close_frame());
                events.push(decoded(&begun, info.kind, None));
            }
            (Some(begun), Some(bottom)) if self.decoder.codec() == Codec::Mpeg2 => {
                // Both fields are in the unit.
                events.push(decoded(&begun, info.kind, field(bottom, false)));
                events.push(decoded(&begun, info.kind, field(!bottom, true)));
            }
            (Some(begun), Some(bottom)) => {
                events.extend(self.close_frame());
                events.push(decoded(&begun, info.kind, field(bottom, false)));
                self.open = Some(OpenFrame { begun, bottom });
            }
            (None, Some(bottom)) => match self.open.take() {
                Some(open) if open.bottom != bottom => {
                    events.push(decoded(&open.begun, info.kind, field(bottom, true)));
                }
                other => self.open = other,
            },
            (None, None) => {}
        }
        events.extend(pictures.iter().filter_map(|picture| self.shown(picture)));
        events
    }

    fn drain(&mut self) -> Vec<Event> {
        let alone = self.close_frame();
        self.decoder.drain();
        let pictures = self.receive();
        let shown = pictures.iter().filter_map(|picture| self.shown(picture));
        let events = shown.chain(alone).collect();
        self.decoder.flush();
        lock(&self.gate.begun).clear();
        events
    }

    fn set_slots(&mut self, slots: Slots) {
        *lock(&self.gate.slots) = slots;
    }

    fn was_short(&self) -> bool {
        lock(&self.gate.slots).was_short()
    }
}
