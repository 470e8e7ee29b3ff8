//! Straight lines for all clocks together that no message contradicts, where there are such: pair by pair ([`super::hull`]), but with the messages of all pairs.
//!
//! Lines of pairs do not add up to nothing around a cycle. Along a path from one clock to another some messages beside the path come out early, and which path is taken makes a difference. Here the two
//! clocks whose line is known best become one group, whose members keep that line between them. What messages permit between two groups is what those between any of their members do; the two groups whose line
//! is known best then are joined to one, and so on. Every message counts where the two groups come together that its clocks are in.
//! Where messages go one way between any two groups that are left, but come back around a cycle of them, two neighbours of a shortest cycle are joined: what the messages around it permit is shared out evenly.
//! What was joined by little may be contradicted later; then all lines are moved until nothing contradicts them ([`super::relaxation`]), if that can be.

use super::hull::{Limit, hull, likeliest};
use super::relaxation::{JoinedLines, Line, Run, relaxed};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Points (time, value) of two groups: what the correction of the second minus that of the first is at least, and at most.
type Limits = [Vec<(f64, f64)>; 2];

/// What is known between two groups.
struct Between {
    limits: Limits,
    /// The widest line; none where messages go one way only.
    line: Option<Line>,
    /// How far it is from the points on both sides.
    margin: f64,
    /// How little is known of it, as the bits of a number: negative numbers are none.
    uncertainty: u64,
}

impl Between {
    fn new(limits: Limits, run: Run) -> Between {
        let found = likeliest(&limits[0], &limits[1], run.end, run.usual, run.steepest);
        let unknown = found.map_or(f64::INFINITY, |line| match line.margin {
            // Of lines that messages contradict those are the last resort that are contradicted most.
            margin if margin < 0.0 => IMPOSSIBLE - margin,
            _ => line.uncertainty,
        });
        let (line, margin) = (found.map(|line| (line.intercept, line.slope)), found.map_or(0.0, |line| line.margin));
        Between { limits, line, margin, uncertainty: unknown.to_bits() }
    }
}

/// More than any line is unknown to, in ticks: what is beyond it is contradicted.
const IMPOSSIBLE: f64 = 1e30;

/// Points in order of time, one at a time, and only those that decide.
fn decisive(mut points: Vec<(f64, f64)>, side: f64) -> Vec<(f64, f64)> {
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then((side * other.1).total_cmp(&(side * one.1))));
    points.dedup_by_key(|point| point.0.to_bits());
    hull(&points, side)
}

/// The same limits of the second group with another one in place of the first, whose correction is higher by `line`.
fn shifted(limits: Limits, (intercept, slope): Line) -> Limits {
    limits.map(|points| points.into_iter().map(|(at, value)| (at, value + intercept + slope * at)).collect())
}

/// The limits of the first minus the second.
fn reversed([least, most]: Limits) -> Limits {
    let negative = |points: Vec<(f64, f64)>| points.into_iter().map(|(at, value)| (at, -value)).collect();
    [negative(most), negative(least)]
}

/// Groups of clocks that are being joined.
struct Groups {
    run: Run,
    /// What is known between two of them, by the numbers of their first clocks; and these pairs in the order of how little is known.
    pairs: BTreeMap<(u32, u32), Between>,
    open: BTreeSet<(u64, (u32, u32))>,
    /// The clocks of each, by the number of the first one, whose line within the group is zero.
    members: Vec<Vec<u32>>,
    lines: Vec<Line>,
    margin: f64,
}

impl Groups {
    /// A clock each, and what messages say.
    fn new(seen: impl IntoIterator<Item = Limit>, clocks: usize, run: Run) -> Groups {
        let mut limits: BTreeMap<(u32, u32), Limits> = BTreeMap::new();
        for seen in seen {
            let (pair, side, value) =
                if seen.a < seen.b { ((seen.a, seen.b), 0, seen.least) } else { ((seen.b, seen.a), 1, -seen.least) };
            limits.entry(pair).or_default()[side].push((seen.at, value));
        }
        let mut groups = Groups {
            run,
            pairs: BTreeMap::new(),
            open: BTreeSet::new(),
            members: (0..clocks as u32).map(|clock| vec![clock]).collect(),
            lines: vec![(0.0, 0.0); clocks],
            margin: f64::INFINITY,
        };
        limits.into_iter().for_each(|(pair, limits)| groups.add(pair, limits));
        groups
    }

