//! The common time, event by event:
//!
//! ```text
//! F      the forward replay with its backward amortisation
//! -B     the same on the negated times, from the last event to the first, with sends and receives exchanged
//! M      floor((F + B) / 2)
//! m_k    floor of the mean (or the median), over the processes of a component, of t_k - C_p(t_k) at t_k = first + k 2^n;
//!        C_p is linear (floor) between the events that communicate (those of implied orders, too), from (M_i, C_i) to (M_j, C_j), and M - C is constant outside
//! m_k    not above m_(k-1) + 2^n / 2
//! T      M - m_k - floor((m_(k+1) - m_k) (M - t_k) / 2^n)
//! ```
//!
//! Where that moves an event that communicates by more than two thirds of the allowed error times D0, smaller gammas are tried, and the first one is taken that does not, and moves them by no more
//! than two thirds of what the largest gamma does.
//!
//! If the earliest moment comes before 0 by that, all times are later by as much. If a latency or a distance is too short then, a forward replay
//! of T with gamma = 1/2 follows, which keeps the distances min(delta, C_j - C_i).
//!
//! An imaginary event at the earliest time, alone on its location, begins every timeline: it shows where that moment goes.

use super::backward::backward;
use super::forward::{Control, Forward, ONE, lamport_advance, replay};
use super::matching::{Dependency, Kind, Matching};
use super::model::{EventRef, PerEvent, Trace};

/// What decides how far the passes go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes {
    pub most: u32,
    /// Numerator over 2^40.
    pub max_error: i64,
}

/// The constants of a correction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constants {
    pub control: Control,
    pub slope: i64,
    pub passes: Passes,
    pub median: bool,
}

