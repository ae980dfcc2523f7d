// SPDX-License-Identifier: MPL-2.0

//! A simple client: whatever is shown is mapped, copied and unmapped at once. It keeps a record of every
//! callback.

use std::sync::Arc;

use nvcuvid_sys::*;

use super::clips::Clip;
use super::{context, nvcuvid};

/// What happened, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    Sequence {
        width: u32,
        height: u32,
        least: u32,
    },
    Decode {
        index: i32,
        second_field: Option<bool>,
        answer: CuResult,
    },
    Show {
        index: i32,
        timestamp: i64,
    },
    End,
}

/// A picture that was shown.
#[derive(Clone, Debug)]
pub struct Shown {
    pub index: u32,
    pub timestamp: i64,
    pub fields: FieldSelection,
    /// Columns and rows.
    pub size: (u32, u32),
    /// `None` where the codec keeps none.
    pub status: Option<DecodeStatus>,
    /// Cropped, or why it could not be mapped.
    pub pixels: Result<Vec<u8>, Error>,
}

/// How the client behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub max_display_delay: u32,
    /// Decode surfaces beyond the minimum.
    pub extra_surfaces: u32,
    /// The largest size, for reconfigurations; `None` makes a new decoder for each sequence.
    pub largest: Option<(u32, u32)>,
    /// Pictures are mapped; otherwise only shown.
    pub maps: bool,
    /// A picture that is not taken fails the callback.
    pub fails: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_display_delay: 0,
            extra_surfaces: 2,
            largest: None,
            maps: true,
            fails: false,
        }
    }
}

/// The client's side of the callbacks.
pub struct Client {
    pub options: Options,
    pub context: Arc<Context>,
    pub stream: Arc<Stream>,
    pub decoder: Option<Arc<Decoder>>,
    pub happened: Vec<Happened>,
    pub shown: Vec<Shown>,
    /// Columns and rows that are shown.
    pub size: (u32, u32),
    pub errors: Vec<Error>,
}

/// A parser with its client.
pub struct Player {
    pub parser: Parser,
    pub client: Client,
}

impl Player {
    pub fn new(codec: cudaVideoCodec, options: Options) -> Self {
        let context = context();
        let config = ParserConfig {
            max_display_delay: options.max_display_delay,
            ..ParserConfig::new(codec)
        };
        let stream = Stream::new(&context).expect("a stream");
        Self {
            parser: Parser::new(nvcuvid(), &config).expect("a parser"),
            client: Client {
                options,
                stream,
                context,
                decoder: None,
                happened: Vec::new(),
                shown: Vec::new(),
                size: (0, 0),
                errors: Vec::new(),
            },
        }
    }

    pub fn send(&mut self, packet: &Packet<'_>) -> Result<(), ParseError> {
        self.parser.parse(packet, &mut self.client)
    }

    /// Each unit in a packet of its own, with its number as timestamp.
    pub fn send_units(&mut self, clip: &Clip, end_of_picture: bool) {
        for (number, data) in clip.units.iter().enumerate() {
            let packet = Packet {
                data,
                timestamp: Some(number as i64),
                end_of_picture,
                ..Packet::default()
            };
            self.send(&packet).expect("it is parsed");
        }
    }

    pub fn end(&mut self) {
        let packet = Packet {
            end_of_stream: true,
            notify_end_of_stream: true,
            ..Packet::default()
        };
        self.send(&packet).expect("the end is parsed");
    }

    /// Plays a clip to its end.
    pub fn play(clip: &Clip, options: Options, end_of_picture: bool) -> Client {
        let mut player = Self::new(clip.codec, options);
        player.send_units(clip, end_of_picture);
        player.end();
        player.client
    }
}

impl Client {
    /// Each picture, where all could be mapped.
    pub fn pictures(&self) -> Vec<Vec<u8>> {
        let pixels = self.shown.iter().map(|shown| shown.pixels.clone());
        pixels
            .map(|pixels| pixels.expect("it was mapped"))
            .collect()
    }