    /// Adds what is known between two groups.
    fn add(&mut self, pair: (u32, u32), [least, most]: Limits) {
        let known = Between::new([decisive(least, 1.0), decisive(most, -1.0)], self.run);
        self.open.insert((known.uncertainty, pair));
        self.pairs.insert(pair, known);
    }

    fn take(&mut self, pair: (u32, u32)) -> Option<Between> {
        let known = self.pairs.remove(&pair)?;
        self.open.remove(&(known.uncertainty, pair));
        Some(known)
    }

    /// The two groups whose line is known best, the line, and its margin.
    fn best(&self) -> Option<((u32, u32), Line, f64)> {
        let (_, pair) = self.open.first()?;
        let known = self.pairs.get(pair)?;
        Some((*pair, known.line?, known.margin))
    }

    /// Makes two groups one.
    fn unite(&mut self, (first, second): (u32, u32), line: Line, margin: f64) -> Option<()> {
        self.take((first, second))?;
        self.margin = self.margin.min(margin);
        for clock in std::mem::take(&mut self.members[second as usize]) {
            let own = &mut self.lines[clock as usize];
            *own = (own.0 + line.0, own.1 + line.1);
            self.members[first as usize].push(clock);
        }
        let beside: Vec<(u32, u32)> =
            self.pairs.keys().filter(|(a, b)| *a == second || *b == second).copied().collect();
        for pair in beside {
            let known = self.take(pair)?;
            // Of another group minus this one.
            let (other, limits) = match pair {
                (own, other) if own == second => (other, known.limits),
                (other, _) => (other, reversed(known.limits)),
            };
            let limits = shifted(limits, line);
            let (pair, mut limits) =
                if first < other { ((first, other), limits) } else { ((other, first), reversed(limits)) };
            if let Some(known) = self.take(pair) {
                limits.iter_mut().zip(known.limits).for_each(|(all, more)| all.extend(more));
            }
            self.add(pair, limits);
        }
        Some(())
    }

    /// What decides.
    fn limits(&self) -> Vec<Limit> {
        let of_pair = |(&(a, b), known): (&(u32, u32), &Between)| {
            let limit = move |a: u32, b: u32, at: f64, least: f64| Limit { a, b, window: 0, at, least };
            let there = known.limits[0].iter().map(|&(at, value)| limit(a, b, at, value));
            let back = known.limits[1].iter().map(|&(at, value)| limit(b, a, at, -value));
            there.chain(back).collect::<Vec<Limit>>()
        };
        self.pairs.iter().flat_map(of_pair).collect()
    }

    /// What the correction of a group minus that of another one is at least, by messages from that to this.
    fn least(&self, from: u32, to: u32) -> Vec<(f64, f64)> {
        let known = self.pairs.get(&(from.min(to), from.max(to)));
        known.map_or(Vec::new(), |known| match from < to {
            true => known.limits[0].clone(),
            false => known.limits[1].iter().map(|(at, value)| (*at, -value)).collect(),
        })
    }

    /// The groups of a shortest cycle around which messages go in one direction.
    fn cycle(&self) -> Option<Vec<u32>> {
        let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (&(a, b), known) in &self.pairs {
            for ((from, to), points) in [(a, b), (b, a)].into_iter().zip(&known.limits) {
                if !points.is_empty() {
                    next.entry(from).or_default().push(to);
                }
            }
        }
        let from = |start: u32| {
            let mut before: BTreeMap<u32, u32> = BTreeMap::new();
            let mut reached = VecDeque::from([start]);
            while let Some(group) = reached.pop_front() {
                for &to in next.get(&group).into_iter().flatten() {
                    if to == start {
                        let mut cycle: Vec<u32> =
                            std::iter::successors(Some(group), |group| before.get(group).copied()).collect();
                        cycle.reverse();
                        return Some(cycle);
                    }
                    if let Entry::Vacant(vacant) = before.entry(to) {
                        vacant.insert(group);
                        reached.push_back(to);
                    }
                }
            }
            None
        };
        next.keys().filter_map(|&start| from(start)).min_by_key(Vec::len)
    }

