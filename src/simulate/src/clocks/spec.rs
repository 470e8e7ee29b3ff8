//! Clock specifications: what a user writes, and the clocks that it stands for.
//!
//! ```text
//! specification = group { ";" group }
//! group         = [ nodes ":" ] [ item { "," item } ]
//! nodes         = "all" | range { "+" range }          range = NODE [ "-" NODE ]
//! item          = preset | KEY "=" VALUE
//! ```
//!
//! A group without nodes holds for all nodes but node 0, the reference, whose clock is then the true time.

use super::SimulatedClock;
use super::parts::ErrorPart;
use super::presets::PRESETS;
use crate::random::Random;
use crate::units::{SECOND, Span, parse_duration, parse_frequency, parse_span};
use clc_trace::format::duration;
use clc_trace::{Error, Result};
use std::str::FromStr;

/// Domain of the random streams of clocks.
const CLOCKS: u64 = 1;
/// Shortest step or period, in picoseconds: bounds the work per simulated second.
const SHORTEST: i64 = 1_000_000;

/// One part of a clock error, with its parameters. Times in picoseconds, frequencies as plain numbers (1 ppm is 1e-6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PartSpec {
    /// `offset=BOUND`: constant, uniform within plus and minus the bound.
    Offset(i64),
    /// `drift=BOUND[@TIME]`: constant frequency deviation, uniform within plus and minus the bound, from a time on.
    Drift(f64, Span),
    /// `sine=AMPLITUDE/PERIOD`: sinusoidal error with random phase.
    Sine(i64, Span),
    /// `walk=SIGMA[/STEP]`: the frequency walks at random, sigma per square root of a second, in steps (default 1 ms).
    Walk(f64, Span),
    /// `noise=SIGMA[/STEP]`: the frequency is Gaussian with sigma and drawn anew for every step (default 1 ms).
    Noise(f64, Span),
    /// `generator=STEP/DEVIATION`: each step of the generator is wrong by a Gaussian error, cut at twice its deviation.
    Generator(Span, i64),
    /// `ntp=SIGMA/INTERVAL[/RATE]`: every interval, the clock slews at the rate (default 500 ppm) to a Gaussian error.
    Ntp(i64, Span, f64),
    /// `jump=SIZE[@TIME]`: a step, forward or backward at random; without a time, at 10 % to 90 % of the run.
    Jump(i64, Option<Span>),
    /// `stuck=LENGTH[@TIME]`: stands still, then goes at double speed until it has caught up.
    Stuck(i64, Option<Span>),
    /// `resolution=STEP`: readings are rounded down to multiples.
    Resolution(i64),
}

/// The keys, as error messages list them.
const KEYS: &str = "offset=TIME, drift=PPM[@TIME], sine=TIME/PERIOD, walk=PPM[/STEP], noise=PPM[/STEP], \
                    generator=STEP/TIME, ntp=TIME/INTERVAL[/PPM], jump=TIME[@TIME], stuck=TIME[@TIME], resolution=TIME";

#[derive(Debug, Clone, PartialEq)]
enum Nodes {
    AllButReference,
    All,
    Ranges(Vec<(u32, u32)>),
}

impl Nodes {
    fn contains(&self, node: u32) -> bool {
        match self {
            Nodes::AllButReference => node > 0,
            Nodes::All => true,
            Nodes::Ranges(ranges) => ranges.iter().any(|&(from, to)| (from..=to).contains(&node)),
        }
    }
}

/// The clocks of all nodes, as parsed from text such as `offset=5ms,drift=20ppm,sine=20us/0.5s` or `walk`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClockSpec {
    parts: Vec<(Nodes, PartSpec)>,
}

impl ClockSpec {
    /// The clock of node `node` for a run of about `run` picoseconds.
    pub fn clock(&self, node: u32, seed: u64, run: i64) -> SimulatedClock {
        let mut parts = Vec::new();
        let mut quantum = 1;
        for (i, (nodes, part)) in self.parts.iter().enumerate() {
            if !nodes.contains(node) {
                continue;
            }
            let mut random = Random::new(seed, &[CLOCKS, u64::from(node), i as u64]);
            let span = |span: Span| span.of(run).max(SHORTEST);
            parts.push(match *part {
                PartSpec::Offset(bound) => ErrorPart::offset((random.symmetric() * bound as f64) as i64),
                PartSpec::Drift(bound, from) => ErrorPart::drift(random.symmetric() * bound, from.of(run)),
                PartSpec::Sine(amplitude, period) => ErrorPart::sine(amplitude, span(period), random.unit()),
                PartSpec::Walk(sigma, step) => ErrorPart::walk(sigma, span(step), random),
                PartSpec::Noise(sigma, step) => ErrorPart::noise(sigma, span(step), random),
                PartSpec::Generator(step, deviation) => ErrorPart::generator(span(step), deviation, random),
                PartSpec::Ntp(sigma, interval, rate) => ErrorPart::ntp(sigma, span(interval), rate, random),
                PartSpec::Jump(size, at) => {
                    let size = if random.next() & 1 == 0 { size } else { -size };
                    ErrorPart::jump(size, moment(at, run, &mut random))
                }
                PartSpec::Stuck(length, at) => ErrorPart::stuck(length, moment(at, run, &mut random)),
                PartSpec::Resolution(step) => {
                    quantum = quantum.max(step);
                    continue;
                }
            });
        }
        SimulatedClock::new(parts, quantum)
    }

