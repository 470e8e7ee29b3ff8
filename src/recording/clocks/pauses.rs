//! When a clock jumped between two packets of its node: its events tell more, for the pause in which it jumped seems to be longer or shorter than such pauses are, by
//! just as much.

use crate::recording::plan::Plan;
use crate::recording::raw::RawFile;
use crate::recording::raw::merge::Merge;
use crate::recording::raw::records::RawRecord;
use std::collections::HashMap;

/// A clock has jumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockJump {
    /// At some time between these two, in nanoseconds as it shows them.
    pub between: (i64, i64),
    /// By so much its correction rises: less than nothing if it was set forward.
    pub rise: i64,
}

/// An event of a thread: when, and what.
type TimedEvent = (i64, u32);

/// Pauses up to so many nanoseconds before and after a jump tell how long they usually are. Chosen by hand: with more, pauses of another part of the
/// program count; with less, too few are known.
const AROUND: i64 = 2_000_000_000;
/// No more events are looked at. Chosen by hand: 64 MiB; with fewer, busy programs have jumps between packets instead of between events.
const MOST: usize = 1 << 22;
/// So many pauses of a kind tell how long such ones are,
const ENOUGH: usize = 8;
/// to this part of the jump, and to no less than so many nanoseconds; where they are rare, to the distance of this many. Chosen by hand: narrower
/// densities make chance of single lengths, wider ones let no pause stand out.
const WIDTH: (f64, f64) = (0.125, 2_000.0);
const NEIGHBOURS: usize = 4;
/// Lengths that no pause of a kind has had are as likely as this part of one that had any of those between the shortest and the longest. Chosen by
/// hand: with less, one new length decides; with more, none can stand out.
const UNSEEN: f64 = 0.2;
/// A pause in which the clock was set forward is at least of this part of that. Chosen by hand: heights are known to some percent: a larger part
/// excludes the right pause, a smaller one admits others.
const NEARLY: f64 = 0.9;
/// The logarithm of how many times as likely as any other pause one must be: three times. Between two pauses of which neither is that likely, the step is best spread over both.
const DECISIVE: f64 = 1.1;
/// The same of a pause that is not between the two packets, but up to so many nanoseconds beside them: one that was delayed by as much as the clock has jumped is taken to be on the
/// wrong side of the jump. Four hundred times.
const BESIDE: i64 = 15_000_000;
const MORE_DECISIVE: f64 = 6.0;

impl Plan {
    /// The pauses of a node in which its clock jumped, as first and last time, as far as its events tell.
    pub(crate) fn pauses(&self, node: usize, jumps: &[ClockJump]) -> Vec<Option<(i64, i64)>> {
        let near =
            |time: i64| jumps.iter().any(|jump| (jump.between.0 - AROUND..=jump.between.1 + AROUND).contains(&time));
        let mut all: Vec<Vec<TimedEvent>> = Vec::new();
        for (&rank, files) in self.processes.iter().filter(|(rank, _)| self.node(**rank) == Some(node)) {
            let Some(mut clock) = self.process_clock(rank) else { continue };
            let list: Vec<&RawFile> = files.iter().collect();
            let mut merge = Merge::new(&list, &self.functions);
            let mut threads: Vec<Vec<TimedEvent>> = vec![Vec::new(); list.len()];
            let mut last = vec![0; list.len()];
            while let Some((thread, reading, record)) = merge.next() {
                let (Some(events), Some(last)) = (threads.get_mut(thread), last.get_mut(thread)) else { continue };
                let what = match record {
                    RawRecord::Enter(function, ..) => {
                        *last = function as u32;
                        2 * *last
                    }
                    RawRecord::Leave(..) | RawRecord::Failed(_) => 2 * *last + 1,
                    RawRecord::Own(..) => u32::MAX,
                    RawRecord::OpenMp(..) => u32::MAX - 2,
                    _ => continue,
                };
                let time = clock.times(reading).1;
                if near(time) {
                    events.push((time, what));
                }
            }
            all.extend(threads.into_iter().filter(|events| !events.is_empty()));
            if all.iter().map(Vec::len).sum::<usize>() > MOST {
                return vec![None; jumps.len()];
            }
        }
        jumps.iter().map(|jump| found(&all, *jump)).collect()
    }
}

