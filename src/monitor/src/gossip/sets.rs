//! Sets of members of a group: as words of bits in memory, as gaps or as bits in packets, whichever is shorter.

use crate::wire::{Malformed, PacketReader, put_number};

/// Most members of a group, of the last layer too.
pub(crate) const MOST: usize = 1 << 16;

/// A set of local indices; trailing words of zeros are not stored, so the empty set takes no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, index: usize) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let bits = |(place, &word): (usize, &u64)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }

    /// Appends the set: a number whose lowest bit tells the form, then gaps between members or bytes of bits.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let count: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        put_number(out, u64::from(count) << 1);
        let mut next = 0;
        for index in self.iter() {
            put_number(out, (index - next) as u64);
            next = index + 1;
        }
        let length = next.div_ceil(8);
        if out.len() - start > length + 2 {
            out.truncate(start);
            put_number(out, (length as u64) << 1 | 1);
            out.extend(self.0.iter().flat_map(|word| word.to_le_bytes()).take(length));
        }
    }

    pub(crate) fn decode(reader: &mut PacketReader) -> Result<Set, Malformed> {
        let head = reader.number()?;
        let mut set = Set::default();
        if head & 1 == 1 {
            let length = usize::try_from(head >> 1).map_err(|_| Malformed::Range)?;
            if length > MOST / 8 {
                return Err(Malformed::Range);
            }
            for (place, byte) in reader.take(length)?.iter().enumerate() {
                (0..8).filter(|bit| byte >> bit & 1 == 1).for_each(|bit| set.insert(place * 8 + bit));
            }
        } else {
            let mut next = 0;
            for _ in 0..head >> 1 {
                let gap = usize::try_from(reader.number()?).map_err(|_| Malformed::Range)?;
                let index = next + gap.min(MOST);
                if index >= MOST {
                    return Err(Malformed::Range);
                }
                set.insert(index);
                next = index + 1;
            }
        }
        Ok(set)
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Set {
        let mut set = Set::default();
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_come_back(indices in btree_set(0usize..700, 0..300)) {
            let set: Set = indices.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), indices.iter().copied().collect::<Vec<_>>());
            let mut out = Vec::new();
            set.encode(&mut out);
            prop_assert!(out.len() <= 700 / 8 + 3);
            prop_assert_eq!(Set::decode(&mut PacketReader::new(&out)), Ok(set.clone()));
            prop_assert_eq!(set.is_empty(), indices.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
            let _ = Set::decode(&mut PacketReader::new(&bytes));
        }
    }
}