    /// The line between two neighbours in a cycle, and its margin: what all messages around the cycle have to choose between is the same for each of them.
    fn around(&self) -> Option<((u32, u32), Line, f64)> {
        let cycle = self.cycle()?;
        let (first, second) = (*cycle.first()?, *cycle.get(1)?);
        let rest = cycle.iter().skip(1).zip(cycle.iter().skip(2).chain([&first]));
        let rest: Vec<Vec<(f64, f64)>> = rest.map(|(&from, &to)| self.least(from, to)).collect();
        // Whatever the second is later than the first, the others have to come back from.
        let most = sum(&rest)?.into_iter().map(|(at, value)| (at, -value)).collect();
        let (least, most) = (self.least(first, second), decisive(most, -1.0));
        let line = likeliest(&least, &most, self.run.end, self.run.usual, self.run.steepest)?;
        let margin = 2.0 * line.margin / cycle.len() as f64;
        let line = (line.intercept - line.margin + margin, line.slope);
        Some(match first < second {
            true => ((first, second), line, margin),
            false => ((second, first), (-line.0, -line.1), margin),
        })
    }
}

/// The sum of lines through points in order of time, where all of them are; none if they are nowhere together.
fn sum(lines: &[Vec<(f64, f64)>]) -> Option<Vec<(f64, f64)>> {
    let begin = lines.iter().map(|points| points.first().map(|point| point.0)).collect::<Option<Vec<f64>>>()?;
    let end = lines.iter().map(|points| points.last().map(|point| point.0)).collect::<Option<Vec<f64>>>()?;
    let (begin, end) =
        (begin.into_iter().fold(f64::NEG_INFINITY, f64::max), end.into_iter().fold(f64::INFINITY, f64::min));
    let mut times: Vec<f64> =
        lines.iter().flatten().map(|point| point.0).filter(|at| (begin..=end).contains(at)).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let value = |points: &Vec<(f64, f64)>, at: f64| {
        let after = points.partition_point(|point| point.0 < at);
        match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
            (Some(one), Some(other)) => one.1 + (other.1 - one.1) * (at - one.0) / (other.0 - one.0),
            (one, other) => other.or(one).map_or(0.0, |point| point.1),
        }
    };
    let total = |at: f64| (at, lines.iter().map(|points| value(points, at)).sum());
    (!times.is_empty()).then(|| times.into_iter().map(total).collect())
}

