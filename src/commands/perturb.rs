//! `clc-replay perturb TRACE DIR`: a real trace with known clock errors.

use crate::accuracy::perturb::{Disturb, assign_nodes, disturb_locations};
use crate::cli::PerturbOptions;
use crate::commands::Outcome;
use crate::commands::output::{Wanted, prepare};
use crate::pipeline::load::{LoadOptions, load};
use crate::pipeline::made::write_parameters;
use crate::pipeline::open::open;
use crate::pipeline::write::write_globals;
use crate::report::{Made, SCHEMA, Stopwatch};
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
    let mut opened = open(transport, &options.trace)?;
    let mut warnings = std::mem::take(&mut opened.warnings);
    let clock: ClockSpec = options.clocks.clock.parse()?;
    // Measurements are a few bytes: the bandwidth does not matter.
    let latency = options.network.model(10_000_000_000);
    latency.validate()?;
    options.clocks.plan().validate()?;

    let wanted = Wanted {
        path: &options.output,
        force: options.made.force,
        events: opened.archive.event_directory(),
        with_truth: !options.made.no_truth,
    };
    let prepared = prepare(transport, &opened, wanted, &mut warnings)?;
    let target = prepared.making.clone();

    let load_options = LoadOptions {
        presync: Method::Linear,
        latency: MinimumLatency::default(),
        alltoallv: false,
        fences: Fences::default(),
        separation: Parameters::default().minimum_separation,
        own_timelines: false,
    };
    let loaded = load(transport, &opened, &load_options, progress, &mut warnings)?;
    let program = &loaded.program;
    let found = survey(transport, program, &program.times(|timeline| &timeline.time))?;
    if found.violated() > 0 {
        let message = format!(
            "{} of {} messages and collectives violate the clock condition in the trace itself: its times are not true",
            found.violated(),
            found.checked()
        );
        if !options.anyway {
            return Err(Error::new(message)
                .in_file(&options.trace)
                .hint("correct it first and perturb the result, or insist with --anyway"));
        }
        warnings.add(message);
    }

    let nodes = assign_nodes(&opened, options.nodes, options.per_process);
    let resolution = opened.definitions.clock.resolution;
    let (first, last) = loaded.span.unwrap_or((Ticks::ZERO, Ticks::ZERO));
    let run = i128::from(last.0 - first.0) * i128::from(SECOND) / i128::from(resolution.max(1));
    let length =
        i64::try_from(run).map_err(|_| Error::new("the trace is longer than 26 days").in_file(&options.trace))?;
    let meter = OffsetMeter {
        plan: options.clocks.plan(),
        latency: &latency,
        clock: &clock,
        seed: options.clocks.seed,
        resolution,
        length,
    };
    let disturb = Disturb { meter, nodes: &nodes, origin: first };
    let with_truth = !options.made.no_truth;
    let disturbed = disturb_locations(transport, (&opened, &loaded), &disturb, (&target, with_truth), progress)?;

    let markers = agree(transport, opened.archive.markers())?;
    let shift = (loaded.shift + disturbed.shift).0 as u64;
    let markers: Option<Vec<(u64, u64)>> =
        markers.map(|markers| markers.iter().map(|m| (m.time.saturating_add(shift), m.duration)).collect());
    progress.step("publish");
    opened.unchanged(transport)?;
    let mut path = None;
    let mut outcome = Ok(());
    let mut parameters = vec![
        ("trace", options.trace.display().to_string()),
        ("nodes", nodes.iter().max().map_or(0, |&most| u64::from(most) + 1).to_string()),
    ];
    parameters.extend(options.clocks.parameters());
    parameters.extend(options.network.parameters());
    if let Some(output) = prepared.hand_over(transport)? {
        path = Some(output.path.clone());
        outcome = write_globals(&opened, &target, disturbed.span, markers.as_deref(), &mut warnings)
            .and_then(|()| if with_truth { write_parameters(&target, "perturb", &parameters) } else { Ok(()) })
            .and_then(|()| opened.definitions_unchanged())
            .and_then(|()| output.publish());
    }
    agree(transport, outcome)?;
    let mut events = [loaded.events() as i64];
    transport.all_reduce(ReduceOp::Sum, &mut events)?;
    let Some(path) = path else { return Ok(None) };
    let clocks = nodes.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
    Ok(Some(Outcome::Made(Box::new(Made {
        schema: SCHEMA,
        command: "perturb".into(),
        output: path.display().to_string(),
        truth: with_truth,
        processes: opened.timelines.processes as u64,
        nodes: clocks,
        locations: opened.definitions.locations.len() as u64,
        events: events[0] as u64,
        true_seconds: length as f64 / SECOND as f64,
        largest_error_seconds: Some(disturbed.largest as f64 / resolution.max(1) as f64),
        parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        seconds: watch.lap(),
        warnings: warnings.into_list(),
    }))))
}
