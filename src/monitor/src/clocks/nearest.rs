//! Differences of clocks from round trips: of each window the one that was quickest, for it can be wrong by half its delay at most.

use crate::gossip::{RoundTrip, Time};

/// What a peer's clock is ahead of this node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// When, by this node's clock: the middle of the round trip.
    pub at: Time,
    /// Nanoseconds that the peer's clock shows more.
    pub ahead: i64,
    /// What that can be wrong by, if both clocks run alike for so long: half the delay.
    pub uncertainty: i64,
}

/// Round trips with one peer, window by window.
#[derive(Debug, Clone)]
pub struct Nearest {
    window: Time,
    current: Option<(Time, Difference)>,
}

impl Nearest {
    /// Windows of that length.
    pub fn new(window: Time) -> Self {
        Nearest { window: window.max(1), current: None }
    }

    /// Takes a round trip, with nanoseconds to be added to its difference; gives the best one of the window before when one starts. Round trips with a negative delay
    /// are wrong and do not count.
    pub fn add(&mut self, trip: &RoundTrip, correction: i64) -> Option<Difference> {
        let delay = trip.delay();
        if delay < 0 || trip.t4 < trip.t1 {
            return None;
        }
        let at = trip.t1 + (trip.t4 - trip.t1) / 2;
        let difference = Difference { at, ahead: trip.offset().saturating_add(correction), uncertainty: delay / 2 };
        let place = at / self.window;
        match &mut self.current {
            Some((window, best)) if *window == place => {
                if difference.uncertainty < best.uncertainty {
                    *best = difference;
                }
                None
            }
            _ => self.current.replace((place, difference)).map(|(_, best)| best),
        }
    }

    /// The best one of a window that has ended by now.
    pub fn ended(&mut self, now: Time) -> Option<Difference> {
        self.current.take_if(|(window, _)| *window < now / self.window).map(|(_, best)| best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gossip::NodeId;

    #[test]
    fn the_quickest_of_each_window_counts() {
        let trip = |t1: u64, there: u64, back: u64| {
            let (t2, t3) = (t1 + there + 500, t1 + there + 510);
            RoundTrip { peer: NodeId(1), t1, t2, t3, t4: t3 - 500 + back }
        };
        let mut nearest = Nearest::new(1_000_000);
        assert_eq!(nearest.add(&trip(10, 90, 10), 0), None);
        assert_eq!(nearest.add(&trip(1_000, 10, 12), 0), None);
        assert_eq!(nearest.add(&trip(2_000, 10, 80), 0), None);
        let best = nearest.add(&trip(1_000_010, 10, 10), 0).expect("a window is over");
        assert_eq!((best.ahead, best.uncertainty), (499, 11));
        let wrong = RoundTrip { peer: NodeId(1), t1: 50, t2: 0, t3: 1_000, t4: 60 };
        assert_eq!(nearest.add(&wrong, 0), None, "a negative delay");
        assert_eq!(nearest.ended(1_999_999), None);
        assert_eq!(nearest.ended(2_000_000).map(|best| best.uncertainty), Some(10));
        assert_eq!(nearest.ended(3_000_000), None, "once");
    }
}
