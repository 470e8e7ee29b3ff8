//! Clocks of single locations of a process: whether what was recorded is that of another clock, and recorded offsets put forward.

use clc_clock::{LinearClock, Method, RANGE};
use clc_trace::{ClockOffset, Result, Ticks};

/// Whether recorded offsets are those of different clocks, by more than rounding.
pub(super) fn differ(one: &[ClockOffset], other: &[ClockOffset]) -> bool {
    if one == other || one.is_empty() || other.is_empty() {
        return false;
    }
    let (Ok(one_clock), Ok(other_clock)) = (LinearClock::new(one), LinearClock::new(other)) else { return true };
    one.iter().chain(other).any(|offset| {
        let time = Ticks(offset.time.min(RANGE as u64) as i64);
        (one_clock.map(time).0 - other_clock.map(time).0).abs() > 1
    })
}

/// A clock with these recorded `offsets`, put forward by the function with these `knots`, and its offsets.
///
/// # Errors
/// Times would be out of range, or run backwards.
pub(super) fn put_ahead(
    presync: Method,
    offsets: &[ClockOffset],
    knots: &[(i64, i64)],
    span: Option<(u64, u64)>,
) -> Result<(LinearClock, Vec<ClockOffset>)> {
    let recorded = presync.clock(offsets)?;
    let knot = |&(time, offset): &(i64, i64)| ClockOffset { time: time.max(0) as u64, offset, standard_deviation: 0.0 };
    let ahead = LinearClock::new(&knots.iter().map(knot).collect::<Vec<_>>())?;
    // The sum of two such functions bends where one of them does.
    let mut times: Vec<u64> = match knots {
        // Nowhere.
        [_] if offsets.is_empty() => vec![0],
        [_] => Vec::new(),
        knots => knots.iter().map(|knot| knot.0.max(0) as u64).collect(),
    };
    times.extend(offsets.iter().map(|offset| offset.time));
    times.sort_unstable();
    times.dedup();
    let offset = |&time: &u64| {
        let local = Ticks(time as i64);
        let offset = (recorded.map(local).0 - local.0).saturating_add(ahead.map(local).0 - local.0);
        ClockOffset { time, offset, standard_deviation: 0.0 }
    };
    let offsets: Vec<ClockOffset> = times.iter().map(offset).collect();
    let clock = presync.clock(&offsets)?;
    if let Some((first, last)) = span {
        clock.check_range(Ticks(first as i64), Ticks(last as i64))?;
    }
    Ok((clock, offsets))
}
