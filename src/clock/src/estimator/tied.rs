//! In which windows messages say where a clock is, and not only where it is not.

use crate::latencies::Latencies;
use crate::observations::{Observations, Offsets};

/// Part of the windows of a clock that have quicker messages than usual, and how many times as late as usual those of a window are that say nothing.
/// Chosen by hand: a smaller factor drops windows that tie a clock, a larger one keeps windows in which messages were merely late.
const USUAL: (usize, usize) = (1, 2);
pub(super) const LOOSE: f64 = 10.0;
/// Fewer windows on their own have to hold a clock from both sides. Chosen by hand: a larger number asks more of short bursts of traffic, a smaller
/// one believes bursts of messages that were late together.
const FEWEST: usize = 8;
/// So many windows without messages are a silence. After a shorter one, the equations know where a clock is: with any silence as one, a recording with a jump was 2.3 us off instead of 1.1
/// (docs/history.md, "Silences").
pub(super) const SILENCE: usize = 32;

/// In which windows messages tie each clock to others, if these are the corrections, with their `latencies`. Not
///
/// - where all of them took far longer than elsewhere: a broadcast while a program sets itself up says that a member is not behind by more than tens of milliseconds;
/// - in a few windows by themselves, unless messages in both directions leave hardly a choice: after a silence, an estimate goes wherever a late message looks prompt.
///
/// Near windows that tie a clock, all others with messages do as well; and all there are of a clock whose messages have no known latency.
pub(super) fn tied(seen: &Observations, corrections: &Offsets, latencies: &Latencies) -> Vec<Vec<bool>> {
    let windows = corrections.first().map_or(0, Vec::len);
    let mut slack = vec![vec![Slack::default(); windows]; corrections.len()];
    let flat: Vec<f64> = corrections.iter().flatten().copied().collect();
    let directions = seen.directions();
    for at in (0..directions.len()).filter(|&at| latencies.at(at).is_known()) {
        for one in seen.one_way[directions.messages(at)].iter().filter(|one| one.awaited) {
            let excess = latencies.at(at).excess(one, &flat, windows);
            if let Some(slack) = slack.get_mut(one.a as usize).and_then(|row| row.get_mut(one.window as usize)) {
                slack.sent = slack.sent.min(excess);
            }
            if let Some(slack) = slack.get_mut(one.b as usize).and_then(|row| row.get_mut(one.window as usize)) {
                slack.received = slack.received.min(excess);
            }
        }
    }
    let mut observed = seen.observed(corrections.len(), windows);
    for (observed, slack) in observed.iter_mut().zip(slack) {
        let mut usual: Vec<f64> = slack.iter().map(Slack::least).filter(|least| least.is_finite()).collect();
        let at = usual.len() * USUAL.0 / USUAL.1;
        if at < usual.len() {
            let usual = *usual.select_nth_unstable_by(at, f64::total_cmp).1;
            let most = LOOSE * usual.max(latencies.spread);
            let mut tied: Vec<bool> =
                observed.iter().zip(&slack).map(|(seen, slack)| *seen && slack.least() <= most).collect();
            for island in islands(&tied) {
                if slack[island.clone()].iter().all(|slack| slack.sent + slack.received > most) {
                    tied[island].fill(false);
                }
            }
            keep_near(observed, &tied);
        }
    }
    observed
}

/// Takes away the windows that are farther than a [`SILENCE`] from all that are `tied`.
fn keep_near(observed: &mut [bool], tied: &[bool]) {
    let mut next = tied.iter().enumerate().filter(|(_, tied)| **tied).map(|(window, _)| window).peekable();
    let mut before: Option<usize> = None;
    for (window, observed) in observed.iter_mut().enumerate() {
        while let Some(at) = next.next_if(|at| *at <= window) {
            before = Some(at);
        }
        let near = |at: usize| window.abs_diff(at) < SILENCE;
        *observed &= before.is_some_and(near) || next.peek().is_some_and(|at| near(*at));
    }
}

/// By how much the quickest messages of a clock in a window are late.
#[derive(Debug, Clone, Copy)]
struct Slack {
    sent: f64,
    received: f64,
}

