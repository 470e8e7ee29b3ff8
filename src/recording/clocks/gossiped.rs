//! What the agents of a job that was monitored have noted of their packets (`clc_monitor::clocks::log`), as offsets of the clocks of the nodes: they
//! talk to each other all the time, also while the program computes or sends one way only.

use crate::recording::clocks::pauses::ClockJump;
use crate::recording::clocks::{Counter, ProcessClock};
use crate::recording::plan::Plan;
use clc_clock::reference::Reference;
use clc_clock::steps::JumpLimits;
use clc_clock::{ClockMessage, Estimated, LinearClock, Options, estimate};
use clc_monitor::clocks::log::{self, ClockLogEntry, EXTENSION, Name};
use clc_trace::{ClockOffset, Error, Result, Ticks};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Of longer logs, all together, only some packets are looked at, in bytes.
const MOST: u64 = 256 << 20;
/// Fewer packets of a node say nothing. Chosen by hand: of fewer, none may have been quick in either direction; with more, short jobs have no offsets
/// in between.
const LEAST: usize = 16;
/// A clock that changes faster between two packets, in millionths, and by more than that, in nanoseconds, has jumped: both sides of it are told.
const JUMP: (f64, i64) = (1_000e-6, 10_000);

/// Packets that follow each other, in nanoseconds. Chosen by hand: with less, one jump between packets of a burst becomes several; with more, several
/// become one.
const BURST: i64 = 1_000_000;
/// The reference is corrected by no more than that, in nanoseconds: some four days.
const MOST_APART: i64 = 1 << 48;
/// A clock that jumps more often is none whose events are looked at for the moments. Chosen by hand: looking takes a pass over the events around
/// each; so often, they are adjustments rather than jumps.
const MOST_JUMPS: usize = 64;

/// Offsets by the nodes' places.
pub(crate) type Followed = BTreeMap<usize, Vec<ClockOffset>>;

/// Takes the logs of the agents of a job, of their clocks and of their nodes, to the raw files of its recording.
///
/// # Errors
/// One cannot be copied.
pub(crate) fn keep_logs(monitor: &Path, raw: &Path) -> Result<()> {
    let agents = monitor.join("agents");
    let notes = with_extension(&agents, clc_monitor::history::EXTENSION);
    for path in logs(&agents).into_iter().chain(notes) {
        let Some(name) = path.file_name() else { continue };
        std::fs::copy(&path, raw.join(name))
            .map_err(|error| Error::io(&path, "cannot copy the log of an agent", &error))?;
    }
    Ok(())
}

fn logs(directory: &Path) -> Vec<PathBuf> {
    with_extension(directory, EXTENSION)
}

fn with_extension(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == extension)).collect();
    paths.sort();
    paths
}

