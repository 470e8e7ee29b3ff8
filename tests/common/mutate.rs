//! Changes to the bytes of a file: for tests that any contents are read or refused.
#![allow(dead_code)] // every test uses its own part

use proptest::prelude::*;

/// One change: at a place (as a fraction of the length), of a kind, with a byte.
pub(crate) type Mutation = (u16, u8, u8);

/// Kinds of changes.
pub(crate) const KINDS: u8 = 11;

/// Numbers that mean something somewhere: lengths, counts, marks, extremes.
const WORDS: [u64; 8] = [0, 1, 255, 1 << 32, 1 << 40, i64::MAX as u64, u64::MAX - 1, u64::MAX];

/// Some changes. Of the bytes, those that mean something come more often: marks, record types, lengths, extremes.
pub(crate) fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let byte = prop_oneof![any::<u8>(), 0u8..32, prop::sample::select(vec![0x7F, 0x80, 0xFB, 0xFE, 0xFF])];
    prop::collection::vec((any::<u16>(), 0..KINDS, byte), 1..6)
}

/// Makes the changes, one after the other. Some take a piece of `other`.
pub(crate) fn mutate(bytes: &mut Vec<u8>, other: &[u8], mutations: &[Mutation]) {
    for &(place, kind, byte) in mutations {
        let at = bytes.len() * usize::from(place) / (usize::from(u16::MAX) + 1);
        let end = |length: usize| (at + length).min(bytes.len());
        match kind {
            0 => bytes.insert(at, byte),
            1 => drop(bytes.drain(at..end(1 + usize::from(byte % 24)))),
            2 => bytes.truncate(at),
            // An integer that is longer than any.
            3 => bytes.splice(at..at, [0xFF; 9]).for_each(drop),
            4 => {
                let part = bytes[at..end(usize::from(byte))].to_vec();
                bytes.splice(at..at, part).for_each(drop);
            }
            5 => bytes.splice(at..end(8), WORDS[usize::from(byte) % WORDS.len()].to_le_bytes()).for_each(drop),
            6 => {
                let part = other.get(at..(at + usize::from(byte)).min(other.len())).unwrap_or(&[]);
                bytes.splice(at..at, part.iter().copied()).for_each(drop);
            }
            7 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
            8 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(byte),
            _ if at < bytes.len() => bytes[at] = byte,
            _ => {}
        }
    }
}
