//! Durations with a unit, read exactly.

use crate::decimal::Decimal;
use crate::{Error, Result, Ticks};
use std::fmt;

/// Units by name, in picoseconds, longest first for display. Two spellings of the micro sign exist in Unicode.
const UNITS: [(&str, u64); 8] = [
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("μs", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
    // Read, but never shown.
    ("min", 60_000_000_000_000),
];

/// A duration in whole picoseconds, under [`Duration::LIMIT`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    picoseconds: u64,
}

impl Duration {
    /// Durations are shorter than this many picoseconds: 11.5 days.
    pub const LIMIT: u64 = 1_000_000_000_000_000_000;

    /// Reads a decimal number and its unit: `1us`, `1.5 ms`, `300ns`, `0`.
    ///
    /// # Errors
    /// What is wrong, as a clause for the user: no unit, an unknown unit, not a number, finer than a picosecond, too long.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let text = text.trim();
        let unit_at = text.char_indices().rev().take_while(|(_, c)| c.is_alphabetic()).last().map(|(at, _)| at);
        let (number, unit) = text.split_at(unit_at.unwrap_or(text.len()));
        let number = Decimal::parse(number.trim_end())
            .map_err(|_| format!("`{text}` is not a duration such as 1us, 1.5ms or 300ns"))?;
        if unit.is_empty() {
            return if number.digits == 0 {
                Ok(Duration::default())
            } else {
                Err(format!("`{text}` has no unit; write for example {text}us (min, s, ms, us, ns, ps)"))
            };
        }
        let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, scale)| scale);
        let scale = scale.ok_or_else(|| format!("unknown unit `{unit}` in `{text}` (min, s, ms, us, ns, ps)"))?;
        let (numerator, denominator) = number.ratio();
        let (scaled, denominator) = (u128::from(numerator) * u128::from(scale), u128::from(denominator));
        if scaled % denominator != 0 {
            return Err(format!("`{text}` is finer than a picosecond"));
        }
        match u64::try_from(scaled / denominator) {
            Ok(picoseconds) if picoseconds < Self::LIMIT => Ok(Duration { picoseconds }),
            _ => Err(format!("`{text}` is too long")),
        }
    }

    /// The duration in picoseconds.
    pub fn picoseconds(self) -> u64 {
        self.picoseconds
    }

    /// The duration in ticks of a clock with `resolution` ticks per second, rounded *up* to whole ticks: a minimum
    /// latency of less than one tick becomes one tick, so that corrected times honour what was asked for.
    ///
    /// # Errors
    /// It does not fit into 62 bits of ticks.
    pub fn to_ticks(self, resolution: u64) -> Result<Ticks> {
        let ticks = (u128::from(self.picoseconds) * u128::from(resolution)).div_ceil(u128::from(UNITS[0].1));
        match i64::try_from(ticks) {
            Ok(ticks) if ticks < 1 << 62 => Ok(Ticks(ticks)),
            _ => Err(Error::new(format!("a duration of {self} is too long for a clock of {resolution} ticks/s"))),
        }
    }
}

impl fmt::Display for Duration {
    /// Exact, in the largest unit that needs no decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, scale)| self.picoseconds != 0 && self.picoseconds.is_multiple_of(*scale)) {
            Some((name, scale)) => write!(f, "{}{name}", self.picoseconds / scale),
            None => f.write_str("0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn picoseconds(text: &str) -> u64 {
        Duration::parse(text).expect(text).picoseconds()
    }

    #[test]
    fn durations_are_read_exactly() {
        assert_eq!(picoseconds("0"), 0);
        assert_eq!(picoseconds("0.0"), 0);
        assert_eq!(picoseconds("1us"), 1_000_000);
        assert_eq!(picoseconds("1.5us"), 1_500_000);
        assert_eq!(picoseconds("1µs"), 1_000_000);
        assert_eq!(picoseconds("1μs"), 1_000_000);
        assert_eq!(picoseconds(" 300 ns "), 300_000);
        assert_eq!(picoseconds("2ms"), 2_000_000_000);
        assert_eq!(picoseconds("0.000000000001s"), 1);
        assert_eq!(picoseconds("1e-6s"), 1_000_000);
        assert_eq!(picoseconds("7ps"), 7);
        assert_eq!(picoseconds("5min"), 300_000_000_000_000);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let says = |text: &str| Duration::parse(text).expect_err(text);
        assert_eq!(says("5"), "`5` has no unit; write for example 5us (min, s, ms, us, ns, ps)");
        assert!(says("5m").contains("unknown unit `m`"));
        assert!(says("5h").contains("unknown unit"));
        assert!(says("us").contains("not a duration"));
        assert!(says("").contains("not a duration"));
        assert!(says("-1us").contains("not a duration"));
        assert!(says("0.5ps").contains("finer than a picosecond"));
        assert!(says("1000000s").contains("too long"));
        assert!(says("99999999s").contains("too long"));
    }

    #[test]
    fn ticks_are_rounded_up() {
        let ticks = |text: &str, resolution| Duration::parse(text).expect(text).to_ticks(resolution).map(|t| t.0);
        assert_eq!(ticks("1.5us", 1_000_000_000), Ok(1500));
        assert_eq!(ticks("300ns", 1_000_000), Ok(1));
        assert_eq!(ticks("1us", 1_000_000), Ok(1));
        assert_eq!(ticks("1001ns", 1_000_000), Ok(2));
        assert_eq!(ticks("0", 1_000_000), Ok(0));
        assert_eq!(ticks("1us", 2_399_998_000), Ok(2400));
        assert!(ticks("999999s", u64::MAX).is_err());
    }

    proptest! {
        #[test]
        fn display_reads_back(picoseconds in any::<u64>()) {
            let picoseconds = (picoseconds >> (picoseconds % 64)) % Duration::LIMIT;
            let duration = Duration { picoseconds };
            prop_assert_eq!(Duration::parse(&duration.to_string()), Ok(duration));
        }
        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = Duration::parse(&text);
        }
    }
}
