//! `clc-replay simulate DIR`: makes a trace whose true times are known.

use crate::cli::SimulateOptions;
use crate::commands::Outcome;
use crate::output::directory::Output;
use crate::output::truth::write_parameters;
use crate::pipeline::generated::write_simulated;
use crate::pipeline::timing::Stopwatch;
use crate::report::{Generated, SCHEMA, Warnings};
use clc_engine::comm::{AnalysisRank, Transport, broadcast_value};
use clc_trace::Result;
use clc_trace::format::os_text;
use clc_trace::progress::Progress;

/// Simulates on rank 0; the others wait for it. Collective over the analysis ranks.
///
/// # Errors
/// Impossible parameters; the output exists or cannot be written.
pub fn simulate(
    transport: &mut dyn Transport,
    options: &SimulateOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let generated = if transport.rank() == AnalysisRank::FIRST { run(options, progress).map(Some) } else { Ok(None) };
    let outcome = match &generated {
        Ok(_) => Ok(()),
        Err(error) => Err(error.clone()),
    };
    let outcome: Result<()> = broadcast_value(transport, AnalysisRank::FIRST, outcome)?;
    outcome?;
    Ok(generated?.map(|generated| Outcome::Generated(Box::new(generated))))
}

fn run(options: &SimulateOptions, progress: &dyn Progress) -> Result<Generated> {
    let mut watch = Stopwatch::start();
    let scenario = options.scenario()?;
    let mut output = Output::fresh(&options.output, options.generated.force)?;
    let mut warnings = Warnings::default();
    output.warnings.drain(..).for_each(|text| warnings.add(text));
    progress.phase("simulate", 0);
    let summary = write_simulated(&scenario, output.making(), options.format()?, !options.generated.no_truth)?;
    scenario.clock.after_the_end(summary.end).into_iter().for_each(|text| warnings.add(text));
    let parameters = options.parameters();
    if !options.generated.no_truth {
        write_parameters(output.making(), "simulate", &parameters)?;
    }
    let path = output.path.clone();
    output.publish()?;
    progress.finish();
    let nodes = scenario.nodes().last().map_or(0, |last| u64::from(*last) + 1);
    Ok(Generated {
        schema: SCHEMA,
        command: "simulate".into(),
        output: os_text(path),
        truth: !options.generated.no_truth,
        processes: u64::from(scenario.ranks),
        nodes,
        locations: summary.events.len() as u64,
        events: summary.events.iter().sum(),
        true_seconds: (summary.end as f64) / 1e12,
        largest_error_seconds: None,
        parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        seconds: watch.lap(),
        warnings: warnings.into_list(),
    })
}
