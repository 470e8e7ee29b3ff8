//! Whether estimated clocks are to be taken, judged by the trace alone.
//!
//! Recorded clocks that no message contradicts are not touched, unless the evidence is overwhelming: clocks bend between measurements without a
//! message that comes before it was sent. Else `auto` takes the clocks that predict messages better that they were not made from
//! ([`clc_clock::evidence`]), if the difference is more than chance; never clocks that leave more violations, or that contradict recorded
//! offsets by far more than any violation proves.

use crate::pipeline::load::LocalTrace;
use clc_clock::Fit;
use clc_clock::Method;
use clc_engine::comm::Transport;
use clc_engine::replay::survey::survey;
use clc_trace::Result;
use clc_trace::format::{count, plural};

/// Relative misfit from which on estimated clocks that leave as many violations are better than recorded ones. Assumed: a fifth better is more than the
/// noise of the misfit where both describe the messages.
const BETTER: f64 = 0.8;
/// Recorded offsets are contradicted by at most so many times what the worst violation proves them wrong: where compute time is unbalanced,
/// messages that always wait predict each other well with wrong clocks.
const PROVEN: f64 = 2.0;
/// Recorded clocks that leave at least so many violations are given up whatever was measured, if the estimated ones leave one for so many of
/// them and the evidence is overwhelming besides. Assumed: from a hundred on, the remaining one is not chance.
const MANY: u64 = 100;
const EXPLAINED: u64 = 100;
/// Decides between the recorded clocks, which `loaded` has, and estimated ones, under which its events have these `times`. `fit`
/// is `None` if the estimated ones are asked for, however they fit. Returns whether they are taken, and why. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn choose(
    transport: &mut dyn Transport,
    loaded: &mut LocalTrace,
    times: &[Vec<i64>],
    method: Method,
    fit: Option<Fit>,
) -> Result<(bool, String)> {
    let recorded = survey(transport, &loaded.program, &loaded.program.times(|timeline| &timeline.time))?;
    let estimated = survey(transport, &loaded.program, times)?;
    let (before, after) = (recorded.violated(), estimated.violated());
    if after > before {
        let reason =
            format!("the estimated clocks would leave {}, the recorded clocks {}", violations(after), count(before));
        return Ok((false, reason));
    }
    if let Some(fit) = fit.filter(|_| method == Method::Auto) {
        if before == 0 && !(fit.is_convincing() && fit.matters()) {
            return Ok((false, "the recorded clocks leave no violations".to_owned()));
        }
        let proven = recorded.worst.map_or(0, |worst| worst.ticks);
        let explained = before >= MANY && after.saturating_mul(EXPLAINED) <= before && fit.is_overwhelming();
        if fit.contradiction > PROVEN * proven as f64 && !fit.is_convincing() && !explained {
            let reason = "the estimated clocks contradict the recorded offsets by far more than any violation shows";
            return Ok((false, reason.to_owned()));
        }
        match fit.gain {
            // Clocks that nobody has measured are no clocks to prefer.
            _ if fit.measured.is_none() && after < before => {}
            Some(gain) if !gain.is_significant() => {
                let reason = format!(
                    "the estimated clocks do not predict messages significantly better than the recorded ones (by \
                    {:.2}, standard error {:.2})",
                    gain.mean, gain.error
                );
                return Ok((false, reason));
            }
            Some(_) => {}
            None if fit.misfit > if after < before { 1.0 } else { BETTER } => {
                let reason = "the recorded clocks agree with the messages as well as estimated clocks would";
                return Ok((false, reason.to_owned()));
            }
            None => {}
        }
    }
    let evidence = fit.and_then(|fit| fit.gain).map_or(String::new(), |gain| {
        format!("; messages are predicted better by {:.2} ± {:.2} (mean log-likelihood)", gain.mean, gain.error)
    });
    let reason = if after < before {
        let are = if after == 1 { "is" } else { "are" };
        format!("{} {are} left, {} with the recorded clocks", violations(after), count(before))
    } else {
        "the estimated clocks agree with the messages better".to_owned()
    };
    Ok((true, reason + &evidence))
}

fn violations(number: u64) -> String {
    plural(number, "violation")
}
