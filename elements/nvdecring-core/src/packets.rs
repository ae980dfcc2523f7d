// SPDX-License-Identifier: MPL-2.0

//! Which packet a picture belongs to.
//!
//! Where each packet is one picture, a decode callback belongs to the packet being parsed if that ended
//! with `end_of_picture`, and otherwise mostly to the one before: the parser then sees the end of a picture
//! only when the next begins. So a picture takes the older of the last two packets that has none yet, and
//! one packet without a picture does not shift those after it.

use crate::api::FrameToken;
use crate::config::Identity;
use crate::output::DropReason;

#[derive(Debug)]
pub(crate) struct Packets {
    identity: Identity,
    /// The packet before the current one, while it has no picture.
    previous: Option<FrameToken>,
    current: Option<FrameToken>,
    end_of_picture: bool,
}

impl Packets {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            previous: None,
            current: None,
            end_of_picture: false,
        }
    }

    /// A packet is about to be parsed. Gives the one that can have no picture any more.
    pub(crate) fn start(&mut self, token: FrameToken, end_of_picture: bool) -> Option<FrameToken> {
        let out_of_reach = self.previous.take();
        self.previous = self.current.replace(token);
        self.end_of_picture = end_of_picture;
        out_of_reach
    }

    /// A picture is decoded: whose is it?
    pub(crate) fn claim(&mut self) -> Option<FrameToken> {
        match self.identity {
            Identity::Decoded => self.previous.take().or_else(|| self.current.take()),
            Identity::Shown => None,
        }
    }

    /// A second field is decoded: the packet that holds nothing but it, if there is one.
    pub(crate) fn claim_second_field(&mut self) -> Option<FrameToken> {
        match self.identity {
            Identity::Shown => None,
            Identity::Decoded => self
                .previous
                .take()
                .or_else(|| self.end_of_picture.then(|| self.current.take()).flatten()),
        }
    }

    /// The packet being parsed shows a picture: its token, the first time.
    pub(crate) fn claim_shown(&mut self) -> Option<FrameToken> {
        self.current.take()
    }

    /// The packet has been parsed. Gives it back where it has no picture and can get none.
    pub(crate) fn end(&mut self, end_of_picture: bool) -> Option<(FrameToken, DropReason)> {
        match self.identity {
            Identity::Shown => Some((self.current.take()?, DropReason::Hidden)),
            Identity::Decoded if end_of_picture => {
                Some((self.current.take()?, DropReason::NoPicture))
            }
            Identity::Decoded => None,
        }
    }

    /// Forgets all packets.
    pub(crate) fn clear(&mut self) {
        (self.previous, self.current) = (None, None);
    }

    /// Takes all packets without a picture.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = FrameToken> + use<> {
        [self.previous.take(), self.current.take()]
            .into_iter()
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FrameToken = FrameToken(1);
    const B: FrameToken = FrameToken(2);
    const C: FrameToken = FrameToken(3);
    const D: FrameToken = FrameToken(4);

    #[test]
    fn with_end_of_picture_the_picture_is_the_packets_own() {
        let mut packets = Packets::new(Identity::Decoded);
        for token in [A, B, C] {
            assert_eq!(packets.start(token, true), None);
            assert_eq!(packets.claim(), Some(token));
            assert_eq!(packets.end(true), None);
        }
    }

    #[test]
    fn without_it_the_picture_is_the_packet_befores() {
        let mut packets = Packets::new(Identity::Decoded);
        packets.start(A, false);
        assert_eq!(packets.end(false), None);
        packets.start(B, false);
        assert_eq!(packets.claim(), Some(A));
        assert_eq!(packets.end(false), None);
        // Two fields in one packet: the second is found while the packet itself is parsed.
        packets.start(C, false);
        assert_eq!(packets.claim(), Some(B));
        assert_eq!(packets.claim(), Some(C));
        assert_eq!(packets.claim_second_field(), None);
    }

    #[test]
    fn a_packet_without_a_picture_does_not_shift_the_others() {
        let mut packets = Packets::new(Identity::Decoded);
        packets.start(A, false);
        packets.start(B, false);
        assert_eq!(packets.claim(), Some(A));
        // B gives nothing.
        assert_eq!(packets.start(C, false), None);
        assert_eq!(packets.start(D, false), Some(B));
        assert_eq!(packets.claim(), Some(C));
        assert_eq!(packets.take().collect::<Vec<_>>(), [D]);
    }

    #[test]
    fn a_packet_with_end_of_picture_and_none_is_given_back() {
        let mut packets = Packets::new(Identity::Decoded);
        packets.start(A, true);
        assert_eq!(packets.end(true), Some((A, DropReason::NoPicture)));
        packets.start(B, true);
        assert_eq!(packets.claim(), Some(B));
    }

    #[test]
    fn a_second_field_has_its_own_packet_or_shares_one() {
        let mut packets = Packets::new(Identity::Decoded);
        packets.start(A, true);
        assert_eq!(packets.claim(), Some(A));
        packets.start(B, true);
        assert_eq!(packets.claim_second_field(), Some(B));
        assert_eq!(packets.end(true), None);
    }

    #[test]
    fn without_reordering_a_packet_has_the_picture_it_shows() {
        let mut packets = Packets::new(Identity::Shown);
        packets.start(A, true);
        assert_eq!(packets.claim(), None);
        assert_eq!(packets.end(true), Some((A, DropReason::Hidden)));
        packets.start(B, true);
        assert_eq!(packets.claim_shown(), Some(B));
        assert_eq!(packets.claim_shown(), None);
        assert_eq!(packets.end(true), None);
    }
}
