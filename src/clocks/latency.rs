//! The minimum latency that the trace shows (`--latency auto`): never one that makes violations where there are none.

use crate::pipeline::load::LocalTrace;
use clc_clock::ShortestMessages;
use clc_engine::comm::Transport;
use clc_engine::replay::clock_condition::check_clock_condition;
use clc_engine::replay::program::Program;
use clc_trace::workers::Workers;
use clc_trace::{Result, Ticks};
use controlled_logical_clock::latency::{LatencyBasis, MinimumLatency};

/// Puts `found` in force, which round trips show (zero between nodes: they show none), but no more than every message and collective takes by clocks that leave
/// no violation. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn settle_latency(
    transport: &mut dyn Transport,
    workers: Workers,
    loaded: &mut LocalTrace,
    found: ShortestMessages,
) -> Result<()> {
    let ShortestMessages { same_node, other_node } = found;
    let unclear = other_node <= Ticks::ZERO;
    // Processes of one node are no farther apart than those of different ones.
    let nodes = loaded.program.nodes.iter().any(|node| Some(node) != loaded.program.nodes.first());
    let mut latency =
        MinimumLatency { same_node: if nodes { same_node.min(other_node) } else { same_node }, other_node };
    let mut basis =
        if unclear && latency.same_node <= Ticks::ZERO { LatencyBasis::Unclear } else { LatencyBasis::RoundTrips };
    let put = |loaded: &mut LocalTrace, latency| {
        loaded.program.set_latency(latency);
    };
    put(loaded, MinimumLatency::default());
    for recorded in [true, false] {
        let worst = |transport: &mut dyn Transport, loaded: &mut LocalTrace| -> Result<Option<i64>> {
            let mut surveyed = |program: &Program| check_clock_condition(transport, workers, program, &program.times());
            let program = &mut loaded.program;
            let found = if recorded { program.as_recorded(workers, surveyed) } else { surveyed(program) };
            Ok(found?.worst.map(|worst| worst.ticks))
        };
        put(loaded, MinimumLatency::default());
        if worst(transport, loaded)?.is_some() {
            continue;
        }
        // First it is what is between nodes that is too much, then what is within them.
        for round in 0..3 {
            put(loaded, latency);
            let Some(too_much) = worst(transport, loaded)? else { break };
            basis = LatencyBasis::Limited;
            let less = |latency: Ticks| Ticks((latency.0 - too_much).max(0));
            latency = match round {
                0 => MinimumLatency { other_node: less(latency.other_node), ..latency },
                1 => MinimumLatency { same_node: less(latency.same_node), ..latency },
                _ => MinimumLatency::default(),
            };
            latency.same_node = if nodes { latency.same_node.min(latency.other_node) } else { latency.same_node };
        }
    }
    put(loaded, latency);
    loaded.latency_basis = basis;
    Ok(())
}