    /// What never happens in a run that ends after `run` picoseconds, as sentences for a warning.
    pub fn after_the_end(&self, run: i64) -> Vec<String> {
        let late = self.parts.iter().filter_map(|(_, part)| {
            let (what, at) = match *part {
                PartSpec::Drift(_, from) => ("drift", from),
                PartSpec::Jump(_, at) => ("jump", at?),
                PartSpec::Stuck(_, at) => ("standstill", at?),
                _ => return None,
            };
            let (at, run) = (at.of(run), run.max(0));
            let seconds = |time: i64| duration(time as f64 / SECOND as f64);
            (at > run)
                .then(|| format!("the {what} at {} comes too late: the run ends at {}", seconds(at), seconds(run)))
        });
        late.collect()
    }
}

/// When something happens that has no given time: between 10 % and 90 % of the run.
fn moment(at: Option<Span>, run: i64, random: &mut Random) -> i64 {
    at.unwrap_or(Span::Share(0.1 + 0.8 * random.unit())).of(run)
}

impl FromStr for ClockSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut spec = ClockSpec::default();
        add(&mut spec, text, 0).map_err(|e| Error { message: format!("clock '{text}': {}", e.message), ..e })?;
        Ok(spec)
    }
}

/// Adds the groups of `text`. `depth` bounds presets within presets.
fn add(spec: &mut ClockSpec, text: &str, depth: u32) -> Result<()> {
    for group in text.split(';') {
        for item in group.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            // The nodes of a group stand before its first item; an item may also name its own.
            let group_nodes = group.split(',').next().and_then(|first| first.split_once(':')).map(|(nodes, _)| nodes);
            let (nodes, item) = match item.split_once(':') {
                Some((nodes, item)) => (Some(nodes), item),
                None => (group_nodes, item),
            };
            let item = item.trim();
            match item.split_once('=') {
                Some((key, value)) => spec.parts.push((parse_nodes(nodes)?, parse_part(key.trim(), value.trim())?)),
                None if item.is_empty() => {}
                None => add_preset(spec, nodes, item, depth)?,
            }
        }
    }
    Ok(())
}

fn add_preset(spec: &mut ClockSpec, nodes: Option<&str>, name: &str, depth: u32) -> Result<()> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name).filter(|_| depth < 4) else {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        return Err(Error::new(format!("unknown clock model '{name}'"))
            .hint(format!("presets: {}; parts: {KEYS}", names.join(", "))));
    };
    let first = spec.parts.len();
    add(spec, preset.text, depth + 1)?;
    if nodes.is_some() {
        let nodes = parse_nodes(nodes)?;
        for part in spec.parts.iter_mut().skip(first).filter(|part| part.0 == Nodes::AllButReference) {
            part.0 = nodes.clone();
        }
    }
    Ok(())
}

fn parse_nodes(text: Option<&str>) -> Result<Nodes> {
    let Some(text) = text.map(str::trim) else { return Ok(Nodes::AllButReference) };
    if text == "all" {
        return Ok(Nodes::All);
    }
    let wrong = || Error::new(format!("'{text}' is not a set of nodes")).hint("e.g. all, 3, 1-3 or 1+4-7");
    let mut ranges = Vec::new();
    for range in text.split('+') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.trim().parse().map_err(|_| wrong())?, to.trim().parse().map_err(|_| wrong())?);
        ranges.push((from, to));
    }
    Ok(Nodes::Ranges(ranges))
}

