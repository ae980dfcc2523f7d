// SPDX-License-Identifier: MPL-2.0

//! How the parser behaves: order, latency, timestamps, surfaces and the end of a stream.

mod common;

use common::client::{Client, Happened, Options, Player};
use common::clips::{self, Clip};
use common::fields;
use common::{live, mistakes, on_standins, on_standins_with};
use elementary_stream::Codec;
use nvcuvid_sys::*;

/// 50 pictures with B pictures that are referred to.
fn reordered(folder: &std::path::Path) -> Clip {
    let how = "-f lavfi -i testsrc2=s=160x96:r=25:d=2 -c:v libx264 -bf 3 -x264-params b-adapt=0:b-pyramid=normal";
    let path = clips::make(folder, how, "b.h264");
    Clip::byte_stream(Codec::H264, &std::fs::read(path).expect("it was made"))
}

fn in_order() -> Clip {
    Clip::named("test-25fps.h264")
}

fn kinds(client: &Client) -> Vec<char> {
    let letter = |happened: &Happened| match happened {
        Happened::Sequence { .. } => 's',
        Happened::Decode { .. } => 'd',
        Happened::Show { .. } => 'v',
        Happened::End => 'e',
    };
    client.happened.iter().map(letter).collect()
}

fn shows_nothing(delay: u32) -> Options {
    Options {
        maps: false,
        max_display_delay: delay,
        ..Options::default()
    }
}

#[test]
fn a_whole_picture_is_decoded_at_once_and_otherwise_with_the_next_packet() {
    on_standins(|| {
        let clip = Clip::named("64x64-I-P.h264");
        for (end_of_picture, expected) in [(true, 1), (false, 0)] {
            let mut player = Player::new(clip.codec, Options::default());
            let packet = Packet {
                data: &clip.units[0],
                end_of_picture,
                ..Packet::default()
            };
            player.send(&packet).expect("it is parsed");
            assert_eq!(player.client.decoded().len(), expected);
            player
                .send(&Packet {
                    data: &clip.units[1],
                    ..packet
                })
                .expect("it is parsed");
            assert_eq!(player.client.decoded().len(), expected + 1);
            player.end();
            assert_eq!(player.client.decoded().len(), 2);
        }
        // Formats without start codes have no such latency.
        let clip = Clip::named("test-25fps.vp8");
        let mut player = Player::new(clip.codec, Options::default());
        let packet = Packet {
            data: &clip.units[0],
            ..Packet::default()
        };
        player.send(&packet).expect("it is parsed");
        assert_eq!(kinds(&player.client), ['s', 'd', 'v']);
    });
}

#[test]
fn behind_a_whole_picture_the_rest_of_the_packet_is_dropped() {
    on_standins(|| {
        let clip = Clip::named("64x64-I-P-B-P.h264");
        let mut player = Player::new(clip.codec, Options::default());
        let all = clip.bytes();
        let packet = Packet {
            data: &all,
            end_of_picture: true,
            ..Packet::default()
        };
        player.send(&packet).expect("it is parsed");
        player.end();
        assert_eq!(kinds(&player.client), ['s', 'd', 'v', 'e']);
    });
}

#[test]
fn decoding_order_is_not_display_order_and_display_delay_holds_pictures_back() {
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clip = reordered(folder.path());
        let client = Player::play(&clip, shows_nothing(0), true);
        assert_eq!((client.decoded().len(), client.shown.len()), (50, 50));
        let indices: Vec<i32> = client
            .shown
            .iter()
            .map(|shown| shown.index as i32)
            .collect();
        assert_ne!(indices, client.decoded());

        // In order and without delay each picture is shown in the call that decodes it.
        let clip = {
            let how = "-f lavfi -i testsrc2=s=160x96:r=25:d=1 -c:v libx264 -bf 0";
            let path = clips::make(folder.path(), how, "p.h264");
            Clip::byte_stream(Codec::H264, &std::fs::read(path).expect("it was made"))
        };
        for delay in [0, 2, 4] {
            let mut player = Player::new(clip.codec, shows_nothing(delay));
            let mut waiting = 0;
            for data in &clip.units {
                let packet = Packet {
                    data,
                    end_of_picture: true,
                    ..Packet::default()
                };
                player.send(&packet).expect("it is parsed");
                let client = &player.client;
                waiting = client.decoded().len() - client.shown.len();
                assert!(waiting <= delay as usize);
            }
            assert_eq!(waiting, delay as usize, "delay {delay}");
            player.end();
            assert_eq!(player.client.shown.len(), clip.units.len());
        }
    });
}

