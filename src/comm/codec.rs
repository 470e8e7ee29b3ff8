//! Values as bytes. The only place that knows bincode, whose development has ended: it can be replaced here.

use crate::trace::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// The bytes of a value.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .map_err(|error| Error::new(format!("cannot encode a message between analysis ranks: {error}")))
}

/// The value of bytes from [`encode`].
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    bincode::serde::decode_from_slice(bytes, bincode::config::standard())
        .map(|(value, _)| value)
        .map_err(|error| Error::new(format!("cannot decode a message between analysis ranks: {error}")))
}