/// How long pauses of a kind are: often there is a shortest one, and longer ones are ever rarer.
#[derive(Debug, Clone)]
struct Usual {
    /// Those that there were, in order, and how far around each others are expected.
    lengths: Vec<(f64, f64)>,
    unseen: f64,
    /// Clearly below all that there were: whoever sleeps does not wake up early, so the more there were, the less likely is one.
    too_short: f64,
}

impl Usual {
    fn of(mut lengths: Vec<f64>, rise: f64) -> Option<Usual> {
        let (count, least) = (lengths.len(), (WIDTH.0 * rise.abs()).max(WIDTH.1));
        if count < ENOUGH {
            return None;
        }
        lengths.sort_unstable_by(f64::total_cmp);
        let range = lengths.last()? - lengths.first()? + least;
        let too_short = lengths.first()? - least;
        // The distance within which the next few are, on whichever side.
        let width = |place: usize| {
            let from = place.saturating_sub(NEIGHBOURS).min(count - 1 - NEIGHBOURS);
            let far = |first: usize| {
                let (low, high) = (lengths.get(first), lengths.get(first + NEIGHBOURS));
                low.zip(high).zip(lengths.get(place)).map_or(0.0, |((low, high), own)| (own - low).max(high - own))
            };
            (from..=place.min(count - 1 - NEIGHBOURS)).map(far).fold(f64::INFINITY, f64::min).max(least)
        };
        let widths: Vec<f64> = (0..count).map(width).collect();
        Some(Usual { lengths: lengths.into_iter().zip(widths).collect(), unseen: UNSEEN / range, too_short })
    }

    /// The logarithm of how likely a length is, but for a constant.
    fn likely(&self, length: f64) -> f64 {
        let near = self.lengths.iter().filter(|(known, width)| (known - length).abs() <= *width);
        let unseen = if length < self.too_short { self.unseen / self.lengths.len() as f64 } else { self.unseen };
        (near.map(|(_, width)| 0.5 / width).sum::<f64>() + unseen).ln()
    }
}

/// The pause in which the clock jumped: one that is clear, be it beside the two packets, or else one between them.
fn found(threads: &[Vec<TimedEvent>], jump: ClockJump) -> Option<(i64, i64)> {
    let (from, until) = jump.between;
    let beside = ClockJump { between: (from - BESIDE, until + BESIDE), ..jump };
    // Between the packets, it was at one time as likely as at another, and the longer a pause is, the likelier in it.
    let whole = (until - from + jump.rise).max(1) as f64;
    let by_chance = |(begin, end): (i64, i64)| ((end - begin + jump.rise).max(1) as f64 / whole).ln();
    // It did jump between them, even if each pause there would be likelier without.
    place(threads, beside, (MORE_DECISIVE, MORE_DECISIVE), |_| 0.0)
        .or_else(|| place(threads, jump, (f64::NEG_INFINITY, DECISIVE), by_chance))
        .or_else(|| place(threads, jump, (f64::NEG_INFINITY, DECISIVE), |_| 0.0))
}

