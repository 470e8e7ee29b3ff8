//! What happens around the worst violations: the regions of both locations during a short time, before and after.
//!
//! Each hosted location with an event of interest is scanned once more, and no further than needed.

use crate::details::CheckedStage;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use crate::report::{Lane, Picture, RegionBar, Stage};
use clc_engine::comm::{Transport, all_gather_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::clock_condition::Worst;
use clc_trace::{Correction, Error, Event, EventNumber, LocationId, RegionId, Result, Ticks};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What surrounds one violation.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    /// Region of the send and of the receive.
    pub regions: [Option<String>; 2],
    /// Before, and after.
    pub pictures: Vec<Picture>,
}

/// Regions narrower than this share of a picture are not drawn: the picture of a violation is 488 pixels wide, so they would be a pixel.
const NARROW: i64 = 400;

/// An event of interest at a location.
#[derive(Debug, Clone)]
struct PictureTarget {
    /// Which violation, and which side of it (0 sends).
    case: usize,
    side: usize,
    number: EventNumber,
    /// Begin and end of each picture.
    windows: Vec<(i64, i64)>,
}

/// What was found around a target, on its way to the other ranks.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PictureFindings {
    case: usize,
    side: usize,
    region: Option<String>,
    /// Bars of each picture, times in ticks.
    bars: Vec<Vec<Strip>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OpenRegion {
    region: RegionId,
    /// When it was entered, by picture.
    since: [i64; 2],
}

/// A bar before it is in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Strip {
    depth: u32,
    from: i64,
    to: i64,
    region: u32,
}

/// The surroundings of each of `worst` (the same on all ranks, as they were found under the times of `stage`); the same on all
/// ranks. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport. What cannot be found is left out.
pub(super) fn surroundings(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    stage: &CheckedStage<'_>,
    worst: &[Worst],
    corrections: Option<&[Correction]>,
) -> Result<Vec<Surroundings>> {
    let hosted = hosted(opened, loaded);
    let raw = stage.stage == Stage::Raw;
    let times = times_of_ends(transport, loaded, &hosted, worst, corrections)?;
    let pictures = if corrections.is_some() { 2 } else { 1 };
    let windows: Vec<Vec<(i64, i64)>> = times.iter().map(|times| windows(&times[..pictures])).collect();

    let mut targets: BTreeMap<LocationId, Vec<PictureTarget>> = BTreeMap::new();
    for (case, worst) in worst.iter().enumerate() {
        for (side, place) in ends(worst) {
            if hosted.contains_key(&place.location) && !windows[case].is_empty() {
                let windows = windows[case].clone();
                targets.entry(place.location).or_default().push(PictureTarget {
                    case,
                    side,
                    number: place.number,
                    windows,
                });
            }
        }
    }
    let targets: Vec<(LocationId, Vec<PictureTarget>)> = targets.into_iter().collect();
    let found = opened.workers.map(targets.len(), |at| {
        let (location, targets) = &targets[at];
        let (local, number) = hosted[location];
        let correction = corrections.map(|corrections| &corrections[local]);
        look(opened, loaded, (local, number), *location, correction, raw, targets)
    });
    let found: Vec<PictureFindings> = found.into_iter().flatten().collect();
    let found: Vec<PictureFindings> = all_gather_values(transport, &found)?.into_iter().flatten().collect();
    let resolution = opened.definitions.clock.resolution;
    let names: BTreeMap<u32, &str> =
        opened.definitions.regions.iter().map(|region| (region.id.0, region.name.as_str())).collect();
    let mut all: Vec<Surroundings> = Vec::new();
    for case in 0..worst.len() {
        let mut around = Surroundings::default();
        let found = || found.iter().filter(|found| found.case == case);
        for (picture, &(from, to)) in windows[case].iter().enumerate() {
            let seconds = |ticks: i64| Ticks(ticks - from).seconds(resolution);
            let lane = |side: usize| {
                let strips = found().find(|found| found.side == side);
                let strips = strips.map(|found| found.bars[picture].as_slice()).unwrap_or_default();
                let at_seconds = times[case][picture][side].map_or(0.0, seconds);
                Lane { at_seconds, bars: bars(strips, (from, to), &names, seconds) }
            };
            around.pictures.push(Picture {
                stage: if picture == 1 { Stage::Corrected } else { stage.stage },
                seconds: seconds(to),
                lanes: [lane(0), lane(1)],
            });
        }
        for found in found() {
            around.regions[found.side].clone_from(&found.region);
        }
        all.push(around);
    }
    Ok(all)
}

/// Times of both ends, before and after: by picture and side.
type TimesOfEnds = [[Option<i64>; 2]; 2];

