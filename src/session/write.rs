//! From corrected communication events to a trace that is written, verified and put into place.

use crate::details::regions::Regions;
use crate::pipeline::displacement::{DisplacementCounts, LocationSum};
use crate::pipeline::write::{map_markers, whole_span, write_globals, write_locations};
use crate::session::{Prepared, Replayed, Session};
use clc_engine::comm::{ReduceOp, agree};
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_trace::format::os_text;
use clc_trace::{Error, Result};
use std::path::Path;

/// Events as they were written.
pub struct Written {
    /// Displacement of the hosted locations' events.
    pub displacement: DisplacementCounts,
    /// The same by location (index into the definitions).
    pub by_location: Vec<(usize, LocationSum)>,
    /// Earliest and latest written time of the whole trace.
    pub span: Option<(i64, i64)>,
    /// Communication events of this rank whose times are not those that were computed.
    deviating: u64,
    /// Whether all hosted locations were copied as they are.
    unchanged: bool,
}

/// What is left of the violations in what was written.
pub struct Verified {
    /// Violations.
    pub corrected: ClockConditionCheck,
    /// The regions in which the worst ones happen, of all stages.
    pub regions: Regions,
}

impl Session<'_> {
    /// Maps all events of the trace, and writes them to `target` if there is one.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn write(&mut self, replayed: &Replayed, target: Option<&Path>) -> Result<Written> {
        let loaded = &replayed.examined.loaded;
        let written = write_locations(self.transport, &self.opened, loaded, &replayed.result, target, self.progress)?;
        let span = whole_span(self.transport, written.span)?;
        self.lap(if target.is_some() { "write" } else { "map" }, loaded.events());
        Ok(Written {
            displacement: written.displacement,
            by_location: written.by_location,
            span,
            deviating: written.deviating,
            unchanged: written.unchanged,
        })
    }

    /// Looks for violations in what was written, not in what was meant to be.
    ///
    /// # Errors
    /// The written times are not the computed ones, which would be a bug.
    pub fn verify(&mut self, replayed: &Replayed, written: &Written) -> Result<Verified> {
        self.progress.step("verify");
        let mut deviating = [written.deviating as i64];
        self.transport.all_reduce(ReduceOp::Sum, &mut deviating)?;
        if deviating[0] > 0 {
            self.unchanged()?;
            return Err(Error::new(
                "the written times differ from the computed ones; this is a bug, and no output was produced",
            ));
        }
        let examined = &replayed.examined;
        let program = &examined.loaded.program;
        let corrected =
            check_clock_condition(self.transport, self.opened.workers, program, &replayed.result.times(program))?;
        let checks = [&examined.raw, &examined.presynchronised, &corrected];
        let regions = self.regions(&examined.loaded, &checks)?;
        self.lap("verify", program.events());
        Ok(Verified { corrected, regions })
    }

    /// Completes the output and puts it into place, unless violations are left in it. Returns where it is, on rank 0.
    ///
    /// # Errors
    /// The trace has changed meanwhile, reading or writing fails.
    pub fn publish(
        &mut self,
        prepared: Option<Prepared>,
        replayed: &Replayed,
        written: &Written,
        verified: &Verified,
    ) -> Result<Option<String>> {
        self.progress.step("publish");
        self.unchanged()?;
        let Some(prepared) = prepared else { return Ok(None) };
        let target = prepared.making.clone();
        let output = prepared.hand_over(self.transport)?;
        let loaded = &replayed.examined.loaded;
        let markers = map_markers(self.transport, &self.opened, loaded, &replayed.result.corrections)?;
        // Times that did not change leave the clock properties as they were, whatever the writer put into them.
        let mut unchanged = [i64::from(written.unchanged)];
        self.transport.all_reduce(ReduceOp::Min, &mut unchanged)?;
        let span = written.span.filter(|_| unchanged[0] == 0);
        let (mut outcome, mut published) = (Ok(()), None);
        if let Some(output) = output.filter(|_| verified.corrected.violated() == 0) {
            let path = output.path.clone();
            outcome = write_globals(&self.opened, &target, span, markers.as_deref(), &mut self.warnings)
                .and_then(|()| self.opened.definitions_unchanged())
                .and_then(|()| output.publish());
            published = Some(os_text(path));
        }
        agree(self.transport, outcome)?;
        self.lap("publish", 0);
        Ok(published)
    }
}
