//! Numbers and byte strings as they stand in packets: LEB128 for whole numbers, zigzag for differences, a length before bytes.
//! [`PacketReader`] checks every bound and never allocates more than the packet is long.

use std::net::{IpAddr, SocketAddr};

/// Why bytes are no packet of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The packet ends within a value.
    #[error("the packet ends within a value")]
    Truncated,
    /// A number is longer than 64 bits, or larger than what stands there can be.
    #[error("a number is out of range")]
    Range,
    /// A tag that this version does not know.
    #[error("an unknown tag or version")]
    Unknown,
}

/// Appends a whole number, 7 bits per byte.
pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the difference of two counters, short if it is small in either direction.
pub(crate) fn put_difference(out: &mut Vec<u8>, value: u64, base: u64) {
    let difference = value.wrapping_sub(base) as i64;
    put_number(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// Appends bytes with their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an address: 4 or 16 bytes after a tag, then the port.
pub(crate) fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&address.port().to_le_bytes());
}

/// What is left of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketReader<'a>(&'a [u8]);

impl<'a> PacketReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        PacketReader(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.0.split_first().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return Err(Malformed::Range);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::Range)
    }

    pub(crate) fn number32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed::Range)
    }

    pub(crate) fn difference(&mut self, base: u64) -> Result<u64, Malformed> {
        let folded = self.number()?;
        Ok(base.wrapping_add((folded >> 1) ^ (folded & 1).wrapping_neg()))
    }

    /// A number of things of which each takes `least` bytes or more: no more than the rest of the packet can hold.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed::Range)?;
        if count > self.0.len() / least.max(1) { Err(Malformed::Range) } else { Ok(count) }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count(1)?;
        self.take(length)
    }

    pub(crate) fn address(&mut self) -> Result<SocketAddr, Malformed> {
        let ip: IpAddr = match self.byte()? {
            4 => self.array::<4>()?.into(),
            6 => self.array::<16>()?.into(),
            _ => return Err(Malformed::Unknown),
        };
        Ok(SocketAddr::new(ip, u16::from_le_bytes(self.array()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_and_differences_come_back(value: u64, base: u64) {
            let mut out = Vec::new();
            put_number(&mut out, value);
            put_difference(&mut out, value, base);
            let mut reader = PacketReader::new(&out);
            prop_assert_eq!(reader.number(), Ok(value));
            prop_assert_eq!(reader.difference(base), Ok(value));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let mut reader = PacketReader::new(&bytes);
            while reader.number().is_ok() && reader.bytes().is_ok() && reader.address().is_ok() && !reader.is_empty() {}
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_refused() {
        assert_eq!(PacketReader::new(&[0xFF; 11]).number(), Err(Malformed::Range));
        assert_eq!(PacketReader::new(&[0xFF, 0xFF]).number(), Err(Malformed::Truncated));
        assert_eq!(PacketReader::new(&[5, 1, 2]).bytes(), Err(Malformed::Range));
    }

    #[test]
    fn addresses_of_both_families_come_back() {
        for text in ["10.1.2.3:4711", "[fe80::1]:65535"] {
            let address: SocketAddr = text.parse().expect("an address");
            let mut out = Vec::new();
            put_address(&mut out, address);
            assert_eq!(PacketReader::new(&out).address(), Ok(address));
        }
    }
}
