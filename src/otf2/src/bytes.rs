//! Integers and strings of OTF2 files, in either byte order.

use clc_trace::{Error, Result};

/// Byte order of a file or chunk, from the second byte of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ByteOrder {
    /// 0x42
    Little,
    /// 0x23
    Big,
}

impl ByteOrder {
    /// Of the header byte.
    pub fn from_tag(tag: u8) -> Option<ByteOrder> {
        match tag {
            0x42 => Some(ByteOrder::Little),
            0x23 => Some(ByteOrder::Big),
            _ => None,
        }
    }

    /// The header byte.
    pub fn tag(self) -> u8 {
        match self {
            ByteOrder::Little => 0x42,
            ByteOrder::Big => 0x23,
        }
    }

    /// A full-width 64-bit integer.
    #[inline]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The bytes of a full-width 64-bit integer.
    #[inline]
    pub fn bytes(self, value: u64) -> [u8; 8] {
        match self {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }
}

/// Reads from a bounded slice. Nothing is ever read beyond its end.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

/// Masks of so many low-order bytes.
const LOW_BYTES: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut length = 0;
    while length < 8 {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

#[cold]
pub(crate) fn truncated() -> Error {
    Error::damaged("the record ends in the middle of a field")
}

#[cold]
fn too_long(length: u8, width: u8) -> Error {
    Error::damaged(format!("a compressed integer has {length} bytes where at most {width} are allowed"))
}

impl<'a> Reader<'a> {
    /// Over `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Reader { bytes, order }
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// `n` raw bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(n).ok_or_else(truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        let (&first, tail) = self.bytes.split_first().ok_or_else(truncated)?;
        self.bytes = tail;
        Ok(first)
    }

    /// A full-width 64-bit integer.
    #[inline]
    pub fn full_u64(&mut self) -> Result<u64> {
        let (head, tail) = self.bytes.split_first_chunk::<8>().ok_or_else(truncated)?;
        self.bytes = tail;
        Ok(self.order.u64(*head))
    }

    /// Two bytes.
    ///
    /// # Errors
    /// The end is reached.
    pub fn full_u16(&mut self) -> Result<u16> {
        let (head, tail) = self.bytes.split_first_chunk::<2>().ok_or_else(truncated)?;
        self.bytes = tail;
        Ok(match self.order {
            ByteOrder::Little => u16::from_le_bytes(*head),
            ByteOrder::Big => u16::from_be_bytes(*head),
        })
    }

    /// A full-width 32-bit integer.
    pub fn full_u32(&mut self) -> Result<u32> {
        let (head, tail) = self.bytes.split_first_chunk::<4>().ok_or_else(truncated)?;
        self.bytes = tail;
        Ok(match self.order {
            ByteOrder::Little => u32::from_le_bytes(*head),
            ByteOrder::Big => u32::from_be_bytes(*head),
        })
    }

    /// A 64-bit IEEE number.
    pub fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.full_u64()?))
    }

    /// Packed integers that follow each other, each of at most as many bytes as its width says. None, and then nothing is read, where one of them is not of
    /// the common form: who asks reads them one by one.
    #[inline(always)]
    pub fn packed_in_a_row<const N: usize>(&mut self, widths: [u8; N]) -> Option<[u64; N]> {
        if self.order != ByteOrder::Little {
            return None;
        }
        let (mut values, mut at, mut common) = ([0; N], 0, true);
        for (value, width) in values.iter_mut().zip(widths) {
            let [length, word @ ..] = self.bytes.get(at..)?.first_chunk::<9>()?;
            common &= *length <= width;
            *value = u64::from_le_bytes(*word) & LOW_BYTES[usize::from(length & 15)];
            at += 1 + usize::from(*length);
        }
        if !common {
            return None;
        }
        self.bytes = self.bytes.get(at..)?;
        Some(values)
    }

    /// A packed integer of at most `width` bytes: its length, then the low-order bytes; 0xFF stands for all ones.
    #[inline(always)]
    pub fn packed(&mut self, width: u8) -> Result<u64> {
        if let Some([length, word @ ..]) = self.bytes.first_chunk::<9>()
            && *length <= width
            && self.order == ByteOrder::Little
        {
            self.bytes = self.bytes.get(1 + usize::from(*length)..).unwrap_or_default();
            return Ok(u64::from_le_bytes(*word) & LOW_BYTES[usize::from(length & 15)]);
        }
        self.packed_of_any_kind(width)
    }

    #[inline(never)]
    fn packed_of_any_kind(&mut self, width: u8) -> Result<u64> {
        let length = self.u8()?;
        match length {
            0 => Ok(0),
            0xFF => Ok(if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 }),
            _ if length > width => Err(too_long(length, width)),
            _ => {
                let digits = self.take(usize::from(length))?;
                let fold = |value: u64, &digit: &u8| value << 8 | u64::from(digit);
                Ok(match self.order {
                    ByteOrder::Little => digits.iter().rev().fold(0, fold),
                    ByteOrder::Big => digits.iter().fold(0, fold),
                })
            }
        }
    }

    /// A packed 32-bit integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.packed(4).map(|value| value as u32)
    }

    /// A packed 64-bit integer.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.packed(8)
    }

    /// A packed signed 64-bit integer (two's complement).
    pub fn i64(&mut self) -> Result<i64> {
        self.packed(8).map(|value| value as i64)
    }

    /// A string up to its NUL; bytes that are not UTF-8 are replaced.
    pub fn string(&mut self) -> Result<String> {
        let end = self.bytes.iter().position(|&byte| byte == 0).ok_or_else(truncated)?;
        let text = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes = &self.bytes[end + 1..];
        Ok(text)
    }

    /// The length of a record: one byte, or 0xFF and a full-width integer.
    #[inline]
    pub fn record_length(&mut self) -> Result<u64> {
        match self.u8()? {
            0xFF => self.full_u64(),
            length => Ok(u64::from(length)),
        }
    }
}

