//! The one place that turns values into bytes and back: serde with bincode's variable-length integers.
//!
//! Everything that the analysis ranks tell each other, and the headers of the native format, pass through here, so that
//! the encoding can be replaced in one file.

use crate::format::plural;
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// No value takes more memory per encoded byte than a 128-bit integer written as one byte.
const LARGEST_EXPANSION: usize = 16;

/// Encodes a value.
///
/// # Errors
/// When the value's own `Serialize` refuses, for example a sequence of unknown length.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .map_err(|error| Error::new(format!("cannot encode {}: {error}", std::any::type_name::<T>())))
}

/// Decodes a value from exactly these bytes.
///
/// # Errors
/// When the bytes are not an encoding of a `T`, are cut off, or go on after it. A length that the bytes themselves
/// cannot hold is refused before memory is taken for it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let failed = |why: String| Error::new(format!("cannot decode {}: {why}", std::any::type_name::<T>()));
    let config = bincode::config::standard();
    // bincode takes its limit as a type: the smallest of these that every honest encoding of this length stays under.
    let needed = bytes.len().saturating_mul(LARGEST_EXPANSION);
    let decoded = if needed <= 1 << 12 {
        bincode::serde::decode_from_slice(bytes, config.with_limit::<{ 1 << 12 }>())
    } else if needed <= 1 << 18 {
        bincode::serde::decode_from_slice(bytes, config.with_limit::<{ 1 << 18 }>())
    } else if needed <= 1 << 24 {
        bincode::serde::decode_from_slice(bytes, config.with_limit::<{ 1 << 24 }>())
    } else if needed <= 1 << 30 {
        bincode::serde::decode_from_slice(bytes, config.with_limit::<{ 1 << 30 }>())
    } else {
        bincode::serde::decode_from_slice(bytes, config.with_limit::<{ 1 << 40 }>())
    };
    match decoded {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => Err(failed(format!("{} behind its end", plural((bytes.len() - used) as u64, "extra byte")))),
        Err(error) => Err(failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_survive(value: Vec<(u64, i64, String, Option<u8>)>) {
            let bytes = encode(&value).unwrap();
            prop_assert_eq!(decode::<Vec<(u64, i64, String, Option<u8>)>>(&bytes).unwrap(), value);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = decode::<Vec<(u64, String)>>(&bytes);
            let _ = decode::<Error>(&bytes);
        }
    }

    #[test]
    fn large_values_survive() {
        for value in [vec![0_u128; 20_000], vec![u128::MAX; 20_000]] {
            assert_eq!(decode::<Vec<u128>>(&encode(&value).unwrap()).unwrap(), value);
        }
    }

    #[test]
    fn a_lying_length_is_refused() {
        let bytes = encode(&u64::MAX).unwrap();
        assert!(decode::<String>(&bytes).is_err());
        assert!(decode::<Vec<u64>>(&bytes).is_err());
    }

    #[test]
    fn cut_off_and_trailing_bytes_are_refused() {
        let bytes = encode("location").unwrap();
        assert!(decode::<String>(&bytes[..bytes.len() - 1]).is_err());
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(decode::<String>(&longer).unwrap_err().message.contains("1 extra byte behind"));
    }
}