/// A line for each of so many clocks by what messages say. None if they do not connect all clocks in both directions, if only around cycles.
pub(crate) fn join(seen: impl IntoIterator<Item = Limit>, clocks: usize, run: Run) -> Option<JoinedLines> {
    let mut groups = Groups::new(seen, clocks, run);
    let limits = groups.limits();
    while let Some((pair, line, margin)) = groups.best().or_else(|| groups.around()) {
        groups.unite(pair, line, margin)?;
    }
    if groups.members.first().map_or(0, Vec::len) != clocks {
        return None;
    }
    let joined = JoinedLines { lines: groups.lines, margin: groups.margin };
    // What was joined first was joined by too little.
    if joined.margin < 0.0
        && let Some(relaxed) = relaxed(&limits, &joined.lines, run)
    {
        return Some(relaxed);
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hull::Steepest;
    use proptest::prelude::*;

    const RUN: Run = Run { end: 50.0, usual: 1e9, steepest: Steepest { overlapping: 1e3, apart: 1e3 } };

    /// A message with clocks that have these corrections, which takes so long.
    fn message(lines: &[Line], (a, b): (u32, u32), at: f64, travel: f64) -> Limit {
        let value = |clock: u32| lines[clock as usize].0 + lines[clock as usize].1 * at;
        Limit { a, b, window: at as u32, at, least: value(b) - value(a) - travel }
    }

    fn value(lines: &[Line], clock: u32, at: f64) -> f64 {
        lines[clock as usize].0 + lines[clock as usize].1 * at
    }

    /// By how much the message that is earliest with these clocks is early; negative if none is.
    fn earliest(lines: &[Line], seen: &[Limit]) -> f64 {
        let early = |seen: &Limit| seen.least - (value(lines, seen.b, seen.at) - value(lines, seen.a, seen.at));
        seen.iter().map(early).fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        #[test]
        fn no_message_contradicts_lines_with_a_margin(
            lines in prop::collection::vec((-1e4f64..1e4, -20.0f64..20.0), 2..7),
            messages in prop::collection::vec((0u32..7, 0u32..7, 0.0f64..50.0, 10.0f64..500.0), 1..300)
        ) {
            let clocks = lines.len() as u32;
            let pairs = messages.iter().map(|(a, b, at, travel)| ((a % clocks, b % clocks), *at, *travel));
            let seen: Vec<Limit> = pairs
                .filter(|((a, b), ..)| a != b)
                .map(|(pair, at, travel)| message(&lines, pair, at, travel))
                .collect();
            if let Some(found) = join(seen.iter().copied(), lines.len(), RUN) {
                prop_assert_eq!(found.lines[0], (0.0, 0.0));
                prop_assert!(earliest(&found.lines, &seen) <= 1e-6 - found.margin);
                // Of two clocks there is always one.
                prop_assert!(found.margin >= -1e-6 || clocks > 2);
            }
        }

        #[test]
        fn lines_are_as_good_as_the_quickest_messages(
            lines in prop::collection::vec((-1e4f64..1e4, -20.0f64..20.0), 3..9), late in 100.0f64..1e4
        ) {
            // A ring, in which the quickest message of a direction takes 10 at its beginning and at its end, and those between any pair of other clocks are late.
            let clocks = lines.len() as u32;
            let mut seen = Vec::new();
            for a in 0..clocks {
                for b in (0..clocks).filter(|b| *b != a) {
                    let near = (a + 1) % clocks == b || (b + 1) % clocks == a;
                    for at in [0.0, 25.0, 50.0] {
                        seen.push(message(&lines, (a, b), at, if near && at != 25.0 { 10.0 } else { 10.0 + late }));
                    }
                }
            }
            let found = join(seen, lines.len(), RUN).expect("connected");
            for (clock, line) in (0..).zip(&found.lines) {
                for at in [0.0, 50.0] {
                    let truth = value(&lines, clock, at) - value(&lines, 0, at);
                    prop_assert!((line.0 + line.1 * at - truth).abs() < 1e-6, "clock {clock}: {line:?} at {at}, {truth}");
                }
            }
        }
    }

    #[test]
    fn all_messages_of_two_groups_count() {
        // Clocks 0 and 1 are known well, and so are 2 and 3; between the two groups one direction is known from one pair and the other one from another.
        let lines = [(0.0, 0.0), (300.0, 1.0), (-50.0, 2.0), (8.0, -3.0)];
        let mut seen = Vec::new();
        for at in [0.0, 10.0, 20.0] {
            for pair in [(0, 1), (1, 0), (2, 3), (3, 2)] {
                seen.push(message(&lines, pair, at, 5.0));
            }
            seen.push(message(&lines, (1, 2), at, 40.0));
            seen.push(message(&lines, (3, 0), at, 40.0));
        }
        let found = join(seen.iter().copied(), 4, RUN).expect("connected");
        for (line, truth) in found.lines.iter().zip(lines) {
            assert!((line.0 - truth.0).abs() < 1e-9 && (line.1 - truth.1).abs() < 1e-9, "{line:?} {truth:?}");
        }
        assert!((found.margin - 5.0).abs() < 1e-9, "{}", found.margin);
        // Around a ring it does.
        let ring = |travel: [f64; 4]| {
            let hops = [(0, 1), (1, 2), (2, 3), (3, 0)].into_iter().zip(travel);
            let seen = hops.flat_map(|(pair, travel)| [0.0, 10.0, 20.0].map(|at| message(&lines, pair, at, travel)));
            join(seen, 4, RUN).expect("connected")
        };
        let found = ring([7.0; 4]);
        assert!((found.margin - 7.0).abs() < 1e-9, "{}", found.margin);
        for (line, truth) in found.lines.iter().zip(lines) {
            assert!((line.0 - truth.0).abs() < 1e-9 && (line.1 - truth.1).abs() < 1e-9, "{line:?} {truth:?}");
        }
        // What is not the same is not known.
        assert!((ring([7.0, 1.0, 3.0, 5.0]).margin - 4.0).abs() < 1e-9);
        // Nothing comes back.
        seen.retain(|seen| (seen.a, seen.b) != (3, 0));
        assert!(join(seen, 4, RUN).is_none());
        assert!(join([], 1, RUN).is_some() && join([], 2, RUN).is_none());
    }

    #[test]
    fn clocks_that_bend_have_no_lines() {
        let bent = |at: f64| if (5.0..15.0).contains(&at) { 100.0 } else { 0.0 };
        let both = |at: f64| {
            [
                Limit { a: 0, b: 1, window: 0, at, least: bent(at) - 20.0 },
                Limit { a: 1, b: 0, window: 0, at, least: -bent(at) - 20.0 },
            ]
        };
        let found = join((0..20).flat_map(|at| both(f64::from(at))), 2, RUN).expect("connected");
        assert!((found.margin + 30.0).abs() < 1e-6, "{}", found.margin);
    }
}
