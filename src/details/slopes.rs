//! How steep corrections rise.

use crate::report::Slopes;
use clc_engine::comm::{AnalysisRank, Transport, gather_values};
use clc_trace::{Correction, Curve, Result};

/// Counts the stretches of all corrections by their slope; on rank 0. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn slopes(transport: &mut dyn Transport, corrections: &[Correction]) -> Result<Option<Slopes>> {
    let mut here = Slopes::default();
    for correction in corrections {
        let sides = correction.sides();
        for (correction, curve) in sides.flat_map(|side| side.curves().map(move |curve| (side, curve))) {
            here.decay = here.decay.max(correction.decay.to_f64());
            match curve {
                Curve::Flat => {}
                Curve::Ramp { .. } => {
                    here.ordinary += 1;
                    here.steepest = here.steepest.max(correction.slope.to_f64());
                }
                Curve::Line { start, from, end, to } if start < end => {
                    here.steeper += 1;
                    here.steepest = here.steepest.max((to.0 - from.0) as f64 / (end.0 - start.0) as f64);
                }
                Curve::Line { .. } => here.vertical += 1,
            }
        }
    }
    let parts = gather_values(transport, AnalysisRank::FIRST, &here)?;
    Ok(parts.map(|parts| {
        parts.into_iter().fold(Slopes::default(), |sum, part| Slopes {
            ordinary: sum.ordinary + part.ordinary,
            steeper: sum.steeper + part.steeper,
            steepest: sum.steepest.max(part.steepest),
            vertical: sum.vertical + part.vertical,
            decay: sum.decay.max(part.decay),
        })
    }))
}