#[test]
fn a_surface_is_not_decoded_into_again_before_its_picture_was_shown() {
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for clip in [reordered(folder.path()), in_order()] {
            let client = Player::play(&clip, shows_nothing(2), true);
            let mut waiting = std::collections::BTreeSet::new();
            for happened in &client.happened {
                match happened {
                    Happened::Decode { index, .. } => assert!(waiting.insert(*index)),
                    Happened::Show { index, .. } => assert!(waiting.remove(index)),
                    _ => {}
                }
            }
            assert!(waiting.is_empty());
        }
    });
}

#[test]
fn surfaces_are_used_in_turn() {
    on_standins(|| {
        let client = Player::play(&in_order(), shows_nothing(0), true);
        let mut used = client.decoded();
        used.sort_unstable();
        used.dedup();
        assert!(used.len() >= 6, "{used:?}");
    });
}

#[test]
fn on_request_the_lowest_surface_comes_first() {
    on_standins_with(&[("NVSTANDIN_LOWEST_SURFACE", "1")], || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let how = "-f lavfi -i testsrc2=s=160x96:r=25:d=1 -c:v libx264 -bf 0 -refs 1";
        let path = clips::make(folder.path(), how, "p.h264");
        let clip = Clip::byte_stream(Codec::H264, &std::fs::read(path).expect("it was made"));
        let client = Player::play(&clip, shows_nothing(0), true);
        // The reference and the picture take turns.
        assert!(
            client.decoded().iter().all(|index| *index < 3),
            "{:?}",
            client.decoded()
        );
    });
}

#[test]
fn true_times_stay_and_counters_of_packets_are_sorted() {
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clip = reordered(folder.path());
        // Counters in decoding order: each picture that is shown gets the smallest that waits.
        let client = Player::play(&clip, shows_nothing(0), true);
        let counted = client.timestamps();
        assert!(counted.is_sorted());
        assert_eq!(counted.len(), 50);
        // What that means: a B picture carries the number of a packet that is not its own.
        let by_index = |client: &Client| {
            let mut packet = -1;
            let mut of_surface = [0_i64; 32];
            let mut wrong = 0;
            for happened in &client.happened {
                match happened {
                    Happened::Decode { index, .. } => {
                        packet += 1;
                        of_surface[*index as usize] = packet;
                    }
                    Happened::Show { index, timestamp } => {
                        wrong += usize::from(of_surface[*index as usize] != *timestamp);
                    }
                    _ => {}
                }
            }
            wrong
        };
        assert!(by_index(&client) > 20, "{} pictures", by_index(&client));

        // True times, from the order in which they were shown.
        let mut order = vec![0; 50];
        let mut decoded = Vec::new();
        let mut next = 0;
        for happened in &client.happened {
            match happened {
                Happened::Decode { index, .. } => decoded.push((*index, decoded.len())),
                Happened::Show { index, .. } => {
                    let at = decoded.iter().rposition(|(surface, _)| surface == index);
                    order[decoded[at.expect("it was decoded")].1] = next;
                    next += 1;
                }
                _ => {}
            }
        }
        let mut player = Player::new(clip.codec, shows_nothing(0));
        for (data, time) in clip.units.iter().zip(&order) {
            let packet = Packet {
                data,
                timestamp: Some(1000 + 40 * time),
                end_of_picture: true,
                ..Packet::default()
            };
            player.send(&packet).expect("it is parsed");
        }
        player.end();
        let expected: Vec<i64> = (0..50).map(|time| 1000 + 40 * time).collect();
        assert_eq!(player.client.timestamps(), expected);
    });
}

