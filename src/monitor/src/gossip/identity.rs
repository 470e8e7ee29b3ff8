//! The record by which a node tells who and where it is.

use super::config::MAX_NAME;
use super::message::Contact;
use super::types::NodeId;
use crate::wire::{Malformed, PacketReader, put_address, put_bytes, put_number};

/// Key of the record; data of callers have lower ones.
pub(crate) const KEY: u16 = u16::MAX;

pub(crate) fn encode(contact: &Contact, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, contact.incarnation);
    put_address(&mut out, contact.address);
    let end = (0..=name.len().min(MAX_NAME)).rev().find(|&end| name.is_char_boundary(end));
    put_bytes(&mut out, &name.as_bytes()[..end.unwrap_or(0)]);
    out
}

/// Contact and name of the node with that number.
pub(crate) fn decode(id: NodeId, bytes: &[u8]) -> Result<(Contact, &str), Malformed> {
    let mut reader = PacketReader::new(bytes);
    let (incarnation, address) = (reader.number()?, reader.address()?);
    let name = std::str::from_utf8(reader.bytes()?).map_err(|_| Malformed::Unknown)?;
    Ok((Contact { id, address, incarnation }, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_comes_back_and_long_names_are_cut_between_letters() {
        let address = "[::1]:77".parse().expect("an address");
        let contact = Contact { id: NodeId(4), address, incarnation: u64::MAX };
        assert_eq!(decode(NodeId(4), &encode(&contact, "nöde")), Ok((contact, "nöde")));
        let long = "ö".repeat(40);
        assert_eq!(decode(NodeId(4), &encode(&contact, &long)), Ok((contact, &long[..64])));
        assert!(decode(NodeId(4), &[1, 4, 0]).is_err());
    }
}
