//! Whether estimated clocks are to be taken, judged by the trace alone.
//!
//! Recorded clocks that no message contradicts are not touched. Else `auto` takes the clocks that predict messages better that they were not made from
//! ([`crate::presync::evidence`]), if the difference is more than chance; never clocks that leave more violations, or that contradict recorded
//! offsets by far more than any violation proves. Where violations are left, it is tried which of the two the logical clock can
//! correct without moving far from the estimate: a clock that jumps is known everywhere but in the window of its jump, and what is wrong
//! there can move everything after it.

use crate::clc::{Form, Parameters};
use crate::comm::{Transport, all_gather_values};
use crate::matching::sync::SyncKind;
use crate::pipeline::load::Loaded;
use crate::presync::Method;
use crate::presync::evidence::Gain;
use crate::replay::passes;
use crate::replay::survey::survey;
use crate::report::format::{count, plural};
use crate::trace::progress::Silent;
use crate::trace::{Result, Ticks};
use serde::{Deserialize, Serialize};

/// How the estimated clocks compare with the recorded ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Misfit of the estimated clocks relative to that of the recorded ones.
    pub misfit: f64,
    /// Largest difference of the two where offsets were recorded, or a part of that elsewhere, beyond a latency, in ticks.
    pub contradiction: f64,
    /// By how much better they predict messages; none where there are too few.
    pub gain: Option<Gain>,
}

/// Relative misfit from which on estimated clocks that leave as many violations are better than recorded ones.
const BETTER: f64 = 0.8;
/// Recorded offsets are contradicted by at most so many times what the worst violation proves them wrong: where compute time is unbalanced,
/// messages that always wait predict each other well with wrong clocks.
const PROVEN: f64 = 2.0;

/// Decides between the recorded clocks, which `loaded` has, and estimated ones, under which its events have these `times`. `fit`
/// is `None` if the estimated ones are asked for, however they fit. Returns whether they are taken, and why. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn choose(
    transport: &mut dyn Transport,
    loaded: &mut Loaded,
    times: &mut Vec<Vec<i64>>,
    method: Method,
    fit: Option<Fit>,
) -> Result<(bool, String)> {
    let recorded = survey(transport, &loaded.program, &loaded.program.times(|timeline| &timeline.time))?;
    let estimated = survey(transport, &loaded.program, times)?;
    let (before, after) = (recorded.violated(), estimated.violated());
    if after > before {
        let reason = format!(
            "the estimated clocks would leave {}, the recorded ones leave {}",
            violations(after),
            count(before)
        );
        return Ok((false, reason));
    }
    if let Some(fit) = fit.filter(|_| method == Method::Auto) {
        if before == 0 {
            return Ok((false, "the recorded clocks leave no violations".to_owned()));
        }
        let proven = recorded.worst.map_or(0, |worst| worst.ticks);
        if fit.contradiction > PROVEN * proven as f64 {
            let reason = "the estimated clocks contradict recorded offsets by far more than any violation shows";
            return Ok((false, reason.to_owned()));
        }
        match fit.gain {
            Some(gain) if !gain.is_significant() => {
                let reason = format!(
                    "estimated clocks do not predict messages clearly better than the recorded ones (by {:.2}, standard error {:.2})",
                    gain.mean, gain.error
                );
                return Ok((false, reason));
            }
            Some(_) => {}
            None if fit.misfit > if after < before { 1.0 } else { BETTER } => {
                let reason = "the recorded clocks agree with the messages as well as estimated ones would";
                return Ok((false, reason.to_owned()));
            }
            None => {}
        }
        if after > 0 && !corrects_better(transport, loaded, times)? {
            let reason = format!(
                "the {} that estimated clocks would leave would move the trace further from them than the {} that the recorded \
                 ones leave",
                violations(after),
                count(before)
            );
            return Ok((false, reason));
        }
    }
    let evidence = fit.and_then(|fit| fit.gain).map_or(String::new(), |gain| {
        format!("; messages are predicted better by {:.2} ± {:.2} (mean log-likelihood)", gain.mean, gain.error)
    });
    let reason = if after < before {
        let are = if after == 1 { "is" } else { "are" };
        format!("{} {are} left, {} with the recorded clocks", violations(after), count(before))
    } else {
        "the estimated clocks agree better with the messages".to_owned()
    };
    Ok((true, reason + &evidence))
}

fn violations(number: u64) -> String {
    plural(number, "violation")
}

/// Whether the logical clock, starting from `estimated` times, stays closer to them than it comes starting from the recorded ones.
fn corrects_better(transport: &mut dyn Transport, loaded: &mut Loaded, estimated: &mut Vec<Vec<i64>>) -> Result<bool> {
    // The same for every command, whatever else it visits and corrects with.
    let parameters = Parameters {
        latency: loaded.program.latency,
        minimum_separation: Ticks::ZERO,
        form: Form::Paper,
        ..Parameters::default()
    };
    let mut all = [Moments::default(); 2];
    for (way, all) in all.iter_mut().enumerate() {
        // The second time from the estimated times: `estimated` holds the recorded ones then.
        let exchanged = way == 1;
        if exchanged {
            swap(loaded, estimated);
        }
        let passes = passes::run(transport, &loaded.program, &parameters, &Silent);
        if exchanged {
            swap(loaded, estimated);
        }
        // A trace that contradicts itself is reported when it is corrected.
        let Ok(passes) = passes else { return Ok(true) };
        let mut own = Moments::default();
        let logical = passes.result.as_ref().map(|(forward, _)| &forward.logical);
        for (local, (timeline, estimated)) in loaded.program.timelines.iter().zip(&*estimated).enumerate() {
            let unmoved = if exchanged { estimated } else { &timeline.time };
            let logical = logical.and_then(|logical| logical.get(local)).unwrap_or(unmoved);
            let events = logical.iter().zip(estimated).enumerate();
            // Local events are visited or not as the command wants it.
            let events = events.filter(|(event, _)| timeline.kind(*event) != SyncKind::Local);
            events.for_each(|(_, (logical, estimated))| own.add(logical - estimated));
        }
        all_gather_values(transport, &own)?.into_iter().for_each(|part| all.merge(part));
    }
    Ok(all[1].variance() <= all[0].variance())
}

fn swap(loaded: &mut Loaded, times: &mut Vec<Vec<i64>>) {
    for (timeline, times) in loaded.program.timelines.iter_mut().zip(times) {
        std::mem::swap(&mut timeline.time, times);
    }
}

/// Sums of differences, exact in any order.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Moments {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Moments {
    fn add(&mut self, difference: i64) {
        let difference = i128::from(difference);
        self.count += 1;
        self.sum += difference;
        self.squares = self.squares.saturating_add(difference * difference);
    }

    fn merge(&mut self, other: Moments) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// Where zero lies matters to nobody.
    fn variance(&self) -> f64 {
        let count = self.count.max(1) as f64;
        let mean = self.sum as f64 / count;
        (self.squares as f64 / count - mean * mean).max(0.0)
    }
}
