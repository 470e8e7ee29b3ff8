//! Values of options that are more than a number: how each is read, and what is allowed.

use super::time_window::TimeWindow;
use clc_clock::reference::Reference;
use clc_trace::Duration;
use clc_trace::Result;
use clc_trace::decimal::Decimal;
use clc_trace::workers::Workers;
use controlled_logical_clock::latency::MinimumLatency;
use controlled_logical_clock::{Decay, ErrorLimit, Slope};
use std::fmt;
use std::num::NonZero;

/// `--latency`: one minimum latency, or one per class of pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyOption {
    /// Between two processes of one node.
    pub same_node: Duration,
    /// Between processes of different nodes.
    pub other_node: Duration,
    /// To be estimated from the trace; the others are zero then.
    pub automatic: bool,
}

impl LatencyOption {
    /// The latencies in ticks of a clock with `resolution` ticks per second, rounded up.
    ///
    /// # Errors
    /// As [`Duration::to_ticks`].
    pub(crate) fn to_ticks(self, resolution: u64) -> Result<MinimumLatency> {
        Ok(MinimumLatency {
            same_node: self.same_node.to_ticks(resolution)?,
            other_node: self.other_node.to_ticks(resolution)?,
        })
    }
}

impl fmt::Display for LatencyOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.automatic {
            return f.write_str("auto");
        }
        if self.same_node == self.other_node {
            return self.same_node.fmt(f);
        }
        write!(f, "same-node={},other-node={}", self.same_node, self.other_node)
    }
}

type Parsed<T> = std::result::Result<T, String>;

/// Reads `auto`, `1us` or `same-node=300ns,other-node=1.2us`, in any order; a class that is left out is zero.
pub(super) fn latency(text: &str) -> Parsed<LatencyOption> {
    if text == "auto" {
        return Ok(LatencyOption { automatic: true, ..LatencyOption::default() });
    }
    if !text.contains('=') {
        let both = Duration::parse(text)?;
        return Ok(LatencyOption { same_node: both, other_node: both, automatic: false });
    }
    let (mut same_node, mut other_node) = (None, None);
    for part in text.split(',') {
        let (class, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is not CLASS=DURATION"))?;
        let slot = match class.trim() {
            "same-node" => &mut same_node,
            "other-node" => &mut other_node,
            other => return Err(format!("unknown class `{other}` (same-node, other-node)")),
        };
        if slot.replace(Duration::parse(value)?).is_some() {
            return Err(format!("`{}` is given twice", class.trim()));
        }
    }
    Ok(LatencyOption {
        same_node: same_node.unwrap_or_default(),
        other_node: other_node.unwrap_or_default(),
        automatic: false,
    })
}

/// Reads `auto`, `median`, `mean`, `harmonic` or the number of a process.
pub(super) fn reference(text: &str) -> Parsed<Reference> {
    match text {
        "auto" => Ok(Reference::Auto),
        "median" => Ok(Reference::Median),
        "mean" => Ok(Reference::Mean),
        "harmonic" => Ok(Reference::Harmonic),
        number => number
            .parse()
            .map(Reference::Process)
            .map_err(|_| format!("`{text}` is not auto, the number of a process, median, mean or harmonic")),
    }
}

/// Reads a share of measurements, over 0 and up to 1.
pub(super) fn confidence(text: &str) -> Parsed<f64> {
    let (numerator, denominator) = Decimal::parse(text)?.ratio();
    let value = numerator as f64 / denominator as f64;
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err(format!("{text} is not a fraction above 0 and at most 1")) }
}

/// Reads the length of a straight line, at least a millisecond.
pub(super) fn segment(text: &str) -> Parsed<Duration> {
    let length = Duration::parse(text)?;
    if length.picoseconds() < 1_000_000_000 {
        return Err(format!("{text} is too short for a line; the minimum is 1ms"));
    }
    Ok(length)
}

