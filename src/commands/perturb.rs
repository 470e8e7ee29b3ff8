//! `clc-replay perturb TRACE DIR`: a real trace with known clock errors.

use crate::accuracy::perturb::{Disturb, assign_nodes, disturb_locations};
use crate::cli::PerturbOptions;
use crate::commands::Outcome;
use crate::pipeline::generated::write_parameters;
use crate::pipeline::load::LoadOptions;
use crate::pipeline::timing::Stopwatch;
use crate::pipeline::write::write_globals;
use crate::report::{Generated, SCHEMA};
use crate::session::{OutputRequest, Session};
use clc_clock::Method;
use clc_engine::comm::{ReduceOp, Transport, agree};
use clc_engine::matching::fences::Fences;
use clc_engine::replay::survey::survey;
use clc_simulate::units::SECOND;
use clc_simulate::{ClockSpec, OffsetMeter};
use clc_trace::progress::Progress;
use clc_trace::{Error, Result, Ticks};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::latency::MinimumLatency;

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
    let clock: ClockSpec = options.clocks.clock.parse()?;
    // Measurements are a few bytes: the bandwidth does not matter.
    let latency = options.network.model(10_000_000_000);
    latency.validate()?;
    options.clocks.plan().validate()?;

    let wanted = OutputRequest {
        path: &options.output,
        force: options.generated.force,
        events: None,
        with_truth: !options.generated.no_truth,
    };
    let prepared = session.prepare(wanted)?;
    let target = prepared.making.clone();

    let load_options = LoadOptions {
        presync: Method::Linear,
        latency: MinimumLatency::default(),
        alltoallv: false,
        fences: Fences::default(),
        separation: Parameters::default().minimum_separation,
    };
    let loaded = session.load(&load_options)?;
    let program = &loaded.program;
    let found = survey(session.transport, program, &program.times(|timeline| &timeline.time))?;
    if found.violated() > 0 {
        let message = format!(
            "{} of {} messages and collectives in the trace itself violate the clock condition, so its times are not \
            true",
            found.violated(),
            found.checked()
        );
        if !options.anyway {
            return Err(Error::new(message)
                .in_file(&options.trace)
                .hint("correct it first and perturb the result, or pass --anyway"));
        }
        session.warnings.add(message);
    }

    let nodes = assign_nodes(&session.opened, options.nodes, options.per_process);
    let resolution = session.resolution();
    let (first, last) = loaded.span.unwrap_or((Ticks::ZERO, Ticks::ZERO));
    let run = i128::from(last.0 - first.0) * i128::from(SECOND) / i128::from(resolution.max(1));
    let length =
        i64::try_from(run).map_err(|_| Error::new("the trace is longer than 26 days").in_file(&options.trace))?;
    clock.after_the_end(length).into_iter().for_each(|text| session.warnings.add(text));
    let meter = OffsetMeter {
        plan: options.clocks.plan(),
        latency: &latency,
        clock: &clock,
        seed: options.clocks.seed,
        resolution,
        length,
    };
    let disturb = Disturb { meter, nodes: &nodes, origin: first };
    let with_truth = !options.generated.no_truth;
    let trace = (&session.opened, &loaded);
    let disturbed = disturb_locations(session.transport, trace, &disturb, (&target, with_truth), progress)?;

    let markers = agree(session.transport, session.opened.archive.markers())?;
    let shift = (loaded.shift + disturbed.shift).0 as u64;
    let markers: Option<Vec<(u64, u64)>> =
        markers.map(|markers| markers.iter().map(|m| (m.time.saturating_add(shift), m.duration)).collect());
    progress.step("publish");
    session.unchanged()?;
    let mut path = None;
    let mut outcome = Ok(());
    let mut parameters = vec![
        ("trace", options.trace.display().to_string()),
        ("nodes", nodes.iter().max().map_or(0, |&most| u64::from(most) + 1).to_string()),
    ];
    parameters.extend(options.clocks.parameters());
    parameters.extend(options.network.parameters());
    if let Some(output) = prepared.hand_over(session.transport)? {
        path = Some(output.path.clone());
        outcome = write_globals(&session.opened, &target, disturbed.span, markers.as_deref(), &mut session.warnings)
            .and_then(|()| if with_truth { write_parameters(&target, "perturb", &parameters) } else { Ok(()) })
            .and_then(|()| session.opened.definitions_unchanged())
            .and_then(|()| output.publish());
    }
    agree(session.transport, outcome)?;
    let mut events = [loaded.events() as i64];
    session.transport.all_reduce(ReduceOp::Sum, &mut events)?;
    let processes = session.opened.timelines.processes as u64;
    let locations = session.opened.definitions.locations.len() as u64;
    let Some((path, finished)) = path.zip(session.finish()?) else { return Ok(None) };
    let clocks = nodes.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
    Ok(Some(Outcome::Generated(Box::new(Generated {
        schema: SCHEMA,
        command: "perturb".into(),
        output: path.display().to_string(),
        truth: with_truth,
        processes,
        nodes: clocks,
        locations,
        events: events[0] as u64,
        true_seconds: length as f64 / SECOND as f64,
        largest_error_seconds: Some(disturbed.largest as f64 / resolution.max(1) as f64),
        parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        seconds: watch.lap(),
        warnings: finished.warnings,
    }))))
}
