//! The minimum latency between clocks, from what messages show.
//!
//! Of a pair of clocks the quickest messages of both directions in one window make a round trip, whatever the clocks are off: half of it is no shorter than the
//! mean of both latencies. The quickest round trip of all is near to the latency if round trips begin sharply; where messages wait for a scheduler, the quickest
//! one is an exception, and who knows how much quicker another one could be.

use super::windows::BoundTable;

/// Windows in which a pair has to have messages in both directions. Chosen by hand: a tenth of fewer is a window or two; with more, short runs have
/// no minimum.
const FEWEST: usize = 32;
/// A tenth of the round trips is shorter than so many times the quickest one, if they begin sharply. Chosen by hand: a larger value believes the
/// quickest trip where trips become rarer gradually, so that shorter ones are likely; a smaller one believes hardly any.
const SHARP: f64 = 1.5;
const QUICK: usize = 10;

/// Half the quickest round trip of any pair, in ticks; none if there are too few, or if they do not begin sharply.
pub fn half_trip(table: &BoundTable) -> Option<f64> {
    let mut quickest: Option<(f64, f64)> = None;
    for (&(a, b), there) in table.pairs.iter().filter(|((a, b), _)| a < b) {
        let Some(back) = table.pairs.get(&(b, a)) else { continue };
        let both = there.beside(back).filter(|(there, back)| there.kind.is_message() && back.kind.is_message());
        let mut trips: Vec<f64> =
            both.map(|(there, back)| (there.distance as f64 + back.distance as f64) / 2.0).collect();
        trips.sort_unstable_by(f64::total_cmp);
        if let (Some(&least), Some(&tenth)) = (trips.first(), trips.get(trips.len() / QUICK))
            && trips.len() >= FEWEST
            && quickest.is_none_or(|quickest| least < quickest.0)
        {
            quickest = Some((least, tenth));
        }
    }
    quickest.filter(|(least, tenth)| *least > 0.0 && *tenth <= SHARP * least).map(|(least, _)| least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bound;
    use crate::kind::BoundKind;

    /// Round trips of two clocks, one in each window; the second one is 1000 ahead.
    fn table(trips: impl Iterator<Item = i64>) -> BoundTable {
        let mut table = BoundTable::default();
        for (window, trip) in trips.enumerate() {
            for (pair, distance) in [((0, 1), trip / 2 + 1000), ((1, 0), trip - trip / 2 - 1000)] {
                let bound = Bound { distance, at: 0, kind: BoundKind::MESSAGE };
                table.pairs.entry(pair).or_default().add(window, bound, 1);
            }
        }
        table
    }

    #[test]
    fn round_trips_need_no_synchronised_clocks() {
        assert_eq!(half_trip(&table((0..100).map(|k| 400 + k % 10))), Some(200.0));
    }

    #[test]
    fn round_trips_that_are_few_or_begin_anywhere_tell_nothing() {
        assert_eq!(half_trip(&table((0..31).map(|_| 400))), None);
        assert_eq!(half_trip(&table((0..100).map(|k| 100 * (k + 1)))), None);
        // A clock that jumps.
        assert_eq!(half_trip(&table((0..100).map(|k| if k == 50 { -400 } else { 400 }))), None);
        assert_eq!(half_trip(&BoundTable::default()), None);
    }
}