/// The packets of all logs whose both ends are known: sender's node and counter, receiver's node and counter. Times are those of `CLOCK_MONOTONIC_RAW` of the nodes.
fn packets(
    directory: &Path,
    node_of: impl Fn(u32) -> Option<usize>,
    warnings: &mut Vec<String>,
) -> Vec<[(usize, u64); 2]> {
    let paths = logs(directory);
    let bytes: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum();
    let every = bytes.div_ceil(MOST).max(1);
    // Both ends of a packet choose alike.
    let wanted = |name: &Name| (name.sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(every);
    let mut sent: HashMap<Name, (usize, u64)> = HashMap::new();
    let mut came: Vec<(Name, (usize, u64))> = Vec::new();
    for path in paths {
        let entries = match log::read(&path) {
            Ok(entries) => entries,
            Err(error) => {
                warnings.push(format!("{}: cannot read the clock log: {error}", path.display()));
                continue;
            }
        };
        let node = entries.iter().find_map(|entry| match entry {
            ClockLogEntry::Rank(rank) => node_of(*rank),
            _ => None,
        });
        let Some(node) = node else { continue };
        for entry in entries {
            match entry {
                ClockLogEntry::Sent(name, time) if wanted(&name) => drop(sent.insert(name, (node, time))),
                ClockLogEntry::Came(name, time) if wanted(&name) => came.push((name, (node, time))),
                _ => {}
            }
        }
    }
    let whole = came.into_iter().filter_map(|(name, came)| Some([*sent.get(&name)?, came]));
    let mut whole: Vec<_> = whole.filter(|[sent, came]| sent.0 != came.0).collect();
    whole.sort_unstable();
    whole
}

impl Plan {
    /// What the logs in `directory` say of the clocks of the nodes, beside the offsets that were `measured`. Nothing if there are none, or if processes have clocks of their own.
    pub(crate) fn followed(&self, directory: &Path, warnings: &mut Vec<String>) -> Followed {
        if self.apart() || self.nodes.len() < 2 || self.node(0) != Some(0) {
            return Followed::new();
        }
        let packets = packets(directory, |rank| self.node(rank), warnings);
        let messages = self.shown(&packets);
        if messages.len() < LEAST {
            return Followed::new();
        }
        let first = |node: usize| self.processes.keys().copied().find(|&rank| self.node(rank) == Some(node));
        let measured = |node: usize| first(node).filter(|_| node > 0).map_or_else(Vec::new, |rank| self.offsets(rank));
        let offsets = (0..self.nodes.len()).map(measured).collect();
        let jumps = JumpLimits::PACKETS;
        let options = Options { reference: Reference::Process(0), offsets, jumps, ..Options::default() };
        match estimate(&messages, &options) {
            Ok(found) => {
                let pauses = |node, jumps: &[ClockJump]| self.pauses(node, jumps);
                (1..self.nodes.len())
                    .map(|node| (node, offsets_of(node, &messages, &found, &options, pauses)))
                    .collect()
            }
            Err(error) => {
                warnings.push(format!("the clock logs of the agents are of no use: {}", error.message));
                Followed::new()
            }
        }
    }

    /// The packets by the clocks of the recording, those of the time in which something was recorded.
    fn shown(&self, packets: &[[(usize, u64); 2]]) -> Vec<ClockMessage> {
        let mut clocks: HashMap<usize, (Counter, ProcessClock)> = HashMap::new();
        for &rank in self.processes.keys() {
            if let Some(((node, counter), clock)) =
                self.node(rank).zip(self.counter(rank)).zip(self.process_clock(rank))
            {
                clocks.entry(node).or_insert((counter, clock));
            }
        }
        // Clocks are read in the order of time.
        let ends =
            packets.iter().enumerate().flat_map(|(index, ends)| [(ends[0], 2 * index), (ends[1], 2 * index + 1)]);
        let mut ends: Vec<((usize, u64), usize)> = ends.collect();
        ends.sort_unstable();
        let mut times: Vec<Option<i64>> = vec![None; ends.len()];
        for ((node, raw), place) in ends {
            let Some((counter, clock)) = clocks.get_mut(&node) else { continue };
            let Some(reading) = self.reading(node, raw) else { continue };
            if (self.base..=self.end).contains(&counter.nanoseconds(reading)) {
                times[place] = Some(clock.times(reading).1);
            }
        }
        let message = |(ends, times): (&[(usize, u64); 2], &[Option<i64>])| {
            let (from, to) = (ends[0].0 as u32, ends[1].0 as u32);
            Some(ClockMessage { from, to, sent: times[0]?, received: times[1]? })
        };
        packets.iter().zip(times.chunks_exact(2)).filter_map(message).collect()
    }
}

/// The estimated clock of a node where packets tell it: one offset for each window, beside those that were measured, and both sides of jumps: of the pauses of
/// the node's events in which they were, as far as `pauses` tells those.
fn offsets_of(
    node: usize,
    messages: &[ClockMessage],
    found: &Estimated,
    options: &Options,
    pauses: impl Fn(usize, &[ClockJump]) -> Vec<Option<(i64, i64)>>,
) -> Vec<ClockOffset> {
    let measured = options.offsets.get(node).map_or(&[][..], Vec::as_slice);
    let known = found.clocks.get(node).zip(found.summary.clocks.get(node));
    let Some((clock, deviation)) = known.and_then(|(clock, about)| Some((clock, about.uncertainty_seconds?))) else {
        return measured.to_vec();
    };
    let own = |message: &ClockMessage| match node as u32 {
        node if node == message.from => Some(message.sent),
        node if node == message.to => Some(message.received),
        _ => None,
    };
    let mut times: Vec<i64> = messages.iter().filter_map(own).filter(|&time| time > 0).collect();
    times.sort_unstable();
    times.dedup();
    if times.len() < LEAST {
        return measured.to_vec();
    }
    let own_offset = |time: i64| clock.map(Ticks(time)).0 - time;
    let master = found.clocks.first().filter(|_| found.summary.clocks.first().is_some_and(|one| !one.steps.is_empty()));
    // Offsets are those from the reference, also where that has jumped.
    let offset = |time: i64| match master {
        Some(master) => shown(|time| master.map(Ticks(time)).0, clock.map(Ticks(time)).0) - time,
        None => own_offset(time),
    };
    let window = ((found.summary.window_seconds * options.resolution as f64) as i64).max(1);
    let mut chosen: Vec<i64> = Vec::new();
    for part in times.chunk_by(|one, other| one.div_euclid(window) == other.div_euclid(window)) {
        chosen.extend(part.first().zip(part.last()).map(|(first, last)| first.midpoint(*last)));
    }
    let own_jumps = master.map(|_| jumps(&times, own_offset, window));
    let jumps = jumps(&times, offset, window);
    // Between the two packets the estimate has the jump anywhere.
    chosen.retain(|time| !jumps.iter().any(|jump| jump.between.0 < *time && *time < jump.between.1));
    chosen.extend(jumps.iter().flat_map(|jump| [jump.between.0, jump.between.1]));
    // Of a jump of the reference, events of this node know nothing.
    let of_node =
        |jump: &ClockJump| own_jumps.as_ref().is_none_or(|own| own.iter().any(|one| one.between == jump.between));
    let jumps: Vec<ClockJump> = (jumps.iter().enumerate())
        .filter(|(place, jump)| is_apart(&jumps, *place, window) && of_node(jump))
        .map(|(_, jump)| *jump)
        .collect();
    let places = if jumps.is_empty() || jumps.len() > MOST_JUMPS { Vec::new() } else { pauses(node, &jumps) };
    let placed = jumps.iter().zip(places).filter_map(|(jump, place)| Some((jump.between, place?)));
    let placed: Vec<((i64, i64), (i64, i64))> = placed.collect();
    // The pause may be beside the two packets.
    chosen.retain(|time| {
        !placed.iter().any(|((from, until), (begin, end))| time > from.min(begin) && time < until.max(end))
    });
    let sides: Vec<(i64, i64)> = placed
        .into_iter()
        .flat_map(|((from, until), (begin, end))| {
            [
                (begin, continued(from, from - window, begin, offset)),
                (end, continued(until, until + window, end, offset)),
            ]
        })
        .collect();
    let lonely = |time: &i64| measured.iter().all(|offset| offset.time.abs_diff(*time as u64) > window as u64 / 2);
    let deviation = deviation * options.resolution as f64;
    let together = |sides: Vec<(i64, i64)>| {
        let chosen = chosen.iter().map(|&time| (time, offset(time))).chain(sides).filter(|(time, _)| lonely(time));
        let made =
            chosen.map(|(time, offset)| ClockOffset { time: time as u64, offset, standard_deviation: deviation });
        let all = rising(measured, made.collect());
        LinearClock::new(&all).is_ok().then_some(all)
    };
    together(sides).or_else(|| together(Vec::new())).unwrap_or_else(|| measured.to_vec())
}

/// Whether a jump is not near others: where an estimate could not tell a jump from a change of drift, it is smeared over several.
fn is_apart(jumps: &[ClockJump], place: usize, window: i64) -> bool {
    let of = |place: Option<usize>| place.and_then(|place| jumps.get(place)).map(|jump| jump.between);
    let (before, own, after) = (of(place.checked_sub(1)), of(Some(place)), of(Some(place + 1)));
    own.is_some_and(|own| {
        before.is_none_or(|before| before.1 + window < own.0) && after.is_none_or(|after| own.1 + window < after.0)
    })
}

/// What a clock shows that is corrected to this time `at` its times: the first such time.
fn shown(at: impl Fn(i64) -> i64, corrected: i64) -> i64 {
    let mut reach = 1;
    while reach < MOST_APART && (at(corrected - reach) >= corrected || at(corrected + reach) < corrected) {
        reach *= 2;
    }
    let (mut from, mut until) = (corrected - reach, corrected + reach);
    while until - from > 1 {
        let middle = from.midpoint(until);
        if at(middle) < corrected { from = middle } else { until = middle }
    }
    until
}

/// Where the correction of a clock changes faster from packet to packet than any drift. An estimate that has a jump a little too early or too late may have packets within the time that a clock which
/// was set forward leaves out: changes from packet to packet within `short` are one jump.
fn jumps(times: &[i64], offset: impl Fn(i64) -> i64, short: i64) -> Vec<ClockJump> {
    let mut jumps: Vec<ClockJump> = Vec::new();
    for (from, until) in times.iter().copied().zip(times.iter().copied().skip(1)) {
        let rise = offset(until) - offset(from);
        if rise.abs() <= JUMP.1 || rise.abs() as f64 <= JUMP.0 * (until - from) as f64 {
            continue;
        }
        match jumps.last_mut() {
            Some(last)
                if from - last.between.1 <= BURST
                    && until - last.between.0 <= short
                    && last.rise.signum() == rise.signum() =>
            {
                *last = ClockJump { between: (last.between.0, until), rise: offset(until) - offset(last.between.0) };
            }
            _ => jumps.push(ClockJump { between: (from, until), rise }),
        }
    }
    jumps
}

/// Offsets that were measured, and of the others those with which time goes on between all of them: a single one that contradicts is no reason to do without the rest.
fn rising(measured: &[ClockOffset], made: Vec<ClockOffset>) -> Vec<ClockOffset> {
    let mut all: Vec<(ClockOffset, bool)> = measured.iter().map(|offset| (*offset, true)).collect();
    all.extend(made.into_iter().map(|offset| (offset, false)));
    all.sort_by_key(|(offset, was_measured)| (offset.time, !was_measured));
    let shown = |offset: &ClockOffset| i128::from(offset.time) + i128::from(offset.offset);
    let mut kept: Vec<(ClockOffset, bool)> = Vec::new();
    for (offset, was_measured) in all {
        let contradicts = |last: &(ClockOffset, bool)| last.0.time == offset.time || shown(&last.0) >= shown(&offset);
        while was_measured && kept.last().is_some_and(|last| !last.1 && contradicts(last)) {
            kept.pop();
        }
        if was_measured || !kept.last().is_some_and(contradicts) {
            kept.push((offset, was_measured));
        }
    }
    kept.into_iter().map(|(offset, _)| offset).collect()
}

/// An offset at `time`, as it goes on from that at `near`, by the drift between there and `far`, on the same side of a jump.
fn continued(near: i64, far: i64, time: i64, offset: impl Fn(i64) -> i64) -> i64 {
    let drift = (offset(near) - offset(far)) as f64 / (near - far) as f64;
    let drift = if drift.abs() < JUMP.0 { drift } else { 0.0 };
    offset(near) + ((time - near) as f64 * drift).round() as i64
}

#[cfg(test)]
#[path = "gossiped_tests.rs"]
mod tests;