fn parse_part(key: &str, value: &str) -> Result<PartSpec> {
    let at_start = Span::Time(0);
    let millisecond = Span::Time(1_000_000_000);
    let (value, at) = match value.split_once('@') {
        Some((value, at)) if matches!(key, "drift" | "jump" | "stuck") => (value, Some(parse_span(at)?)),
        _ => (value, None),
    };
    let mut fields = value.split('/');
    let first = fields.next().unwrap_or_default();
    let (second, third) = (fields.next(), fields.next());
    let allowed = match key {
        "sine" | "walk" | "noise" | "generator" => 2,
        "ntp" => 3,
        _ => 1,
    };
    if value.split('/').count() > allowed {
        return Err(Error::new(format!("'{key}={value}' has too many parameters")).hint(KEYS));
    }
    let needed = |what: &str| {
        second.ok_or_else(|| Error::new(format!("'{key}={value}' lacks its {what}")).hint(KEYS)).and_then(step)
    };
    Ok(match key {
        "offset" => PartSpec::Offset(parse_duration(first)?),
        "drift" => PartSpec::Drift(frequency(first)?, at.unwrap_or(at_start)),
        "sine" => PartSpec::Sine(parse_duration(first)?, needed("period")?),
        "walk" => PartSpec::Walk(frequency(first)?, second.map(step).transpose()?.unwrap_or(millisecond)),
        "noise" => PartSpec::Noise(frequency(first)?, second.map(step).transpose()?.unwrap_or(millisecond)),
        "generator" => {
            let deviation =
                second.ok_or_else(|| Error::new(format!("'{key}={value}' lacks its deviation")).hint(KEYS))?;
            PartSpec::Generator(step(first)?, parse_duration(deviation)?)
        }
        "ntp" => {
            let rate = third.map(frequency).transpose()?.unwrap_or(500e-6);
            if rate <= 0.0 {
                return Err(Error::new("the slewing rate of 'ntp' must be above 0").hint("e.g. 500ppm"));
            }
            PartSpec::Ntp(parse_duration(first)?, needed("interval")?, rate)
        }
        "jump" => PartSpec::Jump(parse_duration(first)?, at),
        "stuck" => PartSpec::Stuck(parse_duration(first)?, at),
        "resolution" => match parse_duration(first)? {
            0 => return Err(Error::new("the clock resolution must be above 0").hint("e.g. 1us")),
            step => PartSpec::Resolution(step),
        },
        _ => return Err(Error::new(format!("unknown part '{key}' of a clock model")).hint(KEYS)),
    })
}

/// A frequency that must not be negative: the sign is drawn per node.
fn frequency(text: &str) -> Result<f64> {
    let frequency = parse_frequency(text)?;
    if frequency < 0.0 {
        return Err(Error::new(format!("'{text}' is negative")).hint("signs are chosen at random for each node"));
    }
    Ok(frequency)
}

/// A step or period: at least a microsecond.
fn step(text: &str) -> Result<Span> {
    match parse_span(text)? {
        Span::Time(time) if time < SHORTEST => {
            Err(Error::new(format!("'{text}' is too short for a step or period")).hint("at least 1us"))
        }
        span => Ok(span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_compose() -> Result<()> {
        let spec: ClockSpec = "offset=5ms, drift=20ppm@10%;1+3-4:jump=1ms@50%;all:resolution=1us".parse()?;
        assert_eq!(spec.parts.len(), 4);
        assert_eq!(spec.parts[0], (Nodes::AllButReference, PartSpec::Offset(5_000_000_000)));
        assert_eq!(spec.parts[1].1, PartSpec::Drift(2e-5, Span::Share(0.1)));
        assert_eq!(spec.parts[2].0, Nodes::Ranges(vec![(1, 1), (3, 4)]));
        assert_eq!(spec.parts[3].0, Nodes::All);
        assert_eq!("linear".parse::<ClockSpec>()?, "offset=5ms,drift=20ppm".parse()?);
        assert_eq!("2:linear".parse::<ClockSpec>()?, "2:offset=5ms,drift=20ppm".parse()?);
        assert_eq!("".parse::<ClockSpec>()?, "perfect".parse()?);
        Ok(())
    }

    #[test]
    fn every_preset_is_valid() {
        for preset in PRESETS {
            assert!(preset.name.parse::<ClockSpec>().is_ok(), "{}", preset.name);
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [
            ("bogus", "presets: perfect, offset"),
            ("bogus=1", "offset=TIME"),
            ("offset=-5ms", "negative"),
            ("offset=5", "unit"),
            ("sine=20us", "lacks its period"),
            ("sine=20us/1ns", "at least 1us"),
            ("generator=1ms", "lacks its deviation"),
            ("generator=1ns/1ns", "at least 1us"),
            ("ntp=1us/1s/0ppm", "above 0"),
            ("x:offset=1us", "not a set of nodes"),
            ("drift=20us", "ppm"),
            ("offset=1us/2us", "too many"),
            ("resolution=0us", "above 0"),
        ] {
            let message = text.parse::<ClockSpec>().map_err(|e| e.to_string());
            assert!(message.as_ref().is_err_and(|m| m.contains(part)), "{text}: {message:?}");
        }
    }
}