/// Where both ends of each of `worst` are, before and after. Collective over the analysis ranks.
fn times_of_ends(
    transport: &mut dyn Transport,
    loaded: &LocalTrace,
    hosted: &BTreeMap<LocationId, (LocalTimeline, u32)>,
    worst: &[Worst],
    corrections: Option<&[Correction]>,
) -> Result<Vec<TimesOfEnds>> {
    let mut here: Vec<(usize, usize, i64)> = Vec::new();
    for (case, worst) in worst.iter().enumerate() {
        for (side, place) in ends(worst) {
            let Some(&(local, number)) = hosted.get(&place.location) else { continue };
            let Some(corrections) = corrections else { continue };
            let timeline = &loaded.program.timelines[local];
            let event = (0..timeline.len())
                .find(|&event| timeline.location(event) == number && timeline.number(event) == place.number);
            if let Some(event) = event {
                let at = timeline.position(event);
                here.push((case, side, corrections[local].map(at).0));
            }
        }
    }
    let mut times: Vec<TimesOfEnds> = vec![[[None; 2]; 2]; worst.len()];
    for (case, worst) in worst.iter().enumerate() {
        for (side, place) in ends(worst) {
            times[case][0][side] = Some(place.time);
        }
    }
    for (case, side, after) in all_gather_values(transport, &here)?.into_iter().flatten() {
        times[case][1][side] = Some(after);
    }
    Ok(times)
}

/// The bars of one side between two times; the outermost region has level 0.
fn bars(
    strips: &[Strip],
    (from, to): (i64, i64),
    names: &BTreeMap<u32, &str>,
    seconds: impl Fn(i64) -> f64,
) -> Vec<RegionBar> {
    let outermost = strips.iter().map(|strip| strip.depth).min().unwrap_or(0);
    let bar = |strip: &Strip| RegionBar {
        region: names.get(&strip.region).copied().unwrap_or_default().to_owned(),
        level: strip.depth - outermost,
        from_seconds: seconds(strip.from.max(from)),
        to_seconds: seconds(strip.to.min(to)),
    };
    strips.iter().map(bar).collect()
}

fn ends(worst: &Worst) -> impl Iterator<Item = (usize, &clc_engine::replay::clock_condition::EventPlace)> {
    worst.send.iter().map(|send| (0, send)).chain([(1, &worst.receive)])
}

/// Local timeline, and number in it, of every hosted location.
fn hosted(opened: &TraceHandle, loaded: &LocalTrace) -> BTreeMap<LocationId, (LocalTimeline, u32)> {
    let timelines = (0..).map(LocalTimeline).zip(&loaded.locations);
    timelines
        .flat_map(|(local, list)| list.iter().enumerate().map(move |(number, location)| (local, number, location)))
        .map(|(local, number, location)| (opened.definitions.locations[location.index].id, (local, number as u32)))
        .collect()
}

/// Begin and end of the pictures of one violation: both events and as much again on either side, equally long in all pictures.
/// None if an event is missing. Clocks that are centuries apart get what fits into the range of times.
fn windows(times: &[[Option<i64>; 2]]) -> Vec<(i64, i64)> {
    let known: Option<Vec<(i64, i64)>> =
        times.iter().map(|[a, b]| a.zip(*b).map(|(a, b)| (a.min(b), a.max(b)))).collect();
    let known = known.unwrap_or_default();
    let distance = known.iter().map(|(from, to)| to.saturating_sub(*from)).max().unwrap_or(0).max(8);
    known
        .into_iter()
        .map(|(from, to)| {
            let middle = from.midpoint(to);
            let from = middle.saturating_sub(distance.saturating_add(distance / 2)).max(0);
            (from, from.saturating_add(distance.saturating_mul(3)))
        })
        .collect()
}

/// The number of an event at a location (`number` of a local timeline) up to which all events are before all windows of all `targets`; those that
/// synchronise tell that.
fn before_all(
    loaded: &LocalTrace,
    (local, number): (LocalTimeline, u32),
    correction: Option<&Correction>,
    raw: bool,
    targets: &[PictureTarget],
) -> EventNumber {
    let timeline = &loaded.program.timelines[local];
    let mut first = [i64::MAX; 2];
    for target in targets {
        first.iter_mut().zip(&target.windows).for_each(|(first, (from, _))| *first = (*first).min(*from));
    }
    let (mut low, mut high) = (0, timeline.len());
    while low < high {
        let middle = low.midpoint(high);
        let at = timeline.position(middle);
        let before = if raw { timeline.recorded_time(middle).unwrap_or(i64::MAX) } else { at.time.0 };
        let after = correction.map_or(at.time, |correction| correction.map(at)).0;
        if before < first[0] && after < first[1] { low = middle + 1 } else { high = middle }
    }
    let own = (0..low).rev().find(|&event| timeline.location(event) == number);
    let early = own.map_or(EventNumber::START, |event| timeline.number(event));
    // Whatever the clocks of other locations show.
    targets.iter().map(|target| EventNumber(target.number.preceding())).fold(early, EventNumber::min)
}

