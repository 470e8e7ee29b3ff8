//! How a rank waits: it looks again a few times, then yields the processor, and sleeps once waiting has become long.

use std::time::{Duration, Instant};

/// Waiting that leaves the processor to ranks that have something to do: with more ranks than cores a rank that spins keeps
/// those from running that it waits for.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    turns: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Looking at the time costs as much as a yield: so many turns do without.
    const FREE_TURNS: u32 = 64;
    /// So many turns of these do not even yield: what comes within a few microseconds is there sooner.
    const SPINS: u32 = 32;
    /// Yields only, for so long. Chosen by hand: sleeping sooner makes short waits longer, sleeping later takes cores that other ranks may need.
    const PATIENCE: Duration = Duration::from_millis(20);
    /// Longest sleep at a time. The wait gets longer by a hundredth at most, as sleeps are a hundredth of the time waited. Chosen by hand.
    const LONGEST_NAP: Duration = Duration::from_millis(1);

    /// Lets others run for a moment; returns how long this wait has lasted, 0 at its beginning.
    pub(super) fn rest(&mut self) -> Duration {
        self.turns = self.turns.saturating_add(1);
        if self.turns <= Self::SPINS {
            std::hint::spin_loop();
            return Duration::ZERO;
        }
        let mut waited = Duration::ZERO;
        if self.turns > Self::FREE_TURNS {
            waited = self.since.get_or_insert_with(Instant::now).elapsed();
            if waited > Self::PATIENCE {
                std::thread::sleep((waited / 100).min(Self::LONGEST_NAP));
                return waited;
            }
        }
        std::thread::yield_now();
        waited
    }

    /// What was waited for has come.
    pub(super) fn success(&mut self) {
        *self = Backoff::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_sleep_and_success_starts_anew() {
        let mut backoff = Backoff::default();
        // Counted by the waits' own clock: however late the machine lets this thread run, the bound holds.
        let (mut turns, mut waited) = (0, Duration::ZERO);
        while waited < Duration::from_millis(120) {
            waited = backoff.rest();
            turns += u32::from(waited >= Duration::from_millis(60));
        }
        // No turn is shorter than its sleep of at least 0.6 ms; a spinning rank makes hundreds of thousands.
        assert!((1..=101).contains(&turns), "{turns} turns in 60 ms");
        backoff.success();
        assert_eq!((0..Backoff::FREE_TURNS).map(|_| backoff.rest()).max(), Some(Duration::ZERO));
        backoff.success();
        assert_eq!((backoff.turns, backoff.since), (0, None));
    }
}
