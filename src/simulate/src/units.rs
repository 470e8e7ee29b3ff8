//! Times, frequencies and counts as people write them: `20us`, `0.5ppm`, `30%`, `100k`.
//!
//! Simulated time is a whole number of **picoseconds** in an `i64` (106 days), so that no resolution up to 10^12 ticks
//! per second loses anything that the simulation knows.

use clc_trace::{Error, Result, Ticks};

/// Picoseconds in a second.
pub const SECOND: i64 = 1_000_000_000_000;

/// Every clock shows this at the start of the simulation, before its error: the machine has been up for a while, and
/// no clock error within the allowed bounds makes a timestamp negative. In picoseconds.
pub const EPOCH: i64 = 1_000 * SECOND;

/// The largest duration that is accepted as a parameter, in picoseconds.
pub(crate) const LONGEST: i64 = 500 * SECOND;

/// A duration that may depend on the length of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Span {
    /// So many picoseconds.
    Time(i64),
    /// This share of the expected length of the run (1 is all of it).
    Share(f64),
}

impl Span {
    /// The duration in picoseconds for a run of `run` picoseconds.
    pub(crate) fn of(self, run: i64) -> i64 {
        match self {
            Span::Time(time) => time,
            Span::Share(share) => (run as f64 * share) as i64,
        }
    }
}

/// Splits "12.5us" into its number and its unit.
fn split(text: &str) -> Result<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let value: f64 =
        number.parse().map_err(|_| Error::new(format!("'{text}' does not start with a number")).hint("e.g. 20us"))?;
    Ok((value, unit))
}

/// Reads a duration with its unit ([`clc_trace::Duration`]), in picoseconds.
///
/// # Errors
/// No number, no unit or an unknown one, or more than 500 s.
pub fn parse_duration(text: &str) -> Result<i64> {
    if text.trim_start().starts_with('-') {
        return Err(Error::new(format!("'{text}' is negative")).hint("a duration has to be 0 or more"));
    }
    let duration = clc_trace::Duration::parse(text).map_err(Error::new)?;
    match i64::try_from(duration.picoseconds()) {
        Ok(time) if time <= LONGEST => Ok(time),
        _ => Err(Error::new(format!("'{text}' is too long")).hint("at most 500s")),
    }
}

/// Reads a duration, or a percentage of the run such as `30%`.
///
/// # Errors
/// As [`parse_duration`], and percentages outside 0 to 100.
pub(crate) fn parse_span(text: &str) -> Result<Span> {
    if !text.ends_with('%') {
        return Ok(Span::Time(parse_duration(text)?));
    }
    let (value, _) = split(text)?;
    if !(0.0..=100.0).contains(&value) {
        return Err(Error::new(format!("'{text}' is not between 0% and 100% of the run")));
    }
    Ok(Span::Share(value / 100.0))
}

/// Reads a relative frequency deviation such as `20ppm`, `50ppb` or `0.01%`, as a plain number (20 ppm is 2e-5).
///
/// # Errors
/// No number, an unknown unit, or more than 10 % (100000 ppm).
pub(crate) fn parse_frequency(text: &str) -> Result<f64> {
    let (value, unit) = split(text)?;
    let frequency = match unit {
        "ppm" => value / 1e6,
        "ppb" => value / 1e9,
        "%" => value / 1e2,
        _ => {
            return Err(Error::new(format!("'{text}' is not a frequency deviation: unit '{unit}' is unknown"))
                .hint("use ppm, ppb or %, e.g. 20ppm"));
        }
    };
    if frequency.abs() > 0.1 {
        return Err(Error::new(format!("'{text}' is too large")).hint("at most 100000ppm"));
    }
    Ok(frequency)
}

/// Reads a count such as `64`, `100k`, `2M` or `1G` (powers of 1000).
///
/// # Errors
/// Anything else, and counts above 10^15.
pub fn parse_count(text: &str) -> Result<u64> {
    let wrong = || Error::new(format!("'{text}' is not a count")).hint("e.g. 5000, 100k, 2M");
    let (digits, scale) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let count: Option<u64> = digits.parse().ok().and_then(|count: u64| count.checked_mul(scale));
    let most = || Error::new(format!("'{text}' is too large")).hint("at most 1000000G");
    count.filter(|&count| count <= 1_000_000_000_000_000).ok_or_else(most)
}

/// Turns picoseconds into ticks, rounding down: ticks = floor(picoseconds * resolution / 10^12).
#[derive(Debug, Clone, Copy)]
pub(super) enum TickRate {
    /// 10^9 ticks per second, a case of its own because the compiler then divides by a constant.
    Nanoseconds,
    /// So many picoseconds per tick.
    Whole(i64),
    /// Any other number of ticks per second.
    Ratio(i64),
}

impl TickRate {
    /// For `resolution` ticks per second (1 to 10^12; validated by the scenario).
    pub(super) fn new(resolution: u64) -> Self {
        let resolution = resolution.clamp(1, SECOND as u64) as i64;
        match SECOND % resolution {
            _ if resolution == 1_000_000_000 => TickRate::Nanoseconds,
            0 => TickRate::Whole(SECOND / resolution),
            _ => TickRate::Ratio(resolution),
        }
    }

    /// `time` (picoseconds, 0 or more) in ticks.
    #[inline]
    pub(super) fn ticks(self, time: i64) -> Ticks {
        Ticks(match self {
            TickRate::Nanoseconds => time / 1_000,
            TickRate::Whole(picoseconds) => time / picoseconds,
            TickRate::Ratio(resolution) => (i128::from(time) * i128::from(resolution) / i128::from(SECOND)) as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() -> Result<()> {
        assert_eq!(parse_duration("20us")?, 20_000_000);
        assert_eq!(parse_duration("0.5s")?, SECOND / 2);
        assert_eq!(parse_duration("1.5min")?, 90 * SECOND);
        assert_eq!(parse_span("25%")?, Span::Share(0.25));
        assert_eq!(Span::Share(0.25).of(400), 100);
        assert_eq!(parse_frequency("20ppm")?, 20.0 / 1e6);
        assert_eq!(parse_count("100k")?, 100_000);
        for bad in ["", "us", "5", "5h", "-5us", "1000s", "NaNs", "1..2s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "k", "-1", "1.5k", "99999999999G", "é"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
        assert!(parse_span("101%").is_err() && parse_frequency("20").is_err() && parse_frequency("50%").is_err());
        Ok(())
    }

    #[test]
    fn tick_rates_agree_with_exact_rationals() {
        for resolution in [1, 3, 1_000_000, 1_000_000_000, 2_400_000_000, 1_000_000_000_000] {
            let rate = TickRate::new(resolution);
            for time in [0, 1, 999, 1000, EPOCH, EPOCH + 123_456_789_012_345] {
                let expected = (i128::from(time) * i128::from(resolution) / i128::from(SECOND)) as i64;
                assert_eq!(rate.ticks(time), Ticks(expected));
            }
        }
    }
}
