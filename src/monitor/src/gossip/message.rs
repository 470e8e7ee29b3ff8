//! What a packet carries, and its bytes between header and seal.
//!
//! A message is a list of sections: gossip list and suspect matrix per layer, records, contacts, a request for the time,
//! the answer to one. Heartbeats are differences to the sender's own one; rows of the suspect matrix that are equal, nearly
//! always all, stand once with the set of those who gave them; rows of zeros do not stand there at all.

use super::sets::{MOST, Set};
use super::types::{NodeId, Time};
use crate::wire::{Malformed, PacketReader, put_address, put_bytes, put_difference, put_number};
use std::net::SocketAddr;

/// Where another node can be reached, and which start of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contact {
    pub id: NodeId,
    pub address: SocketAddr,
    pub incarnation: u64,
}

/// Gossip list and suspect matrix of one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// 1 for nodes, 2 for groups of them, ...
    pub level: u8,
    /// Local index and heartbeat of every live entry, by index.
    pub heartbeats: Vec<(u32, u64)>,
    /// Rows of the suspect matrix: who gave them, whom they suspect.
    pub rows: Vec<(Set, Set)>,
}

/// What a record is about. Records of the same key replace each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordKey {
    /// 0 for data of a node; else the layer whose entry `id` (a number in the whole job) lives, is dead or has left.
    pub layer: u8,
    pub id: u32,
    pub key: u16,
}

/// A datum on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GossipRecord<'a> {
    pub key: RecordKey,
    /// Whether it goes to all groups.
    pub everywhere: bool,
    /// Larger is newer.
    pub version: u64,
    pub bytes: &'a [u8],
}

/// The content of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PacketContent<'a> {
    pub sections: Vec<Section>,
    pub records: Vec<GossipRecord<'a>>,
    pub contacts: Vec<Contact>,
    /// The sender asks for an answer with times.
    pub probe: bool,
    /// The sender is new, and asks for everything.
    pub hello: bool,
    /// The sender has not heard of the receiver's group for long, and asks for gossip in return.
    pub asks: bool,
    /// t1 and t2 of the request that this answers; t3 is the time in the header.
    pub echo: Option<(Time, Time)>,
}

const SECTION: u8 = 1;
const RECORDS: u8 = 2;
const CONTACTS: u8 = 3;
const PROBE: u8 = 4;
const ECHO: u8 = 5;
const HELLO: u8 = 6;
const ASKS: u8 = 7;

impl<'a> PacketContent<'a> {
    /// Appends the message. `base` is a heartbeat near those in it; the reader needs the same.
    pub(crate) fn encode(&self, base: u64, out: &mut Vec<u8>) {
        for section in &self.sections {
            out.push(SECTION);
            section.encode(base, out);
        }
        if !self.records.is_empty() {
            out.push(RECORDS);
            put_number(out, self.records.len() as u64);
            for record in &self.records {
                out.push(record.key.layer << 1 | u8::from(record.everywhere));
                put_number(out, u64::from(record.key.id));
                put_number(out, u64::from(record.key.key));
                put_difference(out, record.version, base);
                put_bytes(out, record.bytes);
            }
        }
        if !self.contacts.is_empty() {
            out.push(CONTACTS);
            put_number(out, self.contacts.len() as u64);
            for contact in &self.contacts {
                put_number(out, u64::from(contact.id.0));
                put_address(out, contact.address);
                put_number(out, contact.incarnation);
            }
        }
        if self.probe {
            out.push(PROBE);
        }
        if self.hello {
            out.push(HELLO);
        }
        if self.asks {
            out.push(ASKS);
        }
        if let Some((t1, t2)) = self.echo {
            out.push(ECHO);
            put_number(out, t1);
            put_number(out, t2);
        }
    }

