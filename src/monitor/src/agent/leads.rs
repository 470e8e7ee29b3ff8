//! What the system time of each node is ahead of its raw clock, over time: each node reads it once a second and tells the others.
//!
//! Round trips are measured by raw clocks. Between two readings the lead changes evenly, by next to nothing as a rule, quickly where the system time runs away or stands still; or the system time was
//! set there at a moment that nobody knows, and then it is not known what it was ahead by.

use crate::gossip::Time;
use std::collections::VecDeque;

/// So many readings are kept. Chosen by hand: more than are made until one is needed; with fewer, news that is late comes too late.
const MOST: usize = 12;
/// Two readings that differ by less, in nanoseconds, are the same: reading both clocks takes as long on a busy machine.
const NOISE: f64 = 20_000.0;
/// Rates of two neighbouring intervals differ by this part at most if nobody has set the clock in one of them.
const ALIKE: f64 = 0.1;
/// And by so much beside. Chosen by hand: a smaller part leaves round trips out while a clock begins to be slewed, a larger one takes what is a moment for a second if a clock is set by little or begins to run away.
const SLEWED: f64 = 2e-5;

/// A reading: the raw clock of the node, and what its system time is ahead of that, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) raw: Time,
    pub(super) ahead: i64,
}

impl Lead {
    pub(super) fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.raw.to_le_bytes());
        bytes[8..].copy_from_slice(&self.ahead.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Lead> {
        let (raw, ahead) = bytes.split_first_chunk()?;
        Some(Lead { raw: Time::from_le_bytes(*raw), ahead: i64::from_le_bytes(ahead.try_into().ok()?) })
    }
}

/// What a reading in the past would have said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadThen {
    /// That.
    Known(i64),
    /// The readings after it have not come yet.
    NotYet,
    /// The clock was set about then, or that is too long ago.
    Never,
}

/// The latest readings of one node.
#[derive(Debug, Clone, Default)]
pub(super) struct Leads(VecDeque<Lead>);

impl Leads {
    /// Takes a reading, which may be known already.
    pub(super) fn add(&mut self, lead: Lead) {
        match self.0.back() {
            Some(last) if last.raw == lead.raw => return,
            // A raw clock that went back: what was before is of no use.
            Some(last) if last.raw > lead.raw => self.0.clear(),
            _ => {}
        }
        self.0.push_back(lead);
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// The latest.
    pub(super) fn latest(&self) -> Option<i64> {
        self.0.back().map(|lead| lead.ahead)
    }

    /// What it was at a time of the node's raw clock.
    pub(super) fn at(&self, raw: Time) -> LeadThen {
        let after = self.0.partition_point(|lead| lead.raw < raw);
        let interval = |second: usize| {
            let (a, b) = (self.0.get(second.checked_sub(1)?)?, self.0.get(second)?);
            Some((*a, (b.ahead - a.ahead) as f64, (b.raw - a.raw) as f64))
        };
        if after == 0 && !self.0.is_empty() {
            return LeadThen::Never;
        }
        let (Some((first, rise, length)), Some(later)) = (interval(after), interval(after + 1)) else {
            return LeadThen::NotYet;
        };
        // It was not set if it goes on in the same way before or afterwards.
        let alike = |(_, other_rise, other_length): (Lead, f64, f64)| {
            let (rate, other) = (rise / length, other_rise / other_length);
            (rate - other).abs() <= SLEWED + ALIKE * rate.abs().max(other.abs()) + NOISE / length
        };
        let same = alike(later) || interval(after.wrapping_sub(1)).is_some_and(alike);
        if !same {
            return LeadThen::Never;
        }
        let passed = raw.saturating_sub(first.raw) as f64;
        LeadThen::Known(first.ahead + (rise * passed / length) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gossip::SECOND;

    /// Readings once a second of a system time that shows this at a raw time, in nanoseconds.
    fn leads(system: impl Fn(u64) -> i64) -> Leads {
        let mut leads = Leads::default();
        for second in 1..=10_u64 {
            let raw = second * SECOND;
            leads.add(Lead { raw, ahead: system(raw) - raw as i64 });
        }
        leads
    }

    #[test]
    fn a_system_time_that_runs_alike_is_known_at_any_time() {
        let leads = leads(|raw| raw as i64 + 7_000 + raw as i64 / 100_000);
        assert_eq!(leads.at(5 * SECOND + SECOND / 2), LeadThen::Known(7_000 + 55_000));
        assert_eq!(leads.at(SECOND / 2), LeadThen::Never, "too long ago");
        assert_eq!(leads.at(9 * SECOND + 5), LeadThen::NotYet, "it may be set in the next second");
        assert_eq!(leads.at(12 * SECOND), LeadThen::NotYet);
        assert_eq!(leads.latest(), Some(107_000));
        assert_eq!(Leads::default().at(5), LeadThen::NotYet);
    }

    #[test]
    fn a_system_time_that_runs_away_or_stands_still_is_known_too() {
        let from = 4 * SECOND + SECOND / 4;
        // By a hundredth of the time; not at all; backwards.
        for (gained, then) in [(0.01, 32_500_000), (-1.0, -3_250_000_000), (-2.0, -6_500_000_000)] {
            let leads = leads(|raw| raw as i64 + (raw.saturating_sub(from) as f64 * gained) as i64);
            let LeadThen::Known(ahead) = leads.at(7 * SECOND + SECOND / 2) else { panic!("{gained}") };
            assert!((ahead - then).abs() < 100, "{gained}: {ahead}");
            assert_eq!(leads.at(3 * SECOND + SECOND / 2), LeadThen::Known(0), "{gained}");
            assert_eq!(leads.at(4 * SECOND + SECOND / 2), LeadThen::Never, "{gained}: it began in this second");
        }
    }

    #[test]
    fn when_a_system_time_was_set_it_is_not_known_in_that_second_alone() {
        for by in [5_000_000, -20_000_000] {
            let leads = leads(|raw| raw as i64 + if raw > 5 * SECOND + 1 { by } else { 0 });
            assert_eq!(leads.at(4 * SECOND + SECOND / 2), LeadThen::Known(0));
            assert_eq!(leads.at(5 * SECOND + SECOND / 2), LeadThen::Never);
            assert_eq!(leads.at(6 * SECOND + SECOND / 2), LeadThen::Known(by));
        }
    }

    #[test]
    fn readings_come_back_as_they_were() {
        let lead = Lead { raw: 1 << 60, ahead: -5 };
        assert_eq!(Lead::decode(&lead.encode()), Some(lead));
        assert_eq!((Lead::decode(&[0; 8]), Lead::decode(&[0; 17])), (None, None));
    }
}