/// The corrected times of all events and the decay that was taken. The trace does not contradict itself.
pub(crate) fn common(trace: &Trace, matching: &Matching, constants: Constants) -> (PerEvent, i64) {
    let dependencies = &matching.dependencies;
    let plain = trace.times();
    let least = lamport_advance(&plain, dependencies).unwrap();
    if least == 0 {
        return (plain, constants.control.decay);
    }
    // With the imaginary event.
    let earliest = plain.iter().flatten().copied().min().unwrap();
    let times: PerEvent = plain.iter().map(|times| [&[earliest], &times[..]].concat()).collect();
    let locations: Vec<Vec<usize>> = trace
        .timelines()
        .iter()
        .map(|timeline| std::iter::once(usize::MAX).chain(timeline.iter().map(|entry| entry.location)).collect())
        .collect();
    let shift = |event: EventRef| EventRef { index: event.index + 1, ..event };
    let dependencies: Vec<Dependency> =
        dependencies.iter().map(|d| Dependency { send: shift(d.send), receive: shift(d.receive), ..*d }).collect();

    let reversed =
        |lists: &PerEvent| -> PerEvent { lists.iter().map(|list| list.iter().rev().map(|t| -t).collect()).collect() };
    let mirrored_times = reversed(&times);
    let mirrored_locations: Vec<Vec<usize>> =
        locations.iter().map(|list| list.iter().rev().copied().collect()).collect();
    let turned = |event: EventRef| EventRef { index: times[event.process].len() - 1 - event.index, ..event };
    let mirrored_dependencies: Vec<Dependency> =
        dependencies.iter().map(|d| Dependency { send: turned(d.receive), receive: turned(d.send), ..*d }).collect();

    // The passes.
    let violations =
        dependencies.iter().map(|d| (by_whom(d), time(&times, d.send) + d.latency - time(&times, d.receive)));
    let mut worst = std::collections::BTreeMap::new();
    for (receive, early) in violations.filter(|(_, early)| *early > 0) {
        let worst: &mut i64 = worst.entry(receive).or_insert(0);
        *worst = early.max(*worst);
    }
    let total: i64 = worst.values().sum();
    let messages = dependencies.iter().filter(|d| is_channel(d));
    let told = messages.map(|d| (d.send.process, d.receive.process)).chain(matching.tells.iter().copied());
    let mutual = reachable(times.len(), told);
    let one_way: i64 = dependencies
        .iter()
        .filter(|d| is_channel(d) && !mutual[d.receive.process][d.send.process])
        .map(|d| (time(&times, d.send) + d.latency - time(&times, d.receive)).max(0))
        .sum();
    let enough = |forward: &Forward| {
        let jumps: i64 = forward.jumps.iter().flatten().sum();
        (i128::from(jumps) << 40) <= i128::from(constants.passes.max_error) * i128::from(total)
    };
    // Passes from one decay on: how many, the last one's decay and the times of its two replays.
    let passes = |decay: i64, most: u32| {
        let (mut decay, mut pass) = (decay.max(if 4 * one_way > total { ONE / 10_000 } else { 0 }), 1);
        loop {
            let control = Control { decay, ..constants.control };
            let forward = replay(&times, &times, &locations, &dependencies, control).unwrap();
            let back =
                replay(&mirrored_times, &mirrored_times, &mirrored_locations, &mirrored_dependencies, control).unwrap();
            if (enough(&forward) && enough(&back)) || pass >= most || decay >= ONE / 2 {
                return (pass, decay, forward, back);
            }
            decay = after(decay);
            pass += 1;
        }
    };
    let middle = |forward: &Forward, back: &Forward| -> PerEvent {
        let mut middle = backward(&times, &dependencies, forward, constants.slope).corrected;
        let back = backward(&mirrored_times, &mirrored_dependencies, back, constants.slope).corrected;
        for (middle, back) in middle.iter_mut().zip(reversed(&back)) {
            middle.iter_mut().zip(back).for_each(|(time, back)| *time = (*time + back).div_euclid(2));
        }
        middle
    };

    // The events that communicate, per process.
    let mut visited: Vec<Vec<usize>> = vec![Vec::new(); times.len()];
    let ordered = matching.messages.iter().chain(&matching.implied).chain(&matching.orders);
    let messages = ordered.clone().filter(|(send, receive)| send.process != receive.process);
    let events = messages.flat_map(|&(send, receive)| [send, receive]).chain(matching.calls.iter().copied());
    events.map(shift).for_each(|event| visited[event.process].push(event.index));
    visited.iter_mut().for_each(|events| {
        events.sort_unstable();
        events.dedup();
    });
    let all = || visited.iter().enumerate().flat_map(|(p, events)| events.iter().map(move |&event| (p, event)));
    let mut set: Vec<usize> = (0..times.len()).collect();
    let pairs = ordered.map(|(send, receive)| vec![send.process, receive.process]);
    for group in pairs.chain(matching.groups.iter().cloned()) {
        let least = group.iter().map(|&p| set[p]).min().unwrap();
        let joined: Vec<usize> = group.iter().map(|&p| set[p]).collect();
        set.iter_mut().filter(|name| joined.contains(name)).for_each(|name| *name = least);
    }
    let members = |name: usize| -> Vec<usize> { (0..set.len()).filter(|&p| set[p] == name).collect() };
    let components: Vec<Vec<usize>> = (0..set.len()).map(members).filter(|members| members.len() > 1).collect();

    // Without the common motion; and by how much events that communicate are moved at most, but for a shift of all.
    let without_motion = |middle: &PerEvent| -> (PerEvent, i64) {
        let (first, last) =
            (all().map(|(p, j)| middle[p][j]).min().unwrap(), all().map(|(p, j)| middle[p][j]).max().unwrap());
        let most_events = visited.iter().map(Vec::len).max().unwrap();

        let most = (65_536 / components.len()).clamp(2, most_events.max(2)) as i64;
        let length = (last - first).max(1);
        let width = (length / most + 1).max(least).max(2);
        let mut bits = 0;
        while 1_i64 << bits < width {
            bits += 1;
        }
        let width = 1_i64 << bits;
        let ends: Vec<i64> = (0..length / width + 2).map(|k| first + k * width).collect();
        let mut moved = middle.clone();
        for members in &components {
            let mut advances: Vec<i64> = Vec::new();
            for &end in &ends {
                let mut list: Vec<i64> =
                    members.iter().map(|&p| end - shown(&visited[p], &middle[p], &times[p], end)).collect();
                list.sort_unstable();
                let half = list.len() / 2;
                let centre = match constants.median {
                    false => list.iter().sum::<i64>().div_euclid(list.len() as i64),
                    true if list.len() % 2 == 1 => list[half],
                    true => (list[half - 1] + list[half]).div_euclid(2),
                };
                advances.push(advances.last().map_or(centre, |before| centre.min(before + width / 2)));
            }
            let h = |time: i64| {
                let k = (time - first).div_euclid(width);
                let advance = match usize::try_from(k) {
                    Err(_) => advances[0],
                    Ok(k) if k + 1 >= advances.len() => advances[advances.len() - 1],
                    Ok(k) => {
                        let rise = i128::from(advances[k + 1] - advances[k]);
                        let along = i128::from(time - ends[k]);
                        advances[k] + (rise * along).div_euclid(i128::from(width)) as i64
                    }
                };
                time - advance
            };
            members.iter().for_each(|&p| moved[p].iter_mut().for_each(|time| *time = h(*time)));
        }
        let start = moved.iter().map(|times| times[0]).min().unwrap().min(0);
        let displacement = all().map(|(p, j)| (moved[p][j] - times[p][j]).abs()).max().unwrap();
        moved.iter_mut().flatten().for_each(|time| *time -= start);
        (moved, displacement)
    };
    let attempt = |decay: i64, most: u32| {
        let (made, decay, forward, back) = passes(decay, most);
        let (moved, displacement) = without_motion(&middle(&forward, &back));
        (made, decay, moved, displacement)
    };
    let (mut made, mut decay, mut moved, first) = attempt(constants.control.decay, constants.passes.most);
    let near = |displacement: i64| {
        i128::from(3 * displacement) << 40 <= i128::from(constants.passes.max_error) * i128::from(2 * least)
    };
    if !near(first) {
        // Smaller ones, for what they are worth.
        let mut last = decay;
        while made < constants.passes.most && last < ONE / 2 {
            let (more, found, times, displacement) = attempt(after(last), constants.passes.most - made);
            (made, last) = (made + more, found);
            if near(displacement) && 3 * displacement <= 2 * first {
                (decay, moved) = (found, times);
                break;
            }
        }
    }

    let mut lacking = dependencies.iter().any(|d| time(&moved, d.receive) < time(&moved, d.send) + d.latency);
    for p in 0..times.len() {
        let mut last: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
        for j in 0..times[p].len() {
            if let Some(i) = last.insert(locations[p][j], j) {
                lacking |= moved[p][j] - moved[p][i] < constants.control.delta.min(times[p][j] - times[p][i]);
            }
        }
    }
    if lacking {
        let control = Control { decay: ONE / 2, ..constants.control };
        moved = replay(&moved, &times, &locations, &dependencies, control).unwrap().clock;
    }
    (moved.into_iter().map(|times| times[1..].to_vec()).collect(), decay)
}

