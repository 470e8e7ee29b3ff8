//! Runs one scenario of the gossip protocol and prints its figures as a line of JSON.
//!
//!     cargo run --release -p clc-monitor --example simulate_gossip -- nodes=1024 groups=32 loss=1 sensors=1x104 kill=5
//!
//! `scripts/monitor_simulation` runs the series of docs/monitor.md with it.

use clc_monitor::gossip::{Choice, MILLISECOND, SECOND, Time};
use clc_monitor::simulation::{Fault, GossipScenario, Pauses};
use std::io::Write;

const USAGE: &str = "arguments, all optional (times in seconds):
    nodes=64 groups=8,...|none|sqrt known=yes|no (the number of nodes) directory=yes|no seed=1 seconds=10 settle=10
    interval=0.1 cleanup=1 consensus=0.1 gather=0.05 upper=3 probe=5 budget=320 choice=ring|random
    loss=PERCENT delay=MICROSECONDS jitter=MICROSECONDS
    sensors=PERIODxBYTES aggregates=PERIODxBYTES pauses=EVERYxLONGEST
    kill=HOW_MANY (single nodes, one every 10 s) killgroup=FIRST-LAST pause=FIRST-LASTxTIME cut=FIRST-LASTxTIME (2 s after settling)
    swim=PERIOD (a model of SWIM in the same network, in place of gossip: nodes, seed, seconds, loss, delay, jitter, pauses, kill)";

fn main() -> std::process::ExitCode {
    let started = std::time::Instant::now();
    let (swim, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("swim="));
    let swim_period = swim.first().and_then(|argument| time(argument.trim_start_matches("swim=")));
    let scenario = match scenario(arguments.into_iter()) {
        Ok(scenario) if swim.len() == usize::from(swim_period.is_some_and(|period| period > 0)) => scenario,
        Ok(_) => {
            let _ = writeln!(std::io::stderr(), "simulate_gossip: {swim:?}?\n{USAGE}");
            return std::process::ExitCode::from(2);
        }
        Err(argument) => {
            let _ = writeln!(std::io::stderr(), "simulate_gossip: {argument}?\n{USAGE}");
            return std::process::ExitCode::from(2);
        }
    };
    let outcome = match swim_period {
        Some(period) => clc_monitor::simulation::swim(&scenario, period),
        None => scenario.run(),
    };
    let times = |pick: fn(&clc_monitor::simulation::Detection) -> Option<Time>| {
        let times = outcome.detections.iter().map(|death| match pick(death) {
            Some(time) => format!("{:.3}", time as f64 / 1e9),
            None => "null".to_owned(),
        });
        times.collect::<Vec<_>>().join(",")
    };
    let line = format!(
        concat!(
            r#"{{"nodes":{},"groups":{:?},"seconds":{},"first":[{}],"group":[{}],"all":[{}],"false_deaths":{},"#,
            r#""false_suspicions":{},"wrong_at_end":{},"incomplete_at_end":{},"bits":{:.0},"most_bits":{:.0},"packets":{:.2},"#,
            r#""data_age":{:.3},"round_trips":{},"delivered":{},"refused":{},"wall":{:.1}}}"#
        ),
        scenario.nodes,
        scenario.config.group_sizes,
        scenario.duration / SECOND,
        times(|death| death.first),
        times(|death| death.group),
        times(|death| death.all),
        outcome.false_deaths,
        outcome.false_suspicions,
        outcome.wrong_at_end,
        outcome.incomplete_at_end,
        outcome.bits_per_second,
        outcome.most_bits_per_second,
        outcome.packets_per_second,
        outcome.data_age,
        outcome.round_trips,
        outcome.delivered,
        outcome.refused,
        started.elapsed().as_secs_f64(),
    );
    let _ = writeln!(std::io::stdout(), "{line}");
    std::process::ExitCode::SUCCESS
}