/// Reads the length of a window of time, which is not zero.
pub(super) fn averaging(text: &str) -> Parsed<Duration> {
    let length = Duration::parse(text)?;
    if length.picoseconds() == 0 {
        return Err("a window of length 0 contains no events".to_owned());
    }
    Ok(length)
}

/// `--max-delay`: which round trips are too slow to count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxDelay {
    /// Those with a transport delay over this.
    Duration(Duration),
    /// Those with a transport delay over this share of a window, the time between two estimates of a clock.
    Share(f64),
}

impl MaxDelay {
    /// The duration, if it is one.
    pub fn duration(self) -> Option<Duration> {
        match self {
            MaxDelay::Duration(duration) => Some(duration),
            MaxDelay::Share(_) => None,
        }
    }

    /// The share of a window, if it is one.
    pub(crate) fn share(self) -> Option<f64> {
        match self {
            MaxDelay::Duration(_) => None,
            MaxDelay::Share(share) => Some(share),
        }
    }
}

/// Reads a transport delay, which is not zero: a duration, or a share of a window in percent.
pub(super) fn delay(text: &str) -> Parsed<MaxDelay> {
    let delay = match text.trim().strip_suffix('%') {
        Some(percent) => {
            let (numerator, denominator) = Decimal::parse(percent.trim_end())?.ratio();
            MaxDelay::Share(numerator as f64 / denominator as f64 / 100.0)
        }
        None => MaxDelay::Duration(Duration::parse(text)?),
    };
    if matches!(delay, MaxDelay::Duration(delay) if delay.picoseconds() == 0) || delay == MaxDelay::Share(0.0) {
        return Err("a transport delay of 0 would discard every round trip".to_owned());
    }
    Ok(delay)
}

/// A number of threads.
pub(super) fn threads(text: &str) -> Parsed<NonZero<usize>> {
    let number = text.parse::<usize>().ok().and_then(NonZero::new).filter(|number| number.get() <= Workers::MOST);
    number.ok_or_else(|| format!("the number of threads has to be from 1 to {}", Workers::MOST))
}

/// Reads a window of time: `1.2s:1.3s`, `500us:`, `:2ms`.
pub(super) fn window(text: &str) -> Parsed<TimeWindow> {
    let (from, to) = text.split_once(':').ok_or_else(|| format!("`{text}` is not FROM:TO, such as 1.2s:1.3s"))?;
    let bound = |text: &str| if text.trim().is_empty() { Ok(None) } else { Duration::parse(text).map(Some) };
    let window = TimeWindow { from: bound(from)?, to: bound(to)? };
    match (window.from, window.to) {
        (Some(from), Some(to)) if from > to => Err(format!("`{text}` ends before it begins")),
        _ => Ok(window),
    }
}

/// Reads gamma, 0.5..=1, as its exact decay.
pub(super) fn gamma(text: &str) -> Parsed<Decay> {
    let (numerator, denominator) = Decimal::parse(text)?.ratio();
    // numerator < 10^18 + 1, so doubling fits.
    Decay::from_gamma(numerator, denominator)
        .filter(|_| 2 * numerator >= denominator)
        .ok_or_else(|| format!("{text} is not in 0.5..=1"))
}

/// Reads the amortisation slope, 1e-6..=1.
pub(super) fn slope(text: &str) -> Parsed<Slope> {
    let (numerator, denominator) = Decimal::parse(text)?.ratio();
    Slope::from_ratio(numerator, denominator)
        .filter(|_| u128::from(numerator) * 1_000_000 >= u128::from(denominator))
        .ok_or_else(|| format!("{text} is not in 1e-6..=1"))
}

/// Reads the error threshold, from 1 on.
pub(super) fn max_error(text: &str) -> Parsed<ErrorLimit> {
    let (numerator, denominator) = Decimal::parse(text)?.ratio();
    ErrorLimit::from_ratio(numerator, denominator)
        .ok_or_else(|| format!("{text} is not in 1..=16777215 (no error is below 1)"))
}

