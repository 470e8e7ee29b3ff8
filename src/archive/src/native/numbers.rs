//! Integers as bytes: fixed width in headers, LEB128 in events.

/// Most bytes of a LEB128 number of 64 bits.
pub(super) const LONGEST: usize = 10;

/// Appends `value` in groups of seven bits, lowest first; the top bit of a byte says that another one follows.
#[inline]
pub(super) fn put(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    into.push(low_byte(value));
}

/// The lowest eight bits.
#[inline]
fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Takes bytes off the front of a slice; `None` if there are not enough, or a number is too large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    /// One byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A byte 0 or 1.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A LEB128 number of up to 64 bits.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7F);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A LEB128 number of up to 32 bits.
    #[inline]
    pub(crate) fn number32(&mut self) -> Option<u32> {
        self.number().and_then(|value| u32::try_from(value).ok())
    }

    /// So many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// Four bytes as an integer.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    /// Eight bytes as an integer.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, shift in 0u32..64) {
            let mut bytes = Vec::new();
            put(&mut bytes, value >> shift);
            put(&mut bytes, u64::MAX);
            prop_assert!(bytes.len() <= 2 * LONGEST);
            let mut rest = ByteReader(&bytes);
            prop_assert_eq!(rest.number(), Some(value >> shift));
            prop_assert_eq!(rest.number(), Some(u64::MAX));
            prop_assert!(rest.0.is_empty());
        }
    }

    #[test]
    fn numbers_that_do_not_fit_or_do_not_end() {
        assert_eq!(ByteReader(&[0xFF; 9]).number(), None);
        assert_eq!(ByteReader(&[0xFF; 20]).number(), None);
        assert_eq!(ByteReader(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02]).number(), None);
        assert_eq!(ByteReader(&[0x80, 0x80, 0x80, 0x80, 0x10]).number32(), None);
        assert_eq!(ByteReader(&[]).number(), None);
    }
}