/// Scans one location for what lies around `targets`.
fn look(
    opened: &TraceHandle,
    loaded: &LocalTrace,
    (local, number): (LocalTimeline, u32),
    location: LocationId,
    correction: Option<&Correction>,
    raw: bool,
    targets: &[PictureTarget],
) -> Vec<PictureFindings> {
    // The file has been read before: failures would have been noticed then.
    let Ok(definitions) = opened.archive.local_definitions(location) else { return Vec::new() };
    let clock = loaded.clock(local, number as usize);
    let identity = Correction::identity();
    let mut cursor = clock.corrected_by(correction.unwrap_or(&identity));
    // Nobody asks when exactly these were.
    let early = before_all(loaded, (local, number), correction, raw, targets);
    let mut stack: Vec<OpenRegion> = Vec::new();
    let mut kept: Vec<Vec<Vec<Strip>>> = targets.iter().map(|target| vec![Vec::new(); target.windows.len()]).collect();
    let mut at: Vec<Option<(u32, Option<RegionId>)>> = vec![None; targets.len()];
    let keep = |kept: &mut Vec<Vec<Vec<Strip>>>, open: OpenRegion, depth: usize, until: [i64; 2]| {
        for (target, kept) in targets.iter().zip(kept) {
            for (picture, &(from, to)) in target.windows.iter().enumerate() {
                let (begin, end) = (open.since[picture].max(from), until[picture].min(to));
                if end > begin && (end - begin).saturating_mul(NARROW) >= to - from {
                    kept[picture].push(Strip { depth: depth as u32, from: begin, to: end, region: open.region.0 });
                }
            }
        }
    };
    // Ends early with an error as soon as all is known.
    let _ = opened.archive.scan_with(location, &definitions, |event_number, local_time, event| {
        if event_number <= early {
            match event {
                Event::Enter(region) => stack.push(OpenRegion { region, since: [i64::MIN; 2] }),
                Event::Leave(_) => _ = stack.pop(),
                _ => {}
            }
            return Ok(());
        }
        let (before, after) = cursor.map(event_number, local_time);
        let now = [if raw { local_time as i64 } else { before }, after];
        let noted = |at: &mut Vec<Option<(u32, Option<RegionId>)>>, stack: &[OpenRegion]| {
            for (target, at) in targets.iter().zip(at) {
                if target.number == event_number {
                    *at = Some((stack.len() as u32, stack.last().map(|open| open.region)));
                }
            }
        };
        match event {
            Event::Enter(region) => {
                stack.push(OpenRegion { region, since: now });
                noted(&mut at, &stack);
            }
            Event::Leave(_) => {
                noted(&mut at, &stack);
                if let Some(open) = stack.pop() {
                    keep(&mut kept, open, stack.len() + 1, now);
                }
            }
            _ => noted(&mut at, &stack),
        }
        let beyond = |target: &PictureTarget| {
            event_number > target.number && target.windows.iter().zip(now).all(|(&(_, to), now)| now > to)
        };
        if targets.iter().all(beyond) { Err(Error::new("found")) } else { Ok(()) }
    });
    while let Some(open) = stack.pop() {
        keep(&mut kept, open, stack.len() + 1, [i64::MAX; 2]);
    }
    let name = |id: RegionId| opened.definitions.regions.iter().find(|region| region.id == id).map(|r| r.name.clone());
    let found = targets.iter().zip(kept).zip(at).map(|((target, bars), at)| {
        let (depth, region) = at.unwrap_or((0, None));
        let region = region.and_then(name).filter(|name| !name.is_empty());
        let bars = bars.into_iter().map(|strips| shorten(strips, depth)).collect();
        PictureFindings { case: target.case, side: target.side, region, bars }
    });
    found.collect()
}

/// The levels around the event, and the longest bars if there are many; outer ones first.
fn shorten(mut strips: Vec<Strip>, depth: u32) -> Vec<Strip> {
    strips.retain(|strip| strip.depth <= depth && strip.depth + Lane::LEVELS > depth);
    strips.sort_by_key(|strip| (std::cmp::Reverse(strip.to - strip.from), strip.depth, strip.from));
    strips.truncate(Lane::BARS);
    strips.sort_by_key(|strip| (strip.depth, strip.from));
    strips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_have_both_events_in_the_middle_third() {
        let pictures = windows(&[[Some(1000), Some(1100)], [Some(2000), Some(1990)]]);
        assert_eq!(pictures, [(900, 1200), (1845, 2145)]);
        assert!(windows(&[[Some(1), None]]).is_empty());
    }

    #[test]
    fn any_two_times_have_a_picture() {
        for ends in [[0, i64::MAX], [i64::MAX, 0], [i64::MAX - 1, i64::MAX], [0, i64::MAX / 2]] {
            for (from, to) in windows(&[ends.map(Some), [Some(5), Some(9)]]) {
                assert!(0 <= from && from < to, "{ends:?}: {from} to {to}");
            }
        }
    }
}