    /// Reads what [`encode`](Self::encode) wrote, from a packet that may hold anything.
    pub(crate) fn decode(bytes: &'a [u8], base: u64) -> Result<Self, Malformed> {
        let mut reader = PacketReader::new(bytes);
        let mut message = PacketContent::default();
        while !reader.is_empty() {
            match reader.byte()? {
                SECTION => message.sections.push(Section::decode(&mut reader, base)?),
                RECORDS => {
                    for _ in 0..reader.count(5)? {
                        message.records.push(decode_record(&mut reader, base)?);
                    }
                }
                CONTACTS => {
                    for _ in 0..reader.count(9)? {
                        let id = NodeId(reader.number32()?);
                        let (address, incarnation) = (reader.address()?, reader.number()?);
                        message.contacts.push(Contact { id, address, incarnation });
                    }
                }
                PROBE => message.probe = true,
                HELLO => message.hello = true,
                ASKS => message.asks = true,
                ECHO => message.echo = Some((reader.number()?, reader.number()?)),
                _ => return Err(Malformed::Unknown),
            }
        }
        Ok(message)
    }
}

fn decode_record<'a>(reader: &mut PacketReader<'a>, base: u64) -> Result<GossipRecord<'a>, Malformed> {
    let head = reader.byte()?;
    let id = reader.number32()?;
    let key = u16::try_from(reader.number()?).map_err(|_| Malformed::Range)?;
    let version = reader.difference(base)?;
    let key = RecordKey { layer: head >> 1, id, key };
    Ok(GossipRecord { key, everywhere: head & 1 == 1, version, bytes: reader.bytes()? })
}

impl Section {
    fn encode(&self, base: u64, out: &mut Vec<u8>) {
        out.push(self.level);
        put_number(out, self.heartbeats.len() as u64);
        let mut next = 0;
        for &(index, heartbeat) in &self.heartbeats {
            put_number(out, u64::from(index - next));
            put_difference(out, heartbeat, base);
            next = index + 1;
        }
        put_number(out, self.rows.len() as u64);
        for (givers, suspects) in &self.rows {
            givers.encode(out);
            suspects.encode(out);
        }
    }

    fn decode(reader: &mut PacketReader, base: u64) -> Result<Self, Malformed> {
        let mut section = Section { level: reader.byte()?, ..Section::default() };
        let mut next = 0;
        for _ in 0..reader.count(2)? {
            let index = reader.number32()?.checked_add(next).filter(|&index| (index as usize) < MOST);
            let index = index.ok_or(Malformed::Range)?;
            section.heartbeats.push((index, reader.difference(base)?));
            next = index + 1;
        }
        for _ in 0..reader.count(2)? {
            section.rows.push((Set::decode(reader)?, Set::decode(reader)?));
        }
        Ok(section)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> PacketContent<'static> {
        let sections = vec![Section {
            level: 1,
            heartbeats: vec![(0, 990), (1, 1_001), (7, 1_000)],
            rows: vec![([0, 1].into_iter().collect(), [7].into_iter().collect())],
        }];
        let key = RecordKey { layer: 0, id: 3, key: 9 };
        let records = vec![GossipRecord { key, everywhere: true, version: 1_003, bytes: b"load" }];
        let address = "10.0.0.7:5000".parse().expect("an address");
        let contacts = vec![Contact { id: NodeId(7), address, incarnation: 1 << 60 }];
        PacketContent { sections, records, contacts, probe: true, hello: true, asks: true, echo: Some((5, u64::MAX)) }
    }

    #[test]
    fn a_message_comes_back_and_is_small() {
        let mut bytes = Vec::new();
        example().encode(1_000, &mut bytes);
        assert_eq!(PacketContent::decode(&bytes, 1_000), Ok(example()));
        assert!(bytes.len() < 64, "{}", bytes.len());
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_read_without_a_panic() {
        let mut bytes = Vec::new();
        example().encode(1_000, &mut bytes);
        for length in 0..bytes.len() {
            let _ = PacketContent::decode(&bytes[..length], 1_000);
        }
        for place in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[place] = value;
                let _ = PacketContent::decode(&changed, 1_000);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, base: u64) {
            let _ = PacketContent::decode(&bytes, base);
        }
    }
}