/// Checks a level, or a filter in the syntax of RUST_LOG (`warn,clc_engine::replay=debug`).
pub(super) fn log_filter(text: &str) -> Parsed<String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let known = |part: &str| part.contains('=') || LEVELS.contains(&part.to_ascii_lowercase().as_str());
    match text.split(',').find(|part| !known(part)) {
        Some(part) => Err(format!("`{part}` is not a level (off, error, warn, info, debug, trace) or TARGET=LEVEL")),
        None => match tracing_subscriber::EnvFilter::try_new(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_is_exact_and_bounded() {
        assert_eq!(gamma("0.99999"), Ok(Decay::START));
        assert_eq!(gamma("1").map(Decay::units), Ok(0));
        assert_eq!(gamma("0.5").map(Decay::units), Ok(1 << 39));
        for text in ["0.4999999999999", "1.0000000000001", "0", "x", "-1"] {
            assert!(gamma(text).is_err(), "{text}");
        }
    }

    #[test]
    fn slope_and_error_are_bounded() {
        assert_eq!(slope("0.01"), Ok(Slope::default()));
        assert!(slope("1e-6").is_ok() && slope("1").is_ok());
        assert!(slope("9.9e-7").is_err() && slope("1.01").is_err() && slope("0").is_err());
        assert_eq!(max_error("1.5"), Ok(ErrorLimit::default()));
        assert!(max_error("1").is_ok() && max_error("0.99").is_err() && max_error("1e17").is_err());
    }

    #[test]
    fn latency_by_class() {
        let both = latency("1us").expect("one");
        assert_eq!((both.same_node, both.other_node), (both.other_node, both.same_node));
        let two = latency("other-node=1.2us,same-node=300ns").expect("two");
        assert_eq!((two.same_node.picoseconds(), two.other_node.picoseconds()), (300_000, 1_200_000));
        assert_eq!(two.to_string(), "same-node=300ns,other-node=1200ns");
        assert_eq!(latency("other-node=1us").expect("one class").same_node, Duration::default());
        assert!(latency("auto").expect("estimated").automatic);
        assert!(latency("1us,2us").is_err());
        assert!(latency("near=1us").expect_err("class").contains("unknown class `near`"));
        assert!(latency("same-node=1us,same-node=2us").expect_err("twice").contains("twice"));
        assert!(latency("same-node=1us,").is_err());
    }

    #[test]
    fn shares_and_segments_are_bounded() {
        assert_eq!((confidence("0.9"), confidence("1")), (Ok(0.9), Ok(1.0)));
        assert!(confidence("0").is_err() && confidence("1.1").is_err() && confidence("x").is_err());
        assert!(segment("1800s").is_ok() && segment("999us").is_err() && segment("30").is_err());
    }

    #[test]
    fn references_have_names_or_numbers() {
        assert_eq!(reference("auto"), Ok(Reference::Auto));
        assert_eq!(reference("17"), Ok(Reference::Process(17)));
        assert!(reference("-1").is_err() && reference("mode").expect_err("name").contains("median"));
    }

    #[test]
    fn delays_and_windows_are_not_zero() {
        assert!(averaging("10ms").is_ok() && averaging("0s").is_err());
        assert_eq!(delay("10%"), Ok(MaxDelay::Share(0.1)));
        assert_eq!(delay("0.5 %").ok().and_then(MaxDelay::share), Some(0.005));
        assert!(delay("0%").is_err() && delay("%").is_err() && delay("-1%").is_err());
        assert!(delay("1ns").is_ok());
        assert!(delay("0").is_err() && delay("0us").is_err() && delay("-1us").is_err());
    }

    #[test]
    fn log_levels_and_filters() {
        assert_eq!(log_filter("debug"), Ok("debug".into()));
        assert!(log_filter("warn,clc_replay::replay=trace").is_ok());
        assert!(log_filter("loud").expect_err("level").contains("`loud` is not a level"));
        assert!(log_filter("clc_replay=loud").is_err());
    }
}