#[test]
fn without_timestamps_time_goes_on_by_a_frame_of_the_streams_rate() {
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let how = "-f lavfi -i testsrc2=s=160x96:r=25:d=1 -c:v libx264 -bf 0";
        let path = clips::make(folder.path(), how, "p.h264");
        let clip = Clip::byte_stream(Codec::H264, &std::fs::read(path).expect("it was made"));
        let mut player = Player::new(clip.codec, shows_nothing(0));
        for (number, data) in clip.units.iter().take(10).enumerate() {
            let packet = Packet {
                data,
                timestamp: (number == 0).then_some(500),
                end_of_picture: true,
                ..Packet::default()
            };
            player.send(&packet).expect("it is parsed");
        }
        player.end();
        // 10 MHz and 25 frames a second.
        let expected: Vec<i64> = (0..10).map(|number| 500 + 400_000 * number).collect();
        assert_eq!(player.client.timestamps(), expected);
    });
}

#[test]
fn without_reordering_the_packet_that_shows_gives_the_time() {
    on_standins(|| {
        let clip = Clip::named("vp90-2-10-show-existing-frame.vp9.ivf");
        let client = Player::play(&clip, shows_nothing(0), false);
        let (decoded, shown) = (client.decoded().len(), client.shown.len());
        assert_ne!(
            decoded, shown,
            "some frames are shown without being decoded"
        );
        assert!(client.timestamps().is_sorted());
        let last = clip.units.len() as i64 - 1;
        assert_eq!(client.timestamps().last(), Some(&last));
    });
}

#[test]
fn hidden_frames_are_decoded_and_not_shown() {
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let how = "-f lavfi -i testsrc2=s=160x96:r=25:d=2 -c:v libsvtav1 -preset 12";
        let path = clips::make(folder.path(), how, "hidden.ivf");
        let clip = clips::ivf(cudaVideoCodec_AV1, &path);
        let client = Player::play(&clip, shows_nothing(0), false);
        assert_eq!(client.shown.len(), 50);
        // A picture that is decoded hidden is shown by another packet, from the same surface.
        let at = |wanted: char| kinds(&client).iter().position(|kind| *kind == wanted);
        assert!(at('d') < at('v'));
        let together = kinds(&client)
            .windows(2)
            .filter(|pair| pair == &['d', 'd'])
            .count();
        assert!(
            together > 0,
            "some packets decode several frames: {:?}",
            kinds(&client)
        );
    });
}

#[test]
fn film_grain_takes_a_second_surface() {
    struct Grain(Client, usize);
    impl ParserClient for Grain {
        fn sequence(&mut self, format: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed> {
            self.0.sequence(format)
        }
        fn decode(&mut self, picture: &PictureParams) -> Result<(), CallbackFailed> {
            if let Some(plain) = picture.film_grain_reference(cudaVideoCodec_AV1) {
                assert_ne!(plain, picture.picture_index());
                self.1 += 1;
            }
            self.0.decode(picture)
        }
        fn display(&mut self, display: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed> {
            self.0.display(display)
        }
    }
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let how = "-f lavfi -i testsrc2=s=160x96:r=25:d=1 -c:v libsvtav1 -preset 12 -svtav1-params film-grain=20";
        let path = clips::make(folder.path(), how, "grain.ivf");
        let Player { mut parser, client } = Player::new(cudaVideoCodec_AV1, Options::default());
        let mut client = Grain(client, 0);
        for data in &clips::ivf(cudaVideoCodec_AV1, &path).units {
            let packet = Packet {
                data,
                ..Packet::default()
            };
            parser.parse(&packet, &mut client).expect("it is parsed");
        }
        assert_eq!(client.1, 25);
    });
}

