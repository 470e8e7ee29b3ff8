//! Header and seal of packets: who sent it to whom, in which order, and proof of the job's key.
//!
//! The seal is the keyed hash BLAKE3 of everything before it, cut to 16 bytes. A packet names its addressee and the
//! addressee's incarnation, so that a copy serves nowhere else and not after a restart; the sequence number, within the
//! sender's incarnation, lets each packet in once. Requests to join, which are sent when nobody is known yet, name neither: nodes answer them
//! and change nothing.

use super::types::{NodeId, Time};
use crate::wire::{Malformed, PacketReader, put_difference, put_number};

/// First byte of every packet: changes with the format.
const VERSION: u8 = 0x72;
/// Bytes of the seal.
pub(crate) const SEAL: usize = 16;
/// Addressee of requests to join.
pub(crate) const ANYBODY: NodeId = NodeId(u32::MAX);

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketKind {
    Gossip,
    Join,
    Welcome,
}

/// What stands before the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    pub kind: PacketKind,
    pub from: NodeId,
    pub to: NodeId,
    /// Lower half of the addressee's incarnation, 0 for anybody.
    pub addressee: u32,
    pub incarnation: u64,
    pub sequence: u64,
    /// The sender's clock when it sent.
    pub time: Time,
    /// The sender's heartbeat, which heartbeats in the message are relative to.
    pub heartbeat: u64,
}

impl PacketHeader {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.push(self.kind as u8);
        put_number(out, u64::from(self.from.0));
        put_number(out, u64::from(self.to.0.wrapping_add(1)));
        out.extend_from_slice(&self.addressee.to_le_bytes());
        put_number(out, self.incarnation);
        put_number(out, self.sequence);
        put_number(out, self.time);
        put_difference(out, self.heartbeat, 0);
    }

    fn decode(reader: &mut PacketReader) -> Result<Self, Malformed> {
        if reader.byte()? != VERSION {
            return Err(Malformed::Unknown);
        }
        let kind = match reader.byte()? {
            0 => PacketKind::Gossip,
            1 => PacketKind::Join,
            2 => PacketKind::Welcome,
            _ => return Err(Malformed::Unknown),
        };
        let from = NodeId(reader.number32()?);
        let to = NodeId(reader.number32()?.wrapping_sub(1));
        let mut addressee = 0;
        for shift in [0, 8, 16, 24] {
            addressee |= u32::from(reader.byte()?) << shift;
        }
        let (incarnation, sequence, time) = (reader.number()?, reader.number()?, reader.number()?);
        Ok(PacketHeader { kind, from, to, addressee, incarnation, sequence, time, heartbeat: reader.difference(0)? })
    }
}

fn hash(key: &[u8; 32], bytes: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(key, bytes)
}

/// Appends the seal of what is there.
pub(crate) fn seal(key: &[u8; 32], packet: &mut Vec<u8>) {
    let hash = hash(key, packet);
    packet.extend_from_slice(&hash.as_bytes()[..SEAL]);
}

/// Why a packet was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Forged,
    Malformed,
}

/// Header and message of a packet whose seal is right.
pub(crate) fn open<'a>(key: &[u8; 32], packet: &'a [u8]) -> Result<(PacketHeader, &'a [u8]), Refused> {
    let length = packet.len().checked_sub(SEAL).ok_or(Refused::Forged)?;
    let (content, seal) = packet.split_at(length);
    // Compared as whole hashes are, in constant time.
    let (ours, mut theirs) = (hash(key, content), [0; 32]);
    theirs[..SEAL].copy_from_slice(seal);
    theirs[SEAL..].copy_from_slice(&ours.as_bytes()[SEAL..]);
    if ours != blake3::Hash::from_bytes(theirs) {
        return Err(Refused::Forged);
    }
    let mut reader = PacketReader::new(content);
    let header = PacketHeader::decode(&mut reader).map_err(|_| Refused::Malformed)?;
    Ok((header, reader.rest()))
}

/// Which packets of a sender have been let in: the newest incarnation and the 128 sequence numbers up to the highest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AntiReplayWindow {
    incarnation: u64,
    highest: u64,
    /// The highest is the lowest bit of the 128, of which the lower half is first: two words need less room than one that is aligned to 16 bytes.
    seen: [u64; 2],
}

impl AntiReplayWindow {
    /// Whether the packet is new. If so it is not from then on.
    pub(crate) fn admit(&mut self, incarnation: u64, sequence: u64) -> bool {
        if incarnation > self.incarnation {
            *self = AntiReplayWindow { incarnation, highest: sequence, seen: [1, 0] };
            return true;
        }
        if incarnation < self.incarnation {
            return false;
        }
        if sequence > self.highest {
            let by = sequence - self.highest;
            self.set_seen(if by < 128 { self.seen() << by | 1 } else { 1 });
            self.highest = sequence;
            return true;
        }
        let back = self.highest - sequence;
        if back >= 128 || self.seen() >> back & 1 == 1 {
            return false;
        }
        self.set_seen(self.seen() | 1 << back);
        true
    }

    fn seen(&self) -> u128 {
        u128::from(self.seen[1]) << 64 | u128::from(self.seen[0])
    }

    fn set_seen(&mut self, seen: u128) {
        self.seen = [seen as u64, (seen >> 64) as u64];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn header() -> PacketHeader {
        PacketHeader {
            kind: PacketKind::Gossip,
            from: NodeId(3),
            to: ANYBODY,
            addressee: 77,
            incarnation: 5,
            sequence: 9,
            time: 1,
            heartbeat: 1 << 40,
        }
    }

    #[test]
    fn one_changed_bit_or_another_key_is_a_forgery() {
        let key = [7; 32];
        let mut packet = Vec::new();
        header().encode(&mut packet);
        packet.extend_from_slice(b"content");
        seal(&key, &mut packet);
        assert_eq!(open(&key, &packet), Ok((header(), &b"content"[..])));
        assert_eq!(open(&[8; 32], &packet), Err(Refused::Forged));
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&key, &changed), Err(Refused::Forged), "bit {bit}");
        }
        for length in 0..packet.len() {
            assert_eq!(open(&key, &packet[..length]), Err(Refused::Forged));
        }
    }

    proptest! {
        #[test]
        fn a_window_lets_nothing_in_twice(numbers in proptest::collection::vec((1u64..3, 0u64..200), 0..300)) {
            let (mut window, mut seen) = (AntiReplayWindow::default(), HashSet::new());
            for (incarnation, sequence) in numbers {
                if window.admit(incarnation, sequence) {
                    prop_assert!(seen.insert((incarnation, sequence)));
                }
            }
        }
    }

    #[test]
    fn packets_out_of_order_are_let_in() {
        let mut window = AntiReplayWindow::default();
        assert!([5, 3, 4, 135, 8].iter().all(|&sequence| window.admit(1, sequence)));
        assert!(!window.admit(1, 5), "too old to be remembered, so refused");
        assert!(window.admit(2, 1));
        assert!(!window.admit(1, 100), "an older incarnation");
    }
}