fn scenario(arguments: impl Iterator<Item = String>) -> Result<GossipScenario, String> {
    let pairs: Vec<(String, String)> = arguments
        .map(|argument| argument.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).ok_or(argument))
        .collect::<Result<_, _>>()?;
    let nodes = pairs.iter().find(|(name, _)| name == "nodes").map_or(Some(64), |(_, value)| value.parse().ok());
    let mut scenario = GossipScenario::new(nodes.ok_or("nodes")?);
    for (name, value) in &pairs {
        set(&mut scenario, name, value).ok_or_else(|| format!("{name}={value}"))?;
    }
    match scenario.config.check() {
        Ok(()) => Ok(scenario),
        Err(error) => Err(error.to_string()),
    }
}

fn time(text: &str) -> Option<Time> {
    text.parse::<f64>().ok().filter(|seconds| (0.0..1e6).contains(seconds)).map(|seconds| (seconds * 1e9) as Time)
}

fn range(text: &str, nodes: u32) -> Option<std::ops::Range<u32>> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < nodes).then_some(first..last + 1)
}

fn set(scenario: &mut GossipScenario, name: &str, value: &str) -> Option<()> {
    let nodes = scenario.nodes;
    let pair = || value.split_once('x');
    let config = &mut scenario.config;
    match name {
        "nodes" => {}
        "groups" if value == "none" => config.group_sizes.clear(),
        "groups" if value == "sqrt" => *config = config.clone().layered(nodes),
        "known" => config.nodes = if value == "yes" { nodes } else { 0 },
        "groups" => config.group_sizes = value.split(',').map(|size| size.parse().ok()).collect::<Option<_>>()?,
        "directory" => config.directory = value == "yes",
        "seed" => scenario.seed = value.parse().ok()?,
        "seconds" => scenario.duration = time(value)?,
        "settle" => scenario.settle = time(value)?,
        "interval" => config.interval = time(value)?,
        "cleanup" => config.cleanup = time(value)?,
        "consensus" => config.consensus = time(value)?,
        "gather" => config.gather = time(value)?,
        "upper" => config.upper_every = value.parse().ok()?,
        "probe" => config.probe_every = value.parse().ok()?,
        "budget" => config.budget = value.parse().ok()?,
        "choice" => config.choice = if value == "random" { Choice::Random } else { Choice::BinaryRoundRobin },
        "loss" => scenario.loss = (value.parse::<f64>().ok()? * 10_000.0) as u32,
        "delay" => scenario.delay = value.parse::<Time>().ok()?.checked_mul(1_000)?,
        "jitter" => scenario.jitter = value.parse::<Time>().ok()?.checked_mul(1_000)?,
        "sensors" => scenario.sensors = Some((time(pair()?.0)?.max(MILLISECOND), pair()?.1.parse().ok()?)),
        "aggregates" => scenario.aggregates = Some((time(pair()?.0)?.max(MILLISECOND), pair()?.1.parse().ok()?)),
        "pauses" => scenario.pauses = Some(Pauses { every: time(pair()?.0)?, longest: time(pair()?.1)? }),
        "kill" => {
            let count: u32 = value.parse().ok()?;
            for place in 0..count {
                let node = (u64::from(place) * 2 + 1) * u64::from(nodes) / (2 * u64::from(count));
                let at = SECOND * u64::from(place) * 10 + 37 * MILLISECOND * u64::from(place % 29);
                scenario.faults.push((SECOND + at, Fault::Kill(node as u32..node as u32 + 1)));
            }
        }
        "killgroup" => scenario.faults.push((2 * SECOND, Fault::Kill(range(value, nodes)?))),
        "pause" => scenario.faults.push((2 * SECOND, Fault::Pause(range(pair()?.0, nodes)?, time(pair()?.1)?))),
        "cut" => scenario.faults.push((2 * SECOND, Fault::Cut(range(pair()?.0, nodes)?, time(pair()?.1)?))),
        _ => return None,
    }
    Some(())
}