#[test]
fn the_end_of_a_stream_shows_everything_and_forgets_the_sequence() {
    on_standins(|| {
        let clip = Clip::named("64x64-I-P-B-P.h264");
        let mut player = Player::new(clip.codec, Options::default());
        player.send_units(&clip, true);
        player.end();
        let once = kinds(&player.client);
        assert_eq!(once.last(), Some(&'e'));
        player.send_units(&clip, true);
        player.end();
        let twice = kinds(&player.client);
        assert_eq!(
            twice,
            [&once[..], &once[..]].concat(),
            "the sequence comes again"
        );

        // Without its headers the stream cannot go on.
        let inter = Packet {
            data: &clip.units[1],
            end_of_picture: true,
            ..Packet::default()
        };
        player.send(&inter).expect("it is parsed");
        assert_eq!(kinds(&player.client).len(), twice.len());
    });
}

/// The second-field flags and surfaces of every decode call.
fn decodes(client: &Client) -> Vec<(i32, Option<bool>)> {
    let decodes = client
        .happened
        .iter()
        .filter_map(|happened| match happened {
            Happened::Decode {
                index,
                second_field,
                ..
            } => Some((*index, *second_field)),
            _ => None,
        });
    decodes.collect()
}

#[test]
fn two_fields_are_two_decodes_and_one_display() {
    on_standins(|| {
        for clip in [fields::h264(5), fields::mpeg2(5)] {
            for end_of_picture in [true, false] {
                let client = Player::play(&clip, Options::default(), end_of_picture);
                let decodes = decodes(&client);
                assert_eq!(
                    (decodes.len(), client.shown.len()),
                    (10, 5),
                    "codec {}",
                    clip.codec
                );
                for pair in decodes.chunks(2) {
                    assert_eq!(pair[0].0, pair[1].0, "both fields are of one surface");
                    assert_eq!((pair[0].1, pair[1].1), (Some(false), Some(true)));
                }
                assert!(client.shown.iter().all(|shown| !shown.fields.progressive));
                assert!(client.shown.iter().all(|shown| !shown.fields.unpaired));
            }
        }
        assert_eq!(mistakes(), 0);
    });
}

#[test]
fn a_frame_of_two_fields_has_the_rows_of_both() {
    on_standins(|| {
        let client = Player::play(&fields::h264(5), Options::default(), true);
        for (frame, picture) in client.pictures().iter().enumerate() {
            let (top, bottom) = fields::luma_of(frame);
            for (row, samples) in picture[..64 * 64].chunks(64).enumerate() {
                let luma = if row % 2 == 0 { top } else { bottom };
                assert_eq!(samples, [luma; 64], "frame {frame}, row {row}");
            }
        }
        assert_eq!(
            client.timestamps(),
            [0, 2, 4, 6, 8],
            "the first field gives the time"
        );
    });
}

#[test]
fn a_field_without_its_pair_is_shown_as_such() {
    on_standins(|| {
        let mut clip = fields::h264(5);
        clip.units.remove(5);
        let client = Player::play(&clip, Options::default(), true);
        let unpaired: Vec<bool> = client
            .shown
            .iter()
            .map(|shown| shown.fields.unpaired)
            .collect();
        assert_eq!(unpaired, [false, false, true, false, false]);
        let (top, _) = fields::luma_of(2);
        let alone = client.shown[2].pixels.as_ref().expect("it was mapped");
        assert_eq!(
            alone[..64 * 64],
            [top; 64 * 64],
            "its rows stand for the missing ones"
        );

        // At the end of the stream too.
        clip.units.pop();
        let client = Player::play(&clip, Options::default(), true);
        assert!(
            client
                .shown
                .last()
                .is_some_and(|shown| shown.fields.unpaired)
        );
        assert_eq!(client.shown.len(), 5);
    });
}

#[test]
fn both_fields_in_a_whole_picture_lose_the_second() {
    on_standins(|| {
        let clip = fields::h264(3);
        let mut player = Player::new(clip.codec, Options::default());
        for pair in clip.units.chunks(2) {
            let data = &pair.concat();
            let packet = Packet {
                data,
                end_of_picture: true,
                ..Packet::default()
            };
            player.send(&packet).expect("it is parsed");
        }
        player.end();
        assert_eq!(decodes(&player.client).len(), 3);
    });
}

