//! Straight lines for all clocks that no message contradicts, found by going to where the message that contradicts most does not any more, again and again: the relaxation method for linear
//! inequalities (Agmon, and Motzkin and Schoenberg, Canadian Journal of Mathematics 6, 1954).

use super::hull::{Limit, Steepest};

/// A straight line: intercept and slope.
pub(crate) type Line = (f64, f64);

/// Lines for all clocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JoinedLines {
    /// Correction of each clock, with that of the first one zero.
    pub lines: Vec<Line>,
    /// What messages take at least by these clocks, or half of what there was to choose between groups: the least of all that were joined. No message contradicts the lines if it is not negative.
    pub margin: f64,
}

/// What is known of a run, and of clocks, beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// It is from time 0 to this.
    pub end: f64,
    /// By how much the drifts of two clocks usually differ, in ticks per unit of time. Where messages tell less of them, they are taken to be the smaller.
    pub usual: f64,
    /// By how much they can differ.
    pub steepest: Steepest,
}

/// Steps until a margin is given up, and how far each goes beyond the place where its message contradicts no more: 1 is onto it, 2 is its mirror image.
const STEPS: usize = 20_000;
/// Messages that are looked at until no other margin is tried: some tenths of a second.
const EFFORT: usize = 1 << 28;
const BEYOND: f64 = 1.5;
/// Halvings of the margin. It is found to a four-thousandth.
const HALVED: usize = 12;
/// Drifts differ from that of the first clock by no more than so many times what drifts usually differ by. Chosen by hand: a smaller value excludes a
/// clock that does drift faster than others, a larger one allows lines that no clock follows.
const CAPPED: f64 = 4.0;
/// Largest margin that is tried, in ticks: where messages go one way only, there is no end.
const LARGEST: f64 = 1e9;
/// What is left of a contradiction, in ticks. Times are whole ticks.
const LEFT: f64 = 1.0;

/// Lines as two values each: at the beginning of the run, and at its end.
type Ends = Vec<[f64; 2]>;

/// The lines that are the farthest from what messages contradict, beginning with these `lines`; none if some message contradicts all that were tried.
pub(crate) fn relaxed(seen: &[Limit], lines: &[Line], run: Run) -> Option<JoinedLines> {
    let end = run.end.max(1.0);
    let begin: Ends = lines.iter().map(|line| [line.0, line.0 + line.1 * end]).collect();
    let steepest = CAPPED * run.usual * end;
    let mut effort = EFFORT / seen.len().max(1);
    let mut possible = |from: &Ends, margin: f64| relax(seen, from.clone(), (end, steepest, margin), &mut effort);
    let mut best = (possible(&begin, 0.0)?, 0.0);
    let mut margin = LEFT;
    while margin < LARGEST
        && let Some(found) = possible(&best.0, margin)
    {
        best = (found, margin);
        margin *= 2.0;
    }
    let mut step = (margin - best.1) / 2.0;
    for _ in 0..HALVED {
        if let Some(found) = possible(&best.0, best.1 + step) {
            best = (found, best.1 + step);
        }
        step /= 2.0;
    }
    let (ends, margin) = best;
    let origin = *ends.first()?;
    let line = |[first, last]: &[f64; 2]| (first - origin[0], (last - origin[1] - (first - origin[0])) / end);
    Some(JoinedLines { lines: ends.iter().map(line).collect(), margin: margin - LEFT })
}

/// Lines with which every message takes at least `margin`, from these; with so many steps at most as are left of all.
fn relax(seen: &[Limit], mut ends: Ends, (end, steepest, margin): (f64, f64, f64), effort: &mut usize) -> Option<Ends> {
    for _ in 0..STEPS {
        *effort = effort.checked_sub(1)?;
        let short = |limit: &Limit| {
            let share = limit.at / end;
            let value = |clock: u32| ends[clock as usize][0] * (1.0 - share) + ends[clock as usize][1] * share;
            limit.least + margin - (value(limit.b) - value(limit.a))
        };
        let worst = seen.iter().map(|limit| (short(limit), limit)).max_by(|one, other| one.0.total_cmp(&other.0))?;
        let rise = |clock: usize| ends[clock][1] - ends[clock][0] - (ends[0][1] - ends[0][0]);
        let steep = (1..ends.len()).max_by(|&one, &other| rise(one).abs().total_cmp(&rise(other).abs()))?;
        let too_steep = rise(steep).abs() - steepest;
        if worst.0 <= LEFT && too_steep <= LEFT {
            return Some(ends);
        }
        if too_steep > worst.0 {
            let change = BEYOND * too_steep * rise(steep).signum() / 4.0;
            for (clock, sign) in [(steep, 1.0), (0, -1.0)] {
                ends[clock][0] += sign * change;
                ends[clock][1] -= sign * change;
            }
            continue;
        }
        let share = worst.1.at / end;
        let change = BEYOND * worst.0 / (2.0 * ((1.0 - share).powi(2) + share.powi(2)));
        for (clock, sign) in [(worst.1.b, 1.0), (worst.1.a, -1.0)] {
            ends[clock as usize][0] += sign * change * (1.0 - share);
            ends[clock as usize][1] += sign * change * share;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RUN: Run = Run { end: 50.0, usual: 1e3, steepest: Steepest { overlapping: 1e3, apart: 1e3 } };

    fn value(line: Line, at: f64) -> f64 {
        line.0 + line.1 * at
    }

    proptest! {
        #[test]
        fn no_message_contradicts_what_is_found(
            lines in prop::collection::vec((-1e4f64..1e4, -20.0f64..20.0), 2..6),
            messages in prop::collection::vec((0usize..6, 0usize..6, 0.0f64..50.0, 100.0f64..500.0), 4..60)
        ) {
            let seen: Vec<Limit> = messages
                .iter()
                .map(|(a, b, at, travel)| (a % lines.len(), b % lines.len(), *at, *travel))
                .filter(|(a, b, ..)| a != b)
                .map(|(a, b, at, travel)| Limit {
                    a: a as u32,
                    b: b as u32,
                    window: 0,
                    at,
                    least: value(lines[b], at) - value(lines[a], at) - travel,
                })
                .collect();
            prop_assume!(!seen.is_empty());
            let zero = vec![(0.0, 0.0); lines.len()];
            // There are lines: these.
            let found = relaxed(&seen, &zero, RUN);
            prop_assert!(found.is_some());
            let found = found.unwrap();
            prop_assert!(found.margin >= 90.0, "{}", found.margin);
            prop_assert_eq!(found.lines[0], (0.0, 0.0));
            for limit in &seen {
                let of = |clock: u32| value(found.lines[clock as usize], limit.at);
                prop_assert!(of(limit.b) - of(limit.a) >= limit.least + found.margin - 1e-3);
            }
        }
    }

    #[test]
    fn what_is_impossible_has_no_lines() {
        let limit = |a, b, least| Limit { a, b, window: 0, at: 10.0, least };
        assert_eq!(relaxed(&[limit(0, 1, 50.0), limit(1, 0, -20.0)], &[(0.0, 0.0); 2], RUN), None);
        assert!(relaxed(&[limit(0, 1, 50.0), limit(1, 0, -70.0)], &[(0.0, 0.0); 2], RUN).is_some());
    }
}