/// Appends integers and strings.
#[derive(Debug, Clone)]
pub struct Writer {
    /// What has been written.
    pub bytes: Vec<u8>,
    /// In which order.
    pub order: ByteOrder,
}

impl Writer {
    /// With nothing in it.
    pub fn new(order: ByteOrder) -> Self {
        Writer { bytes: Vec::new(), order }
    }

    /// With nothing in it, but the memory of `bytes`.
    pub fn with_bytes(order: ByteOrder, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Writer { bytes, order }
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// A full-width 64-bit integer.
    pub fn full_u64(&mut self, value: u64) {
        self.bytes.extend(self.order.bytes(value));
    }

    /// Two bytes.
    pub fn full_u16(&mut self, value: u16) {
        match self.order {
            ByteOrder::Little => self.bytes.extend(value.to_le_bytes()),
            ByteOrder::Big => self.bytes.extend(value.to_be_bytes()),
        }
    }

    /// A full-width 32-bit integer.
    pub fn full_u32(&mut self, value: u32) {
        match self.order {
            ByteOrder::Little => self.bytes.extend(value.to_le_bytes()),
            ByteOrder::Big => self.bytes.extend(value.to_be_bytes()),
        }
    }

    /// A packed integer in as few bytes as possible; all ones (of `u64`) become 0xFF.
    pub fn u64(&mut self, value: u64) {
        if value == u64::MAX {
            self.bytes.push(0xFF);
            return;
        }
        let length = (8 - value.leading_zeros() / 8) as u8;
        self.bytes.push(length);
        match self.order {
            ByteOrder::Little => self.bytes.extend(&value.to_le_bytes()[..usize::from(length)]),
            ByteOrder::Big => self.bytes.extend(&value.to_be_bytes()[8 - usize::from(length)..]),
        }
    }

    /// A packed 32-bit integer; all ones become 0xFF.
    pub fn u32(&mut self, value: u32) {
        if value == u32::MAX { self.bytes.push(0xFF) } else { self.u64(u64::from(value)) }
    }

    /// A packed signed integer: negative ones take eight bytes.
    pub fn i64(&mut self, value: i64) {
        if value < 0 {
            self.bytes.push(8);
            self.full_u64(value as u64);
        } else {
            self.u64(value as u64);
        }
    }

    /// A string with its NUL; a NUL inside ends it.
    pub fn string(&mut self, text: &str) {
        self.bytes.extend(text.bytes().take_while(|&byte| byte != 0));
        self.bytes.push(0);
    }

    /// A record: type, length (long form if `bound`, the largest possible length, asks for it), payload.
    pub fn record(&mut self, kind: u8, payload: &[u8], bound: usize) {
        self.bytes.push(kind);
        if bound.max(payload.len()) >= 255 {
            self.bytes.push(0xFF);
            self.full_u64(payload.len() as u64);
        } else {
            self.bytes.push(payload.len() as u8);
        }
        self.bytes.extend(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_integers_come_back(value: u64, small: u32, signed: i64, big: bool, shift in 0u32..64) {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let mut writer = Writer::new(order);
            writer.u64(value >> shift);
            writer.u32(small >> (shift / 2));
            writer.i64(signed >> shift);
            writer.full_u64(value);
            let mut reader = Reader::new(&writer.bytes, order);
            prop_assert_eq!(reader.u64().unwrap(), value >> shift);
            prop_assert_eq!(reader.u32().unwrap(), small >> (shift / 2));
            prop_assert_eq!(reader.i64().unwrap(), signed >> shift);
            prop_assert_eq!(reader.full_u64().unwrap(), value);
            prop_assert!(reader.is_empty());
        }
    }

    proptest! {
        #[test]
        fn integers_in_a_row_are_those_one_by_one(
            bytes in prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..60), widths in prop::array::uniform3(1u8..9), big: bool,
        ) {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let (mut row, mut single) = (Reader::new(&bytes, order), Reader::new(&bytes, order));
            match row.packed_in_a_row(widths) {
                Some(values) => {
                    for (value, width) in values.into_iter().zip(widths) {
                        prop_assert_eq!(single.packed(width).unwrap(), value);
                    }
                    prop_assert_eq!(row.rest(), single.rest());
                }
                None => prop_assert_eq!(row.rest(), &bytes[..]),
            }
        }
    }

    #[test]
    fn undefined_and_overlong_values() {
        assert_eq!(Reader::new(&[0xFF], ByteOrder::Little).u32().unwrap(), u32::MAX);
        assert_eq!(Reader::new(&[1, 0], ByteOrder::Little).u64().unwrap(), 0);
        assert!(Reader::new(&[5, 1, 2, 3, 4, 5], ByteOrder::Little).u32().is_err());
        assert!(Reader::new(&[3, 1], ByteOrder::Big).u32().is_err());
    }
}