#[test]
fn a_callback_that_fails_fails_the_packet_and_the_picture_is_not_shown() {
    on_standins_with(&[("NVSTANDIN_FAULTS", "fail-decode=5")], || {
        let clip = in_order();
        let options = Options {
            fails: true,
            ..Options::default()
        };
        let mut player = Player::new(clip.codec, options);
        let mut failed = Vec::new();
        for (number, data) in clip.units.iter().take(20).enumerate() {
            let packet = Packet {
                data,
                end_of_picture: true,
                ..Packet::default()
            };
            if player.send(&packet) == Err(ParseError::Callback) {
                failed.push(number);
            }
        }
        player.end();
        assert_eq!(failed, [5]);
        assert_eq!(player.client.shown.len(), 19);
    });
}

#[test]
fn rubbish_and_cut_streams_are_survived_by_every_parser() {
    on_standins(|| {
        let rubbish: Vec<u8> = (0..3000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for codec in [
            cudaVideoCodec_H264,
            cudaVideoCodec_HEVC,
            cudaVideoCodec_VP8,
            cudaVideoCodec_VP9,
            cudaVideoCodec_AV1,
            cudaVideoCodec_MPEG2,
        ] {
            let mut player = Player::new(codec, Options::default());
            for end_of_picture in [true, false] {
                let packet = Packet {
                    data: &rubbish,
                    end_of_picture,
                    ..Packet::default()
                };
                let _ = player.send(&packet);
            }
            player.end();
            assert!(player.client.shown.is_empty(), "codec {codec}");
        }
        for name in [
            "test-25fps.h264",
            "test-25fps.h265",
            "test-25fps.vp8",
            "test-25fps.vp9",
            "test-25fps.ivf.av1",
        ] {
            let mut clip = Clip::named(name);
            clip.units.truncate(40);
            for unit in clip.units.iter_mut().skip(1).step_by(3) {
                unit.truncate(unit.len() / 2);
            }
            let mut player = Player::new(clip.codec, Options::default());
            for data in &clip.units {
                let packet = Packet {
                    data,
                    end_of_picture: true,
                    ..Packet::default()
                };
                let _ = player.send(&packet);
            }
            player.end();
            assert!(!player.client.shown.is_empty(), "{name}");
        }
        assert_eq!(mistakes(), 0);
        assert_eq!(live(), (0, 0));
    });
}

#[test]
fn a_sequence_says_what_the_stream_is() {
    struct Says(Option<CUVIDEOFORMAT>);
    impl ParserClient for Says {
        fn sequence(&mut self, format: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed> {
            self.0 = Some(*format);
            Err(CallbackFailed)
        }
        fn decode(&mut self, _: &PictureParams) -> Result<(), CallbackFailed> {
            panic!("nothing is decoded behind a sequence that was refused")
        }
        fn display(&mut self, _: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed> {
            panic!("nothing is shown")
        }
    }
    on_standins(|| {
        let clip = Clip::named("bear.h265");
        let mut parser = Player::new(clip.codec, Options::default()).parser;
        let mut says = Says(None);
        let packet = Packet {
            data: &clip.units[0],
            end_of_picture: true,
            ..Packet::default()
        };
        assert_eq!(parser.parse(&packet, &mut says), Err(ParseError::Callback));
        let format = says.0.expect("it was called");
        assert_eq!(format.codec, cudaVideoCodec_HEVC);
        let area = format.display_area;
        assert_eq!(
            (area.left, area.top, area.right, area.bottom),
            (0, 0, 320, 180)
        );
        assert_eq!((format.coded_width, format.coded_height % 8), (320, 0));
        assert_eq!(format.chroma_format, cudaVideoChromaFormat_420);
        assert_eq!(
            (format.display_aspect_ratio.x, format.display_aspect_ratio.y),
            (16, 9)
        );
        assert!((2..=20).contains(&format.min_num_decode_surfaces));
    });
}