impl Default for Slack {
    fn default() -> Slack {
        Slack { sent: f64::INFINITY, received: f64::INFINITY }
    }
}

impl Slack {
    fn least(&self) -> f64 {
        self.sent.abs().min(self.received.abs())
    }
}

/// The stretches of fewer than [`FEWEST`] windows, with shorter gaps in them, between a [`SILENCE`] and another one.
fn islands(tied: &[bool]) -> Vec<std::ops::Range<usize>> {
    let mut stretches: Vec<std::ops::Range<usize>> = Vec::new();
    for window in (0..tied.len()).filter(|window| tied[*window]) {
        match stretches.last_mut() {
            Some(last) if window < last.end + SILENCE => last.end = window + 1,
            _ => stretches.push(window..window + 1),
        }
    }
    if stretches.len() < 2 {
        return Vec::new();
    }
    stretches.retain(|stretch| tied[stretch.clone()].iter().filter(|tied| **tied).count() < FEWEST);
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latencies::Reading;
    use crate::observations::OneWay;
    use clc_trace::workers::Workers;

    const WINDOWS: usize = 200;

    /// Two clocks without corrections, whose messages take 1,000 ticks; late ones of some windows by this many more, there and back.
    fn tied_with(busy: std::ops::Range<usize>, others: &[(u32, f64, Option<f64>)]) -> Vec<bool> {
        let mut seen = Observations { floor: 20.0, precision: 20.0, ..Observations::default() };
        let mut add = |a: u32, b: u32, window: u32, late: f64| {
            seen.one_way.push(OneWay::new(a, b, window, -1000.0 - late));
        };
        let usual = |window: u32| f64::from(window * 7919 % 50);
        for there in [true, false] {
            let (a, b) = if there { (0, 1) } else { (1, 0) };
            busy.clone().for_each(|window| add(a, b, window as u32, usual(window as u32)));
            for (window, late, back) in others {
                if let Some(late) = if there { Some(*late) } else { *back } {
                    add(a, b, *window, late);
                }
            }
        }
        seen.one_way.sort_by_key(|one| (one.a, one.b, one.window));
        let corrections = vec![vec![0.0; WINDOWS]; 2];
        let flat = vec![0.0; 2 * WINDOWS];
        let latencies = Latencies::new(&seen, &flat, WINDOWS, Reading::Mode, None, Workers::ONE);
        tied(&seen, &corrections, &latencies).pop().unwrap_or_default()
    }

    fn windows(tied: &[bool]) -> Vec<usize> {
        (0..tied.len()).filter(|window| tied[*window]).collect()
    }

    #[test]
    fn a_window_whose_messages_are_all_late_ties_nothing() {
        let tied = tied_with(80..160, &[(20, 2e7, Some(3e7)), (100, 5.0, None)]);
        assert_eq!(windows(&tied), (80..160).collect::<Vec<_>>());
    }

    #[test]
    fn a_few_windows_by_themselves_need_both_directions() {
        let busy: Vec<usize> = (80..160).collect();
        // Prompt in one direction as the estimate has it, which may have come there for just that reason.
        assert_eq!(windows(&tied_with(80..160, &[(20, 10.0, Some(3e5)), (195, 15.0, None)])), busy);
        let both = tied_with(80..160, &[(20, 10.0, Some(30.0))]);
        assert_eq!(windows(&both), [vec![20], busy.clone()].concat());
        // Next to others they are measurements as usual.
        let beside = tied_with(80..160, &[(60, 10.0, Some(3e5)), (70, 2e6, Some(1e6))]);
        assert_eq!(windows(&beside), [vec![60, 70], busy].concat());
    }

    #[test]
    fn all_that_there_is_counts() {
        assert_eq!(windows(&tied_with(3..6, &[])), [3, 4, 5]);
        let corrections = vec![vec![0.0; 3]; 2];
        let one_way = vec![OneWay::new(0, 1, 1, -5e6)];
        let seen = Observations { one_way, one_sided: [(0, 1)].into(), ..Observations::default() };
        let latencies = Latencies::new(&seen, &[0.0; 6], 3, Reading::Mode, None, Workers::ONE);
        assert_eq!(tied(&seen, &corrections, &latencies), vec![vec![false, true, false]; 2]);
    }
}