/// The pause of all threads of a node in which its clock jumped, if that is so much likelier than that it did not, and than any other one.
fn place(
    threads: &[Vec<TimedEvent>],
    jump: ClockJump,
    (likely, decisive): (f64, f64),
    chance: impl Fn((i64, i64)) -> f64,
) -> Option<(i64, i64)> {
    let ((from, until), rise) = (jump.between, jump.rise as f64);
    let mut lengths: HashMap<(usize, u32, u32), Vec<f64>> = HashMap::new();
    let inside = |one: &TimedEvent, other: &TimedEvent| other.0 > from && one.0 < until;
    for (thread, events) in threads.iter().enumerate() {
        let near = events.windows(2).filter_map(|pair| match pair {
            [one, other] if !inside(one, other) => Some((*one, *other)),
            _ => None,
        });
        let near = near.filter(|(one, other)| other.0 > from - AROUND && one.0 < until + AROUND);
        for (one, other) in near {
            lengths.entry((thread, one.1, other.1)).or_default().push((other.0 - one.0) as f64);
        }
    }
    let usual: HashMap<_, Usual> =
        lengths.into_iter().filter_map(|(kind, lengths)| Some((kind, Usual::of(lengths, rise)?))).collect();
    let mut times: Vec<i64> = threads.iter().flatten().map(|event| event.0).collect();
    times.retain(|time| (from..=until).contains(time));
    times.extend([from, until]);
    times.sort_unstable();
    times.dedup();
    // What speaks for a pause, what its length alone does, and the pause.
    let mut best: Option<(f64, f64, (i64, i64))> = None;
    let mut second = f64::NEG_INFINITY;
    for (begin, end) in times.iter().zip(times.iter().skip(1)).map(|(&begin, &end)| (begin, end)) {
        if ((end - begin) as f64) < -NEARLY * rise || end - begin + jump.rise < 1 {
            continue;
        }
        let mut by_length = 0.0;
        for (thread, events) in threads.iter().enumerate() {
            let next = events.partition_point(|event| event.0 <= begin);
            let around = next.checked_sub(1).and_then(|before| Some((events.get(before)?, events.get(next)?)));
            let Some((one, other)) = around else { continue };
            if let Some(usual) = usual.get(&(thread, one.1, other.1)) {
                let length = (other.0 - one.0) as f64;
                by_length += usual.likely(length + rise) - usual.likely(length);
            }
        }
        let score = by_length + chance((begin, end));
        match best {
            Some((most, ..)) if most >= score => second = second.max(score),
            _ => {
                second = second.max(best.map_or(f64::NEG_INFINITY, |best| best.0));
                best = Some((score, by_length, (begin, end)));
            }
        }
    }
    let clear = |(score, by_length, _): &(f64, f64, _)| *by_length >= likely && *score >= second + decisive;
    best.filter(clear).map(|(.., pause)| pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that calls a function for 5 us every 10 ms, not quite regularly, by a clock that is set forward by `by` in the pause before the call of a number.
    fn thread(calls: i64, jumps: i64, by: i64, seed: i64) -> Vec<TimedEvent> {
        let uneven = |call: i64| (call * 7_919 + seed * 104_729) % 40_000;
        let begin = |call: i64| call * 10_000_000 + uneven(call) + if call >= jumps { by } else { 0 };
        (0..calls).flat_map(|call| [(begin(call), 6), (begin(call) + 5_000, 7)]).collect()
    }

    #[test]
    fn the_pause_that_is_longer_than_usual_has_the_jump() {
        for by in [500_000, -500_000, 3_000_000] {
            for jumps in 97..103 {
                let events = thread(200, jumps, by, 1);
                // Packets some 70 ms apart, and events of another process of the node.
                let between = (960_000_000, 1_040_000_000);
                let other: Vec<TimedEvent> =
                    thread(200, jumps, by, 5).iter().map(|event| (event.0 + 3_000_000, event.1)).collect();
                let jump = ClockJump { between, rise: -by };
                let at = (2 * jumps) as usize;
                assert_eq!(
                    found(std::slice::from_ref(&events), jump),
                    Some((events[at - 1].0, events[at].0)),
                    "{by} at {jumps}"
                );
                let (from, until) = found(&[events.clone(), other], jump).unwrap_or_else(|| panic!("{by} at {jumps}"));
                assert!(events[at - 1].0 <= from && until <= events[at].0, "{by} at {jumps}: {from} to {until}");
            }
        }
    }

    /// The packets are on one side of it, since the last one before it or the first one after it was late.
    #[test]
    fn a_pause_beside_the_packets_is_found_if_it_is_clear() {
        for by in [500_000, -500_000] {
            let events = thread(200, 100, by, 1);
            let pause = (events[199].0, events[200].0);
            for between in [(pause.0 - 45_000_000, pause.0 - 1_000_000), (pause.1 + 3_000_000, pause.1 + 3_060_000)] {
                assert_eq!(found(std::slice::from_ref(&events), ClockJump { between, rise: -by }), Some(pause), "{by}");
            }
            let between = (pause.0 - 200_000_000, pause.0 - 100_000_000);
            assert_eq!(found(std::slice::from_ref(&events), ClockJump { between, rise: -by }), None, "too far away");
        }
    }

    /// On a busy machine, those who sleep for 10 ms wake up as much as 8 ms late, but never early.
    #[test]
    fn a_pause_that_is_shorter_than_any_has_the_jump_however_uneven_they_are() {
        let (jumps, by, mut time) = (100, 500_000, 0);
        let mut events = Vec::new();
        for call in 0..200_i64 {
            let late = if call == jumps { 80_000 } else { 30_000 + call * 2_654_435_761 % 8_000_009 };
            time += 10_000_000 + late - if call == jumps { by } else { 0 };
            events.extend([(time, 6), (time + 5_000, 7)]);
        }
        let pause = (events[2 * jumps as usize - 1].0, events[2 * jumps as usize].0);
        let between = (pause.0 - 30_000_000, pause.1 + 40_000_000);
        assert_eq!(found(&[events], ClockJump { between, rise: by }), Some(pause));
    }

    /// A burst of events right after the packet before the jump: it was after it rather than before it, as far as pauses leave that open.
    #[test]
    fn of_two_pauses_the_longer_one_has_the_jump_rather_than_the_other() {
        let uneven = |call: i64| call * call * 7_919_013 % 4_000_037;
        let events: Vec<TimedEvent> = (0..200)
            .flat_map(|call| [call * 10_000_000 + uneven(call), call * 10_000_000 + uneven(call) + 5_000])
            .map(|time| (time, 6))
            .collect();
        let (mut right, mut wrong) = (0, 0);
        for call in 60..140 {
            let burst = (events[2 * call].0, events[2 * call + 1].0);
            let between = (burst.0 - 100_000, burst.1 + 6_000_000);
            let pause = found(std::slice::from_ref(&events), ClockJump { between, rise: 200_000 });
            wrong += u32::from(pause == Some((between.0, burst.0)));
            right += u32::from(pause == Some((burst.1, between.1)));
        }
        // By the lengths of the pauses alone, 6 and 15.
        assert!(right > wrong + 5, "{right} right and {wrong} wrong of 80");
    }

    /// As it is shown, the pause is as long as others; without the jump, nobody else's was. But the next one would be as short as none.
    #[test]
    fn between_the_packets_it_jumped_even_if_each_pause_is_likelier_as_it_is() {
        let (jumps, by, mut time) = (100, 500_000, 0);
        let mut events = Vec::new();
        for call in 0..200_i64 {
            let uneven = call * 7_919 % 100_000;
            time += match call {
                call if call == jumps => 13_230_000 + by,
                call if call % 20 == 7 => 13_680_000 + uneven,
                _ => 10_050_000 + uneven,
            };
            events.extend([(time, 6), (time + 5_000, 7)]);
        }
        let pause = (events[2 * jumps as usize - 1].0, events[2 * jumps as usize].0);
        let between = (pause.0 + 1_000_000, pause.1 + 5_000_000);
        assert_eq!(found(&[events], ClockJump { between, rise: -by }), Some((between.0, pause.1)));
    }

    #[test]
    fn where_pauses_are_as_uneven_as_the_jump_is_high_nothing_is_told() {
        // Pauses of 6 to 14 ms, all about as frequent.
        let uneven = |call: i64| call * 2_654_435_761 % 4_000_037;
        let events: Vec<TimedEvent> = (0..200)
            .flat_map(|call| [call * 10_000_000 + uneven(call), call * 10_000_000 + uneven(call) + 5_000])
            .map(|time| (time, 6))
            .collect();
        let jump = ClockJump { between: (960_000_000, 1_040_000_000), rise: -500_000 };
        assert_eq!(found(&[events], jump), None);
        assert_eq!(found(&[], jump), Some(jump.between), "no events");
        // Of a clock that did not jump.
        assert_eq!(found(&[thread(200, 300, 0, 1)], jump), None);
    }
}
