//! Lengths of messages, in classes.

use serde::{Deserialize, Serialize};

/// The length of a message to a quarter of a power of two: what takes about the same time. The default is a length that is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LengthClass(u8);

impl LengthClass {
    /// Of so many bytes.
    pub fn of(length: u32) -> LengthClass {
        match length.checked_ilog2() {
            None => LengthClass(1),
            // At most 2 + 4 * 31 + 3.
            Some(power) => LengthClass(2 + 4 * power as u8 + ((u64::from(length) << 2 >> power) & 3) as u8),
        }
    }

    /// The class with this number; 0 is that of lengths that are not known.
    pub fn numbered(number: u8) -> LengthClass {
        LengthClass(number)
    }

    /// Its number: classes of longer messages have higher ones.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The middle of its lengths in bytes; none if it is not known.
    pub fn bytes(self) -> Option<f64> {
        match self.0 {
            0 => None,
            1 => Some(0.0),
            class => {
                let (power, quarter) = ((class - 2) / 4, (class - 2) % 4);
                Some(2f64.powi(i32::from(power)) * (1.0 + (f64::from(quarter) + 0.5) / 4.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_a_class_differ_by_a_quarter_at_most() {
        assert_eq!(LengthClass::of(0).bytes(), Some(0.0));
        assert_eq!(LengthClass::default().bytes(), None);
        let mut before = LengthClass::of(0);
        for length in (1..5000).chain((1..400).map(|k| k * 10_000_000)).chain([u32::MAX]) {
            let class = LengthClass::of(length);
            assert!(class >= before && LengthClass::numbered(class.number()) == class);
            before = class;
            let bytes = class.bytes().expect("bytes");
            assert!(length < 4 || (bytes / f64::from(length) - 1.0).abs() <= 0.126, "{length}: {bytes}");
        }
    }
}
