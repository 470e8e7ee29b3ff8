//! The end of a session that makes a report: what all ranks found, in one.

use crate::details::regions::Regions;
use crate::details::{CheckedStage, CorrectionEffect, details};
use crate::pipeline::displacement::DisplacementCounts;
use crate::pipeline::load::LocalTrace;
use crate::report::{Analysis, Details, LockStages, Report, SCHEMA, Stage, Violations};
use crate::session::{Examined, Replayed, Session, Verified, Written, summary};
use clc_engine::comm::merge_to_first;
use clc_engine::replay::clock_condition::ClockConditionCheck;
use clc_engine::replay::passes::Passes;
use clc_trace::{Result, Ticks};
use controlled_logical_clock::{CorrectionForm, Parameters};

/// Most clocks, and most pairs of clocks, in a report. Chosen by hand: they take some 8 MB as JSON, and are all that a machine of as many nodes has; more would make reports of
/// a hundred thousand processes too large to be read at once.
const LISTED: usize = 16_384;

/// What a session has found, on this rank; what is said to be on rank 0 is nothing elsewhere.
pub struct Findings<'a> {
    /// The trace before a correction.
    pub examined: Examined,
    /// The regions in which the worst violations happen.
    pub regions: Regions,
    /// If it was corrected: the constants of the clock, the passes, the violations left, and the time of the first event as written.
    pub corrected: Option<(Parameters, Passes, ClockConditionCheck, Ticks)>,
    /// Displacement of the hosted locations' events, if all were mapped.
    pub displacement: Option<DisplacementCounts>,
    /// Where the corrected trace is, on rank 0.
    pub output: Option<String>,
    /// For pictures, on rank 0.
    pub details: Option<Details>,
    /// Locks that overlap, on rank 0.
    pub locks: Option<LockStages>,
    /// Waiting times and critical path, on rank 0.
    pub analysis: Option<Analysis>,
    /// Words that go with the verdict.
    pub remarks: Vec<String>,
    /// How the program was called.
    pub command_line: &'a [String],
}

impl<'a> Findings<'a> {
    /// Of a trace that was examined only.
    pub fn of_examined(examined: Examined, regions: Regions, command_line: &'a [String]) -> Findings<'a> {
        Findings {
            examined,
            regions,
            corrected: None,
            displacement: None,
            output: None,
            details: None,
            locks: None,
            analysis: None,
            remarks: Vec::new(),
            command_line,
        }
    }

    /// Of a trace that was corrected, verified and perhaps written.
    pub fn of_corrected(
        replayed: Replayed,
        written: Written,
        verified: Verified,
        command_line: &'a [String],
    ) -> Findings<'a> {
        let Replayed { examined, parameters, passes, .. } = replayed;
        let mut remarks = Vec::new();
        if verified.corrected.violated() > 0 {
            remarks.push("violations remain in the corrected times; this is a bug, and no output was produced".into());
        }
        if let Some(last) = passes.passes.last()
            && !last.accepted
        {
            let why = match parameters.form {
                CorrectionForm::Common => "moving events caused further violations with every gamma",
                CorrectionForm::Paper => "the clocks disagree by more than an advance can decay",
            };
            let limit = parameters.max_error.value();
            remarks.push(format!("the error is still above {limit} after the last pass: {why}"));
        }
        let origin = written.span.map_or(Ticks::ZERO, |(first, _)| Ticks(first));
        Findings {
            corrected: Some((parameters, passes, verified.corrected, origin)),
            displacement: Some(written.displacement),
            remarks,
            ..Findings::of_examined(examined, verified.regions, command_line)
        }
    }
}

/// Time of the first event of a trace after pre-synchronisation.
pub(crate) fn origin(loaded: &LocalTrace) -> Ticks {
    loaded.span.map_or(Ticks::ZERO, |(first, _)| first)
}

impl Session<'_> {
    /// What the pictures of a report need, on rank 0.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn details(
        &mut self,
        examined: &Examined,
        corrected: Option<(&Replayed, &Written, &Verified)>,
    ) -> Result<Option<Details>> {
        let loaded = &examined.loaded;
        let program = &loaded.program;
        let raw = program.recorded_times();
        let times = program.times();
        let new_times = corrected.map(|(replayed, ..)| replayed.result.times(program));
        let mut stages = vec![
            CheckedStage { stage: Stage::Raw, check: &examined.raw, times: &raw, origin: loaded.raw_origin },
            CheckedStage {
                stage: Stage::Presynchronised,
                check: &examined.presynchronised,
                times: &times,
                origin: origin(loaded),
            },
        ];
        let mut done = None;
        if let (Some((replayed, written, verified)), Some(times)) = (corrected, &new_times) {
            let origin = written.span.map_or(Ticks::ZERO, |(first, _)| Ticks(first));
            stages.push(CheckedStage { stage: Stage::Corrected, check: &verified.corrected, times, origin });
            done = Some(CorrectionEffect {
                corrections: &replayed.result.corrections,
                displacement: &written.by_location,
            });
        }
        let alltoallv = examined.load_options.alltoallv;
        let details = details(self.transport, &self.opened, loaded, &stages, done, alltoallv)?;
        self.lap("details", program.events());
        Ok(details)
    }

    /// Ends the session; the report is on rank 0.
    ///
    /// # Errors
    /// Failures of the transport; the event files cannot be read again, where records of messages are missing.
    pub fn report(mut self, findings: Findings<'_>) -> Result<Option<Report>> {
        let Examined { loaded, load_options, clocks, raw, presynchronised } = findings.examined;
        let timing = std::mem::take(&mut self.timing);
        let phases = timing.gather(self.transport)?;
        let memory = summary::memory_use(self.transport)?;
        let total = match findings.displacement {
            Some(displacement) => merge_to_first(self.transport, displacement, |sum, part| sum.merge(&part))?,
            None => None,
        };
        let merged = summary::gather(&mut self, &loaded, load_options.presync, clocks.as_ref())?;
        let Some(mut merged) = merged else { return Ok(None) };
        findings.remarks.into_iter().for_each(|remark| merged.warnings.add(remark));
        let resolution = self.resolution();
        let stage = |check: &ClockConditionCheck, origin| {
            Some(summary::stage(check, resolution, origin, load_options.alltoallv, &findings.regions))
        };
        let violations = Violations {
            raw: stage(&raw, loaded.raw_origin),
            presynchronised: stage(&presynchronised, origin(&loaded)),
            corrected: findings.corrected.as_ref().and_then(|(_, _, corrected, origin)| stage(corrected, *origin)),
        };
        let (coverage, verdict) = summary::verdict(&merged, &violations, self.opened.archive.says_incomplete());
        let constants = findings.corrected.as_ref().map(|(parameters, ..)| parameters);
        Ok(Some(Report {
            schema: SCHEMA,
            verdict,
            coverage,
            program: summary::program(self.transport, findings.command_line),
            parameters: summary::parameters(&load_options, loaded.latency_basis, merged.clocks, resolution, constants),
            trace: merged.trace,
            clocks: clocks.map(|estimate| estimate.bounded(LISTED)),
            matching: merged.matching,
            violations,
            replay: findings.corrected.as_ref().map(|(_, passes, ..)| summary::replay(passes, resolution)),
            displacement: total.map(|total| total.report(resolution)),
            phases,
            memory,
            warnings: merged.warnings.into_list(),
            output: findings.output,
            details: findings.details,
            locks: findings.locks,
            analysis: findings.analysis,
        }))
    }
}