/// The decay of the pass after one.
fn after(decay: i64) -> i64 {
    if decay == 0 { ONE / 100_000 } else { (decay * 10).min(ONE / 2) }
}

/// Whether a pair is of two processes only.
fn is_channel(dependency: &Dependency) -> bool {
    matches!(dependency.kind, Kind::PointToPoint | Kind::Acknowledge | Kind::Group)
}

/// Violations of a receive count once, but those of the end of an epoch for each process that it waits for.
fn by_whom(dependency: &Dependency) -> (EventRef, usize) {
    let group = dependency.kind == Kind::Group;
    (dependency.receive, if group { dependency.send.process + 1 } else { 0 })
}

fn time(times: &PerEvent, event: EventRef) -> i64 {
    times[event.process][event.index]
}

/// What the clock of a process shows at the corrected moment `end`.
fn shown(visited: &[usize], corrected: &[i64], clock: &[i64], end: i64) -> i64 {
    let before = visited.iter().rev().find(|&&j| corrected[j] <= end);
    let after = visited.iter().find(|&&j| corrected[j] > end);
    match (before, after) {
        (Some(&i), Some(&j)) => {
            let part = i128::from(clock[j] - clock[i]) * i128::from(end - corrected[i]);
            clock[i] + part.div_euclid(i128::from(corrected[j] - corrected[i])) as i64
        }
        (Some(&i), None) => clock[i] + (end - corrected[i]),
        (None, Some(&j)) => clock[j] + (end - corrected[j]),
        (None, None) => end,
    }
}

/// Who reaches whom by telling something.
fn reachable(processes: usize, told: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; processes]; processes];
    (0..processes).for_each(|p| reach[p][p] = true);
    told.for_each(|(from, to)| reach[from][to] = true);
    for k in 0..processes {
        for i in 0..processes {
            for j in 0..processes {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
        }
    }
    reach
}
