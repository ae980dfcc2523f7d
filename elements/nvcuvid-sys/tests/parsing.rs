// SPDX-License-Identifier: MPL-2.0

//! The parser and its client: what the client is told, and what its failures become.

mod common;

use common::World;
use nvcuvid_sys::*;

/// Writes down what it is told, and fails where it is told to.
#[derive(Default)]
struct Notes {
    codec: cudaVideoCodec,
    said: Vec<String>,
    fail_at: Option<&'static str>,
    panic_at: Option<&'static str>,
}

impl Notes {
    fn note(&mut self, text: String) -> Result<(), CallbackFailed> {
        let is = |at: Option<&str>| at.is_some_and(|at| text.starts_with(at));
        let (fail, panic) = (is(self.fail_at), is(self.panic_at));
        self.said.push(text);
        assert!(!panic, "a panic in the client");
        if fail { Err(CallbackFailed) } else { Ok(()) }
    }
}

impl ParserClient for Notes {
    fn sequence(&mut self, format: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed> {
        self.note(format!(
            "sequence {}x{}",
            format.coded_width, format.coded_height
        ))?;
        Ok(SequenceAnswer::Surfaces(
            u32::from(format.min_num_decode_surfaces) + 8,
        ))
    }

    fn decode(&mut self, picture: &PictureParams) -> Result<(), CallbackFailed> {
        assert_eq!(picture.second_field(), None);
        self.note(match picture.film_grain_reference(self.codec) {
            Some(reference) => format!(
                "decode {} without grain {reference}",
                picture.picture_index()
            ),
            None => format!("decode {}", picture.picture_index()),
        })
    }

    fn display(&mut self, display: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed> {
        self.note(format!(
            "display {} at {}",
            display.picture_index, display.timestamp
        ))
    }

    fn end_of_stream(&mut self) {
        self.said.push("end".to_owned());
    }

    fn operating_point(&mut self, _: &CUVIDOPERATINGPOINTINFO) -> OperatingPoint {
        OperatingPoint {
            index: 3,
            all_layers: true,
        }
    }
}

fn stubs() -> World {
    World::empty().cuda(&[]).nvcuvid(&[])
}

/// A parser and its client.
struct Pair {
    parser: Parser,
    notes: Notes,
}

impl Pair {
    fn new(codec: cudaVideoCodec) -> Self {
        let nvcuvid = Nvcuvid::load().expect("the stub is complete");
        let parser = Parser::new(nvcuvid, &ParserConfig::new(codec)).expect("the stub makes one");
        let notes = Notes {
            codec,
            ..Default::default()
        };
        Self { parser, notes }
    }

    fn parse(&mut self, packet: &Packet<'_>) -> Result<(), ParseError> {
        self.parser.parse(packet, &mut self.notes)
    }
}

/// What the last callback answered to the stub.
fn last_answer() -> i32 {
    let nvcuvid = Nvcuvid::load().expect("it was loaded before");
    let address = nvcuvid
        .extension("stub_last_answer")
        .expect("the stub has it");
    // SAFETY: the stub's variable is an int.
    unsafe { address.cast::<i32>().read() }
}

fn packet(data: &[u8]) -> Packet<'_> {
    Packet {
        data,
        ..Default::default()
    }
}

#[test]
fn the_client_is_told_what_the_stream_holds() {
    let child = World::child(stubs, || {
        let mut parser = Pair::new(cudaVideoCodec_H264);
        let first = Packet {
            timestamp: Some(40),
            ..packet(b"S\x04D\x00P\x00")
        };
        assert_eq!(parser.parse(&first), Ok(()));
        assert_eq!(parser.parse(&packet(b"S\x04")), Ok(()));
        assert_eq!(last_answer(), 12);
        // The film grain of another codec is none.
        assert_eq!(parser.parse(&packet(b"G\x01P\x01")), Ok(()));
        let end = Packet {
            end_of_stream: true,
            notify_end_of_stream: true,
            ..Default::default()
        };
        assert_eq!(parser.parse(&end), Ok(()));
        let said = std::mem::take(&mut parser.notes.said);
        let expected = [
            "sequence 64x32",
            "decode 0",
            "display 0 at 40",
            "sequence 64x32",
            "decode 1",
            "display 1 at -1",
            "end",
        ];
        assert_eq!(said, expected);
    });
    drop(child);
}

/// Counts what is shown, in a place that it borrows.
struct Shown<'a>(&'a mut usize);

