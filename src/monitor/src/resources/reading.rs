//! What sensors read at one time, and its bytes: which quantities there are, each in its steps, then one byte per core.

use super::Quantity;
use crate::gossip::MAX_DATUM;
use crate::wire::{Malformed, PacketReader, put_number};

/// Values of a node at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    values: [Option<f64>; Quantity::ALL.len()],
    /// Part of the time that each core was busy, 0 to 100.
    pub cores: Vec<f32>,
}

impl Reading {
    /// A value, in the unit of its quantity, if it was there to read.
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize]
    }

    /// Sets a value. What is no number, and what is negative, counts as not there.
    pub fn set(&mut self, quantity: Quantity, value: f64) {
        self.values[quantity as usize] = (value.is_finite() && value >= 0.0).then_some(value);
    }

    /// Its bytes: what `Node::put` takes. Of more cores than one datum holds, the first.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let there = |quantity: &Quantity| self.get(*quantity).is_some();
        let mask = Quantity::ALL.iter().filter(|quantity| there(quantity)).fold(0, |mask, &q| mask | 1u64 << q as u8);
        put_number(&mut out, mask);
        for quantity in Quantity::ALL {
            if let Some(value) = self.get(quantity) {
                put_number(&mut out, (value / quantity.step()).round() as u64);
            }
        }
        let cores = self.cores.iter().take(MAX_DATUM - out.len());
        out.extend(cores.map(|use_of| (use_of * 2.0).round().clamp(0.0, 200.0) as u8));
        out
    }

    /// Reads what [`encode`](Self::encode) wrote, from bytes that may be anything.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = PacketReader::new(bytes);
        let mask = reader.number()?;
        if mask >> Quantity::ALL.len() != 0 {
            return Err(Malformed::Unknown);
        }
        let mut reading = Reading::default();
        for quantity in Quantity::ALL.into_iter().filter(|&quantity| mask >> quantity as u8 & 1 == 1) {
            reading.set(quantity, reader.number()? as f64 * quantity.step());
        }
        reading.cores = reader.rest().iter().map(|&byte| f32::from(byte.min(200)) / 2.0).collect();
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reading_of_64_cores_comes_back_in_some_hundred_bytes() {
        let mut reading = Reading { cores: (0..64).map(|core| core as f32).collect(), ..Reading::default() };
        for (place, quantity) in Quantity::ALL.into_iter().enumerate() {
            reading.set(quantity, quantity.step() * (place * place * 40) as f64);
        }
        let bytes = reading.encode();
        assert!((90..125).contains(&bytes.len()), "{}", bytes.len());
        let back = Reading::decode(&bytes).expect("a reading");
        assert_eq!(back.cores, reading.cores);
        for quantity in Quantity::ALL {
            let (a, b) = (reading.get(quantity).expect("set"), back.get(quantity).expect("told"));
            assert!((a - b).abs() <= quantity.step() / 2.0, "{quantity:?}");
        }
        assert_eq!(Reading::decode(&Reading::default().encode()), Ok(Reading::default()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            if let Ok(reading) = Reading::decode(&bytes) {
                prop_assert!(Reading::decode(&reading.encode()).is_ok());
            }
        }
    }
}
