//! `clc-replay perturb TRACE DIR`: a real trace with known clock errors.

use crate::accuracy::perturb::{Disturb, assign_nodes, describe, disturb_locations, length, load_true_times, publish};
use crate::cli::PerturbOptions;
use crate::commands::Outcome;
use crate::pipeline::timing::Stopwatch;
use crate::report::Generated;
use crate::session::{OutputRequest, Session};
use clc_engine::comm::Transport;
use clc_simulate::{ClockSpec, OffsetMeter};
use clc_trace::format::os_text;
use clc_trace::progress::Progress;
use clc_trace::{Result, Ticks};

/// Network of the offset measurements, in bytes per second: they are so short that it does not matter.
const BANDWIDTH: u64 = 10_000_000_000;

/// Disturbs the clocks of a trace and keeps its times as the truth. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read, changes meanwhile, or has violations itself; impossible parameters; the output exists or cannot be written.
pub fn perturb(
    transport: &mut dyn Transport,
    options: &PerturbOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut watch = Stopwatch::start();
    let mut session = Session::open(transport, &options.trace, None, progress)?;
    let (clocks, resolution) = (&options.clocks, session.resolution());
    let clock: ClockSpec = clocks.clock.parse()?;
    let latency = options.network.model(BANDWIDTH);
    latency.validate()?;
    clocks.plan().validate()?;
    let (with_truth, force) = (!options.generated.no_truth, options.generated.force);
    let prepared =
        session.prepare(OutputRequest { path: &options.output, force, events: None, with_truth, corrected: false })?;

    let loaded = load_true_times(&mut session, options.anyway)?;
    let length = length(&session, &loaded)?;
    clock.after_the_end(length).into_iter().for_each(|text| session.warnings.add(text));
    let meter =
        OffsetMeter { plan: clocks.plan(), latency: &latency, clock: &clock, seed: clocks.seed, resolution, length };
    let nodes = assign_nodes(&session.opened, options.nodes, options.per_process);
    let disturb = Disturb { meter, nodes: &nodes, origin: loaded.span.map_or(Ticks::ZERO, |(first, _)| first) };
    let (trace, target) = ((&session.opened, &loaded), (prepared.making.as_path(), with_truth));
    let disturbed = disturb_locations(session.transport, trace, &disturb, target, progress)?;

    let most = nodes.iter().max().map_or(0, |&most| u64::from(most) + 1);
    let mut parameters = vec![("trace", os_text(&options.trace)), ("nodes", most.to_string())];
    parameters.extend(clocks.parameters());
    parameters.extend(options.network.parameters());
    let path = publish(&mut session, prepared, (&loaded, &disturbed), with_truth.then_some(&*parameters))?;
    let generated = describe(session, &disturb, &disturbed, parameters)?;
    Ok(path.zip(generated).map(|(path, generated)| {
        let (output, seconds) = (os_text(path), watch.lap());
        Outcome::Generated(Box::new(Generated { output, truth: with_truth, seconds, ..generated }))
    }))
}