impl ParserClient for Shown<'_> {
    fn sequence(&mut self, _: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed> {
        Ok(SequenceAnswer::Keep)
    }

    fn decode(&mut self, _: &PictureParams) -> Result<(), CallbackFailed> {
        Ok(())
    }

    fn display(&mut self, _: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed> {
        *self.0 += 1;
        Ok(())
    }
}

#[test]
fn a_client_lives_for_a_packet_and_may_borrow() {
    let child = World::child(stubs, || {
        let mut parser = Pair::new(cudaVideoCodec_H264).parser;
        let mut shown = 0;
        for data in [b"S\x04D\x00P\x00", b"P\x01D\x01P\x02"] {
            parser
                .parse(&packet(data), &mut Shown(&mut shown))
                .expect("it is parsed");
        }
        assert_eq!(shown, 3);
    });
    drop(child);
}

#[test]
fn owners_may_go_to_other_threads() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Parser>();
    sent::<PendingCopy<PinnedBuffer>>();
    shared::<Context>();
    shared::<Decoder>();
    shared::<Stream>();
    shared::<Event>();
    shared::<MappedSurface>();
    shared::<PinnedBuffer>();
}

#[test]
fn av1_has_a_second_surface_and_operating_points() {
    let child = World::child(stubs, || {
        let mut parser = Pair::new(cudaVideoCodec_AV1);
        assert_eq!(parser.parse(&packet(b"D\x02G\x05")), Ok(()));
        assert_eq!(parser.notes.said, ["decode 2", "decode 5 without grain 6"]);
        assert_eq!(parser.parse(&packet(b"O\x00")), Ok(()));
        assert_eq!(last_answer(), 3 | 1 << 10);
    });
    drop(child);
}

#[test]
fn a_client_that_fails_is_an_error_even_if_the_library_goes_on() {
    let child = World::child(stubs, || {
        let mut parser = Pair::new(cudaVideoCodec_H264);
        parser.notes.fail_at = Some("decode 1");
        assert_eq!(parser.parse(&packet(b"D\x01")), Err(ParseError::Callback));
        assert_eq!(last_answer(), 0);
        assert_eq!(
            parser.parse(&packet(b"D\x01D\x02")),
            Err(ParseError::Callback)
        );
        assert_eq!(parser.parse(&packet(b"D\x03")), Ok(()));
        assert_eq!(parser.notes.said.len(), 4);
    });
    drop(child);
}

#[test]
fn a_panic_does_not_cross_the_library_and_ends_the_parsing() {
    let child = World::child(stubs, || {
        for (at, data) in [
            ("sequence", b"S\x04D\x00"),
            ("decode", b"D\x00P\x00"),
            ("display", b"P\x00D\x00"),
        ] {
            let mut parser = Pair::new(cudaVideoCodec_H264);
            parser.notes.panic_at = Some(at);
            let panicked = Err(ParseError::Panic("a panic in the client".to_owned()));
            assert_eq!(parser.parse(&packet(data)), panicked);
            assert_eq!(parser.parse(&packet(b"D\x00")), panicked);
            assert_eq!(parser.notes.said.len(), 1, "nothing was called after it");
        }
    });
    drop(child);
}

#[test]
fn the_librarys_refusal_is_told() {
    let world = || stubs().set("STUB_FAIL", "cuvidParseVideoData:1:801");
    let child = World::child(world, || {
        let mut parser = Pair::new(cudaVideoCodec_H264);
        let error = parser
            .parse(&packet(b""))
            .expect_err("the stub refuses once");
        assert_eq!(
            error.to_string(),
            "cuvidParseVideoData: CUDA_ERROR_NOT_SUPPORTED (801)"
        );
        assert_eq!(parser.parse(&packet(b"")), Ok(()));
    });
    drop(child);
}

#[test]
fn a_callback_outside_of_a_packet_finds_nobody() {
    let child = World::child(stubs, || {
        let mut parser = Pair::new(cudaVideoCodec_H264);
        assert_eq!(parser.parse(&packet(b"D\x01")), Ok(()));
        assert_eq!(last_answer(), 1);
        let Pair { parser, notes } = parser;
        // The stub shows a last picture while it is destroyed.
        drop(parser);
        assert_eq!(last_answer(), 0);
        assert_eq!(notes.said, ["decode 1"]);
    });
    let Some((world, _)) = child else { return };
    let destroyed = |line: &&String| line.starts_with("cuvidDestroyVideoParser");
    assert_eq!(world.log().iter().filter(destroyed).count(), 1);
}

#[test]
fn a_parser_that_is_not_made_leaves_nothing_behind() {
    let world = || stubs().set("STUB_FAIL", "cuvidCreateVideoParser:1:801");
    let child = World::child(world, || {
        let nvcuvid = Nvcuvid::load().expect("the stub is complete");
        let config = ParserConfig::new(cudaVideoCodec_VC1);
        let refused = Parser::new(nvcuvid, &config).err();
        assert_eq!(
            refused.and_then(|error| error.code()),
            Some(CuResult::NOT_SUPPORTED)
        );
        let config = ParserConfig {
            error_threshold: 101,
            ..config
        };
        let refused = Parser::new(nvcuvid, &config).err();
        assert!(matches!(refused, Some(Error::Parameter(_))));
    });
    let Some((world, _)) = child else { return };
    assert!(
        !world
            .log()
            .iter()
            .any(|line| line.starts_with("cuvidDestroyVideoParser"))
    );
}