    pub fn timestamps(&self) -> Vec<i64> {
        self.shown.iter().map(|shown| shown.timestamp).collect()
    }

    pub fn decoded(&self) -> Vec<i32> {
        let indices = self.happened.iter().filter_map(|happened| match happened {
            Happened::Decode { index, .. } => Some(*index),
            _ => None,
        });
        indices.collect()
    }

    fn read(&self, index: u32, fields: FieldSelection) -> Result<Vec<u8>, Error> {
        let decoder = self.decoder.as_ref().expect("there was a sequence");
        let surface = decoder.map(index, fields, &self.stream)?;
        let planes = surface.layout().packed(self.size.0, self.size.1);
        let planes = planes.expect("the crop fits");
        let last = planes.last().expect("there is a plane");
        let size = last.target + last.target_pitch * last.height;
        let buffer = PinnedBuffer::new(&self.context, size)?;
        let event = Event::new(&self.context)?;
        let copy = surface.copy_to_host(buffer, &planes, event);
        let copied = copy.map_err(|error| error.error)?.wait()?;
        surface.unmap()?;
        Ok(copied.target.as_slice().to_vec())
    }
}

impl ParserClient for Client {
    fn sequence(&mut self, format: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed> {
        let least = u32::from(format.min_num_decode_surfaces);
        self.happened.push(Happened::Sequence {
            width: format.coded_width,
            height: format.coded_height,
            least,
        });
        let surfaces = least + self.options.extra_surfaces + self.options.max_display_delay;
        let surfaces = surfaces.min(32);
        let mut config = DecoderConfig::for_format(format, surfaces, 2);
        let area = &format.display_area;
        config.display_area = Rect {
            left: area.left as u32,
            top: area.top as u32,
            right: area.right as u32,
            bottom: area.bottom as u32,
        };
        self.size = (
            (area.right - area.left) as u32,
            (area.bottom - area.top) as u32,
        );
        if let Some((width, height)) = self.options.largest {
            (config.max_width, config.max_height) = (width, height);
        }
        let done = match &self.decoder {
            Some(decoder) if self.options.largest.is_some() => decoder.reconfigure(&config),
            _ => {
                self.decoder = None;
                let made = Decoder::new(&self.context, nvcuvid(), &config);
                made.map(|decoder| self.decoder = Some(decoder))
            }
        };
        match done {
            Ok(()) => Ok(SequenceAnswer::Surfaces(surfaces)),
            Err(error) => {
                self.errors.push(error);
                Err(CallbackFailed)
            }
        }
    }

    fn decode(&mut self, picture: &PictureParams) -> Result<(), CallbackFailed> {
        let decoder = self.decoder.as_ref().expect("there was a sequence");
        let decoded = decoder.decode(picture);
        self.happened.push(Happened::Decode {
            index: picture.picture_index(),
            second_field: picture.second_field(),
            answer: match &decoded {
                Ok(()) => CuResult::SUCCESS,
                Err(Error::Cuda(error)) => error.code,
                Err(error) => panic!("{error}"),
            },
        });
        match decoded {
            Err(error) => {
                self.errors.push(error);
                if self.options.fails {
                    Err(CallbackFailed)
                } else {
                    Ok(())
                }
            }
            Ok(()) => Ok(()),
        }
    }

    fn display(&mut self, display: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed> {
        self.happened.push(Happened::Show {
            index: display.picture_index,
            timestamp: display.timestamp,
        });
        let index = display.picture_index as u32;
        let fields = FieldSelection::of(display);
        let pixels = match self.options.maps {
            true => self.read(index, fields),
            false => Ok(Vec::new()),
        };
        let decoder = self.decoder.as_ref().expect("there was a sequence");
        self.shown.push(Shown {
            index,
            timestamp: display.timestamp,
            fields,
            size: self.size,
            status: decoder.status(index).ok(),
            pixels,
        });
        Ok(())
    }

    fn end_of_stream(&mut self) {
        self.happened.push(Happened::End);
    }
}
