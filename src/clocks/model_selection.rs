//! Whether estimated clocks are to be taken, or those without recorded offsets, judged by the trace alone.
//!
//! Times that no message contradicts stay as they were recorded if offsets make them worse. Clocks with recorded offsets that no message contradicts are not touched, unless the
//! evidence is strong: clocks bend between measurements without a message that comes before it was sent. Else `auto` takes the clocks that predict messages better that they were not made from
//! ([`clc_clock::evidence`]), if the difference is more than chance; never clocks that leave more violations, or that contradict recorded
//! offsets by far more than any violation proves. The numbers without a measurement of their own were chosen with 1,400 random scenarios (docs/history.md).

use crate::pipeline::load::LocalTrace;
use clc_clock::ClockFit;
use clc_clock::evidence::Gain;
use clc_clock::{Method, RefinedClocks};
use clc_engine::comm::Transport;
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_trace::format::{count, duration, plural};
use clc_trace::workers::Workers;
use clc_trace::{Result, Ticks};

/// Relative misfit from which on estimated clocks that leave as many violations are better than recorded ones. Assumed: a fifth better is more than the
/// noise of the misfit where both describe the messages.
const BETTER: f64 = 0.8;
/// Recorded offsets are contradicted by at most so many times what the worst violation proves them wrong: where compute time is unbalanced,
/// messages that always wait predict each other well with wrong clocks.
const PROVEN: f64 = 2.0;
/// The same if that violation is smaller than half a round trip, to which the estimate is known, or a bound was recorded with every offset, and the evidence is not overwhelming: of recordings with offsets three of this kind were 1.7 to 3.5 times as far from the
/// truth with the estimate, which contradicted offsets by 1.46 to 1.65 times the worst violation; three that did by at most 0.4 times were 2 to 6 times as close; of two with 1.05 times one was 5 times as far, one a fifth closer.
const UNCERTAIN: f64 = 1.25;
/// Recorded clocks that leave at least so many violations are given up whatever was measured, if the estimated ones leave one for so many of
/// them and the evidence is overwhelming besides. Assumed: from a hundred on, the remaining one is not chance.
const MANY: u64 = 100;
const EXPLAINED: u64 = 100;
/// But not if recorded offsets would be wrong by more than so many times the worst violation.
const INCREDIBLE: f64 = 2.0;
/// Recorded offsets are differences of clocks, and no errors of measurement, if they are more than so many times as large as the worst violation that they leave. Assumed: of messages between clocks that offsets
/// put apart wrongly by some time, one in thousands is early by a fifth of it.
const FROM_OFFSETS: f64 = 5.0;
/// Fewer violations than these are no evidence of their own if they are all that the estimate goes by: a clock that once stands still leaves one or two, and an
/// estimate smears that over a stretch of the run. It then differs from the recorded clocks by less than so many times the worst violation.
const SEVERAL: u64 = 4;
const ALONE: f64 = 2.0;
/// Where no offset was recorded, clocks are not moved apart by more than so many times the worst violation, and so many half round trips: in 60 generated traces the clocks had been apart by at most
/// three times the worst violation, but where all traffic goes one way; groups of clocks that hardly talk were estimated to be apart by ten and a hundred times that. Where nearly all messages are late, no round trip tells
/// what is known of clocks: of 24 recordings of wavefronts and multigrids four were moved apart by 7 to 39 times the worst violation, and were 2 to 12 times as far from the truth afterwards; the others by at most 4.3 times.
const EXCESSIVE: f64 = 6.0;
const FAR: f64 = 40.0;
/// No clocks are moved without a significant gain if the worst violation is less than this part of a half round trip, to which the estimate is known: of recordings without offsets nine had one of 0.05 to 0.34. Where
/// the gain was not significant, the estimate made five of six worse (by up to 2 times) and one better (2.4 times); where it was, two better (3 times), unless nearly all messages were late. With offsets LULESH with eight processes was 1.7 and 2.3
/// times as far from the truth with the estimate.
const UNKNOWN: f64 = 0.4;
/// Violations have vanished if one in so many is left, and the worst of these is at most this part of what it was. Messages are predicted about as well if the mean log-likelihood falls by less than this. (Quicksilver sends hardly any
/// messages in between: violations by 172 us of which 3.8 us are left, messages predicted worse by 0.06.)
const FEW_LEFT: u64 = 10;
const VANISHED: f64 = 0.05;
const SLIGHT: f64 = 0.1;
/// Violations prove nothing that are smaller than this part of what messages that wait tell clocks to. Of seven recordings whose violations were smaller than all of it, the estimate was worse in three at 0.29 to 0.41 and in one at
/// 0.89, and better in those at 0.48, 0.60 and 0.85.
const DOUBTED: f64 = 0.45;
/// But an estimate that moves clocks apart by hardly more than the worst violation does no more than that shows: of 19 recordings of public programs with offsets that only this rule decided, the estimate was as close to the truth or up to 3 times
/// as close in the 12 in which it moved clocks by at most 1.4 times the worst violation, and further from it in five of seven in which it did by 1.6 to 5.9 times.
const SHOWN: f64 = 1.5;
/// The worst violation that the estimate leaves is at most so many times as large as that of the recorded clocks, if receives are too early by less than this part in the mean, else no larger. Of 163 generated and
/// recorded traces without offsets five had a larger one, all of which the estimate made worse; of 76 recordings with offsets three, by 1.1 times where the estimate was as good, and by 1.7 and 25 times where it was
/// two and 15 times as far from the truth. Around a jump one may be a little larger. Where no offset was recorded and many violations are left, the worst one is at most this part as well: of 74 recordings four
/// had a larger one, three of which the estimate made worse (up to 16 times as far from the truth), and one better (1.6 times).
const LARGER: f64 = 2.0;
const HALF: f64 = 0.5;
/// Where nearly all messages are late, and predict each other well with any clocks, estimated clocks differ from recorded ones by at most so many times the worst violation: of the same recordings two differed by
/// 2.7 and 4.8 times that, and were twice as far from the truth; the other ones by at most 2.1.
const BEYOND: f64 = 2.5;
/// There it leaves fewer than [`MANY`] violations, or none that is worse than this part of the worst one of the recorded clocks: of recordings with offsets in which it left more, those with at most 0.02 were up to 14
/// times as close to the truth, one with 0.11 was as close, and those with 0.18 to 0.46 were 1.3 to 3.3 times as far from it.
const NEARLY_AS_BAD: f64 = 0.15;
/// Then the estimate differs from the recorded clocks by at most so many times the worst violation: those recordings by 1.6 to 2.1 times, a generated trace whose clocks stand still, and which came out better, by 0.6.
const SIMILAR: f64 = 1.5;
/// Where no offset was recorded, the estimate leaves at most this part of the violations.
const FEWER: f64 = 0.9;
/// Violations of which an estimate that agrees with recorded offsets has to explain all but one in so many, to need no significant gain besides; and to be preferred to times that leave none as they were recorded.
const ENOUGH: u64 = 10;
const MOSTLY: u64 = 4;
/// Half round trips by which receives are too early with recorded clocks in the mean over all of them, and how many times as much as with the estimated ones, from which on that is evidence enough. Of 79 generated
/// traces in which the gain was not significant this was so in 13: the estimate was 2.8 to 440 times as close to the truth in 11, and in two as close by a fifth. With less, some were up to four times as far from it.
const HOPELESS: f64 = 40.0;
/// How many times as much too early receives are in the mean as with an estimate that contradicts no recorded offset by more than this part of the worst violation, and differs from the recorded clocks by no more than so many
/// times that anywhere: it does what violations demand. Ten of 800 traces of an independent generator were refused for nothing but an insignificant gain although this was so: the estimate was 19 times as close to the truth in one, 1.2 to 3.3
/// times in eight, and as close in one; of those for which it was not so, it was further from it in half.
const RESOLVED: f64 = 8.0;
const SMALL: f64 = 0.6;
const AS_SHOWN: f64 = 1.3;
/// Or so much more than half of all recorded offsets it contradicts one of them, and by no more than [`AS_SHOWN`]: one measurement that is wrong leaves violations that are about as bad. Of 1,300 traces of another generator twelve change: seven in which this was found and four others
/// came 1.6 to 34 times as close to the truth, one was 1.07 times as far from it.
const ALONE_WRONG: f64 = 8.0;
/// An estimate that bends back and forth leaves at most so many of so many violations. Of 34 random scenarios whose clocks jump or fail nine had such an estimate that nothing else spoke against: errors between
/// processes fell in seven (351 -> 10 us, 167 -> 81, 97 -> 64) and rose in two (1.5 -> 1.8 and 1.9), whose errors to absolute time fell.
const TAMED: (u64, u64) = (3, 4);
/// How many times the worst violation estimated clocks differ from recorded ones at most, beside what crystals drift apart in the run: where all messages wait for 80 ms, an estimate that agreed with a single offset of each clock and left no
/// violation (0.7 ms with the recorded ones) drifted away by 150 ms. Where messages do not wait for that long they show clocks that jump, which were off by up to 12 times the worst violation of simulated pipelines.
const ABSURD: f64 = 4.0;
/// Part of the worst violation by which recorded offsets may be wrong where they alone tell clocks apart.
const IN_A_RING: f64 = 0.2;

/// Which clocks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelectedClocks {
    /// Those with recorded offsets.
    Recorded,
    /// The estimated ones.
    Estimated,
    /// Those without recorded offsets.
    Unmeasured,
}

/// Which clocks are taken, and why.
#[derive(Debug)]
pub(crate) struct Selected {
    /// Which.
    pub clocks: SelectedClocks,
    /// In words, for the report.
    pub reason: String,
    /// Whether there was no estimate that could have been taken: there are no messages, or it has run away.
    pub without_estimate: bool,
    /// Whether an estimate was refused although the clocks that were taken leave violations.
    pub refused: bool,
    /// What the recorded clocks leave, and what those do that were taken; none where that was not counted.
    pub left: Option<[ViolationsLeft; 2]>,
    /// Whether these are known to better than the worst that they leave.
    pub telling: bool,
    /// Whether the recorded clocks were kept although they cannot be right, by what they leave.
    pub hopeless: bool,
}

impl Selected {
    /// The recorded clocks, for a reason.
    pub(crate) fn recorded(reason: String) -> Selected {
        Selected {
            clocks: SelectedClocks::Recorded,
            reason,
            without_estimate: false,
            refused: false,
            left: None,
            telling: false,
            hopeless: false,
        }
    }

    /// The recorded clocks, which leave these violations, since something speaks against the estimate.
    fn refused(reason: String, left: ViolationsLeft, fit: &ClockFit) -> Selected {
        let hopeless = left.are_of_wrong_clocks(fit);
        Selected { refused: left.count > 0, left: Some([left; 2]), hopeless, ..Selected::recorded(reason) }
    }

    /// Whether estimated clocks were taken that leave more than a few of the violations: many of them, or ones that are worse than what the clocks are known to.
    pub(crate) fn leaves_some(&self) -> bool {
        self.clocks == SelectedClocks::Estimated
            && self.left.is_some_and(|[before, after]| {
                let part = if self.telling { EXPLAINED } else { MOSTLY };
                after.count > before.count / part
            })
    }

    /// Whether estimated clocks were taken that leave no more violations than others, and none that is half as bad as the worst of those.
    pub(crate) fn leaves_less_than(&self, others: &Selected) -> bool {
        self.clocks == SelectedClocks::Estimated
            && self.left.zip(others.left).is_some_and(|([_, own], [_, others])| own.is_less_than(&others))
    }

    /// Whether estimated clocks were taken by which receives are less than half as much too early as by others, in the mean and in the worst case, however many are.
    pub(crate) fn is_nearer_than(&self, others: &Selected) -> bool {
        self.clocks == SelectedClocks::Estimated
            && self.left.zip(others.left).is_some_and(|([_, own], [_, others])| own.is_nearer_than(&others))
    }

    /// Whether receives are no earlier in the mean than by others; false where that was not counted.
    pub(crate) fn leaves_no_worse_than(&self, others: &Selected) -> bool {
        self.left.zip(others.left).is_some_and(|([_, own], [_, others])| own.mean <= others.mean)
    }

    /// Whether estimated clocks were taken that leave no violation.
    pub(crate) fn leaves_none(&self) -> bool {
        self.clocks == SelectedClocks::Estimated && self.left.is_some_and(|[_, after]| after.count == 0)
    }

    /// The violations that the estimated clocks leave, in words.
    pub(crate) fn violations_left(&self) -> String {
        violations(self.left.map_or(0, |[_, after]| after.count))
    }

    /// The recorded clocks, since there is no estimate.
    pub(crate) fn for_want_of_others(reason: String) -> Selected {
        Selected { without_estimate: true, ..Selected::recorded(reason) }
    }
}

/// Decides between the recorded clocks, whose times `loaded` has, the estimated ones (`refined`), and the ones without recorded offsets. Where the estimated ones are taken, it has
/// their times afterwards, else any. If the estimated ones are asked for by their `method`, only more violations speak against them, not how they `fit`; `resolution` is that of the timer, in ticks per second.
/// Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn choose(
    transport: &mut dyn Transport,
    workers: Workers,
    loaded: &mut LocalTrace,
    refined: &RefinedClocks,
    method: Method,
    fit: ClockFit,
    resolution: u64,
) -> Result<Selected> {
    let automatic = method == Method::Auto;
    if automatic
        && fit.is_better_unmeasured()
        && leaves_none_unmeasured(transport, workers, loaded)?
        // Messages that wait for longer than clocks are apart leave no violation with any of them.
        && (fit.may_be_unmeasured() || !leaves_none_recorded(transport, workers, loaded)?)
    {
        let gain = fit.unmeasured.map_or(String::new(), |without| evidence(without.gain));
        let reason = format!("without recorded offsets there are no violations{gain}");
        return Ok(Selected { clocks: SelectedClocks::Unmeasured, ..Selected::recorded(reason) });
    }
    if automatic
        && fit.is_scatter()
        && leaves_none_unmeasured(transport, workers, loaded)?
        && (fit.is_certainly_scatter() || leaves_none_recorded(transport, workers, loaded)?)
    {
        let reason = "recorded offsets are no larger than what their measurements scatter by, and without them there are no violations";
        return Ok(Selected { clocks: SelectedClocks::Unmeasured, ..Selected::recorded(reason.to_owned()) });
    }
    if automatic && fit.may_be_synchronised() && leaves_none_unmeasured(transport, workers, loaded)? {
        let reason =
            "recorded offsets are no larger than what one may be off, and without them there are no violations";
        return Ok(Selected { clocks: SelectedClocks::Unmeasured, ..Selected::recorded(reason.to_owned()) });
    }
    let recorded = check_clock_condition(transport, workers, &loaded.program, &loaded.program.times())?;
    loaded.retime(workers, refined);
    let estimated = check_clock_condition(transport, workers, &loaded.program, &loaded.program.times())?;
    let (left, remains) = (ViolationsLeft::of(&recorded), ViolationsLeft::of(&estimated));
    let (before, after) = (left.count, remains.count);
    tracing::debug!("violations with the recorded clocks {left:?}, with estimated ones {remains:?}; {fit:?}");
    // The times as they were recorded are possible, and neither the offsets nor the estimate are.
    let unexplained = left.may_come_from_offsets(&fit) && left.are_unexplained(&remains);
    let errors = left.count >= ENOUGH && fit.has_unsteady_offsets();
    if automatic && (unexplained || errors) && leaves_none_unmeasured(transport, workers, loaded)? {
        let reason = format!(
            "without recorded offsets there are no violations, with them {}, with estimated clocks {}",
            count(before),
            count(after)
        );
        return Ok(Selected { clocks: SelectedClocks::Unmeasured, ..Selected::recorded(reason) });
    }
    if after > before && !(automatic && fit.disjoint) {
        let reason =
            format!("the estimated clocks would leave {}, the recorded clocks {}", violations(after), count(before));
        return Ok(Selected::refused(reason, left, &fit));
    }
    if automatic && left.tell_more(&fit) {
        let [worst, vague] = [left.worst, fit.vague].map(|ticks| duration(Ticks(ticks as i64).seconds(resolution)));
        // Nor would lines be better.
        return Ok(Selected::recorded(format!(
            "messages tell too little of the clocks: the recorded ones leave violations of {worst} at most, and no less than {vague} would speak for others"
        )));
    }
    if automatic && let Some(objection) = objection(&fit, &left, &remains) {
        return Ok(Selected::refused(objection, left, &fit));
    }
    let unclear = fit.gain.is_some_and(|gain| !gain.is_significant());
    let mut gain = fit.gain.map_or(String::new(), evidence);
    if unclear && let Some(prompt) = fit.prompt_gain.filter(|_| fit.is_significantly_better()) {
        gain += &format!(", those of prompt round trips better by {:.2} ± {:.2}", prompt.mean, prompt.error);
    }
    if unclear && left.is_hopeless(&fit, &remains) {
        let early = duration(Ticks(left.mean as i64).seconds(resolution));
        gain += &format!("; with the recorded clocks, receives are too early by {early} on average");
    }
    let ended = "by the recorded clocks, some processes of the program had ended before others began";
    let reason = if after < before {
        let are = if after == 1 { "is" } else { "are" };
        let ended = if fit.disjoint { format!("; {ended}") } else { String::new() };
        format!("{} {are} left, {} with the recorded clocks{ended}", violations(after), count(before))
    } else if fit.disjoint {
        ended.to_owned()
    } else if before == 0 && fit.one_way && fit.too_slow {
        "by the recorded clocks, messages between some processes take longer than any network does, although they are waited for".to_owned()
    } else {
        "the estimated clocks agree better with the messages".to_owned()
    };
    let straight = if fit.straight_when_prompt {
        "; straight lines predict those of prompt round trips better than curves"
    } else if fit.straight {
        "; straight lines predict them as well as curves"
    } else {
        ""
    };
    let (left, telling) = (Some([left, remains]), remains.worst >= UNKNOWN * fit.half_trip);
    Ok(Selected { clocks: SelectedClocks::Estimated, left, telling, ..Selected::recorded(reason + &gain + straight) })
}

/// Whether the times leave no violation as they were recorded, without offsets. Collective over the analysis ranks.
fn leaves_none_unmeasured(transport: &mut dyn Transport, workers: Workers, loaded: &mut LocalTrace) -> Result<bool> {
    let unmeasured = loaded
        .program
        .as_recorded(workers, |program| check_clock_condition(transport, workers, program, &program.times()))?;
    Ok(unmeasured.violated() == 0)
}

/// The times as they were recorded, of processes that share a clock, if they leave no violation. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn undisturbed(
    transport: &mut dyn Transport,
    workers: Workers,
    loaded: &mut LocalTrace,
) -> Result<Option<Selected>> {
    let reason = "all processes share a clock: recorded offsets differ by no more than the error of a measurement, and without them there are no violations";
    let unmeasured = Selected { clocks: SelectedClocks::Unmeasured, ..Selected::recorded(reason.to_owned()) };
    Ok(leaves_none_unmeasured(transport, workers, loaded)?.then_some(unmeasured))
}

/// Whether the times leave no violation with recorded offsets. Collective over the analysis ranks.
fn leaves_none_recorded(transport: &mut dyn Transport, workers: Workers, loaded: &LocalTrace) -> Result<bool> {
    let recorded = check_clock_condition(transport, workers, &loaded.program, &loaded.program.times())?;
    Ok(recorded.violated() == 0)
}

/// What cross-validation says, as the end of a sentence: nothing where it has too few messages to say anything.
fn evidence(gain: Gain) -> String {
    let Gain { mean, error } = gain;
    if !(mean.is_finite() && error.is_finite()) {
        return String::new();
    }
    match format!("{:.2}", mean.abs()).as_str() {
        "0.00" => "; messages are predicted as well".to_owned(),
        by if mean > 0.0 => format!("; messages are predicted better by {by} ± {error:.2} (mean log-likelihood)"),
        by => format!("; messages are predicted worse by {by} ± {error:.2} (mean log-likelihood)"),
    }
}

/// A gain that says little, with its sign; nothing where there are too few messages to say anything.
fn measured(Gain { mean, error }: Gain) -> String {
    if !(mean.is_finite() && error.is_finite()) {
        return String::new();
    }
    let mean = format!("{mean:.2}");
    format!(" (by {}, standard error {error:.2})", if mean == "-0.00" { "0.00" } else { &mean })
}

fn violations(number: u64) -> String {
    plural(number, "violation")
}

/// The violations that clocks leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ViolationsLeft {
    count: u64,
    /// By how much the worst one is too early, in ticks.
    worst: f64,
    /// By how much logical receives are too early in the mean over all of them, in ticks.
    mean: f64,
}

impl ViolationsLeft {
    fn of(check: &ClockConditionCheck) -> ViolationsLeft {
        let worst = check.worst.as_ref().map_or(0, |worst| worst.ticks) as f64;
        ViolationsLeft { count: check.violated(), worst, mean: check.early.mean() }
    }

    /// Whether these are no more than others, and the worst of them is not half as bad as theirs.
    fn is_less_than(&self, others: &ViolationsLeft) -> bool {
        self.count <= others.count && self.worst < HALF * others.worst
    }

    /// Whether these are less than half as bad as others, in the mean and in the worst case.
    fn is_nearer_than(&self, others: &ViolationsLeft) -> bool {
        self.mean < HALF * others.mean && self.worst < HALF * others.worst
    }

    /// Whether violations may come from recorded offsets that are wrong as a whole. Then some are about as large: where all messages wait for longer than clocks are apart, no offset leaves no violation,
    /// and bends of the clocks leave small ones with the right ones.
    fn may_come_from_offsets(&self, fit: &ClockFit) -> bool {
        fit.unmeasured.is_some_and(|without| without.contradiction <= FROM_OFFSETS * self.worst)
    }

    /// Whether an estimate that leaves the violations `remaining` is worse than times that leave none as they were recorded.
    fn are_unexplained(&self, remaining: &ViolationsLeft) -> bool {
        self.count >= MANY && remaining.count > 0
            || self.count >= ENOUGH && remaining.count.saturating_mul(MOSTLY) > self.count
    }

    /// Whether an estimate from a few messages, or from late ones, is known less well than the violations are bad, which the logical clock corrects where they are.
    fn tell_more(&self, fit: &ClockFit) -> bool {
        self.count > 0 && self.worst < fit.vague && !fit.gain.is_some_and(|gain| gain.is_significant())
    }

    /// Whether these are violations of clocks that cannot be right: many, and receives are too early by far more than messages take in the mean over all of them.
    fn are_of_wrong_clocks(&self, fit: &ClockFit) -> bool {
        self.count >= MANY && fit.round_trips && self.mean > HOPELESS * fit.half_trip
    }

    /// Whether of several violations little is left in `remaining`: receives are hardly too early any more.
    fn is_resolved(&self, remaining: &ViolationsLeft) -> bool {
        self.count >= ENOUGH && self.mean > RESOLVED * remaining.mean
    }

    /// Whether clocks are so wrong, beside others that leave the violations `remaining`, that this is evidence enough.
    fn is_hopeless(&self, fit: &ClockFit, remaining: &ViolationsLeft) -> bool {
        fit.round_trips && self.mean > HOPELESS * fit.half_trip.max(remaining.mean)
    }
}

/// What speaks against estimated clocks that leave the violations `remaining` instead of `left`. `docs/clocks.md` has the rules.
fn objection(fit: &ClockFit, left: &ViolationsLeft, remaining: &ViolationsLeft) -> Option<String> {
    let (before, after, worst) = (left.count, remaining.count, left.worst);
    if before == 0 {
        let known_better = fit.is_off_what_repeats();
        let fit = fit.by_messages();
        let evident =
            fit.is_convincing() && fit.matters() || fit.bends() || fit.refines() || fit.extends() || fit.foretells();
        let evident = evident && !known_better;
        // What waits tell is what messages that go one way have to be, and no evidence beside them; unless the recorded clocks are impossible by that, or recorded offsets agree with it.
        let evident = if fit.one_way { fit.too_slow || fit.bends_one_way() } else { evident } || fit.disjoint;
        return (!evident).then(|| "the recorded clocks leave no violations".to_owned());
    }
    let explained = before >= MANY && after.saturating_mul(EXPLAINED) <= before;
    let mostly = before >= ENOUGH && after.saturating_mul(MOSTLY) <= before;
    if remaining.worst > LARGER * worst || remaining.worst > worst && remaining.mean > HALF * left.mean {
        return Some("the estimated clocks would leave a worse violation than the recorded ones do".into());
    }
    if fit.disjoint {
        return None;
    }
    if after == 0 && fit.only_corrects(worst) {
        return None;
    }
    let significant = fit.is_significantly_better();
    let unknown = worst < UNKNOWN * fit.half_trip;
    if unknown && !significant {
        return Some("the violations of the recorded clocks are within the uncertainty of an estimate".into());
    }
    if fit.steep && !significant && after.saturating_mul(FEW_LEFT) > before {
        return Some("the estimated clocks would drift apart as no clocks do, and leave many violations".into());
    }
    // Without a significant gain, violations explain no more than what they show.
    let shown = fit.offsets.most.is_none() || fit.once || fit.anywhere <= PROVEN * worst;
    if let Some(measured) = fit.offsets.most {
        if let Some(objection) = objection_of_offsets(fit, measured, left, remaining, Explained { explained, mostly }) {
            return Some(objection);
        }
    } else if fit.moved_apart > EXCESSIVE * worst + if fit.late || unknown { 0.0 } else { FAR * fit.half_trip } {
        return Some(
            "clocks without recorded offsets would be moved apart by far more than any violation shows".into(),
        );
    } else if after >= MANY && remaining.worst > HALF * worst {
        return Some("the estimated clocks would leave many violations, and some nearly as bad as before".into());
    } else if after as f64 <= FEWER * before as f64 {
        // Clocks that nobody has measured are no clocks to prefer.
        return None;
    }
    let vanished = before >= MANY && after.saturating_mul(FEW_LEFT) <= before && remaining.worst <= VANISHED * worst;
    if fit.is_denied() && !explained {
        return Some("the estimated clocks predict messages of prompt round trips worse than the recorded ones".into());
    }
    let contradicted = fit.offsets.most.unwrap_or(0.0);
    match fit.gain {
        // Explained violations are evidence enough.
        Some(gain) if mostly && shown && (gain.mean > 0.0 || gain.is_unclear()) && fit.agrees(worst) => None,
        // Nor are they less if hardly anything is left of them, and messages that come at long intervals are predicted about as well.
        Some(gain) if vanished && shown && gain.mean > -SLIGHT && fit.agrees(worst) => None,
        Some(gain) if explained && gain.is_likely() => None,
        Some(gain) if explained && gain.mean > 0.0 && fit.straight && fit.is_within_stated() => None,
        // So wrong that little can be learned from one half of the messages for the other.
        _ if left.is_hopeless(fit, remaining) && contradicted <= worst => None,
        // What the estimate changes is what violations demand.
        Some(_)
            if left.is_resolved(remaining)
                && fit.anywhere <= AS_SHOWN * worst
                && (contradicted <= SMALL * worst || fit.contradicts_few(ALONE_WRONG)) =>
        {
            None
        }
        Some(_) if before < SEVERAL && fit.anywhere < ALONE * worst && !fit.is_convincing() => {
            Some(format!("{} of the recorded clocks may have another cause", violations(before)))
        }
        Some(gain) if !significant => Some(format!(
            "the estimated clocks do not predict messages significantly better than the recorded ones{}",
            measured(gain)
        )),
        None if fit.misfit > if after < before { 1.0 } else { BETTER } => {
            Some("the recorded clocks agree with the messages as well as estimated clocks would".into())
        }
        _ => None,
    }
}

/// How many of the violations that recorded clocks leave vanish with estimated ones.
#[derive(Clone, Copy)]
struct Explained {
    /// So many that this speaks for the estimate by itself.
    explained: bool,
    /// Most of them.
    mostly: bool,
}

/// What recorded offsets, from which the estimate is `measured` ticks away at most, have against it.
fn objection_of_offsets(
    fit: &ClockFit,
    measured: f64,
    left: &ViolationsLeft,
    remaining: &ViolationsLeft,
    Explained { explained, mostly }: Explained,
) -> Option<String> {
    let (after, worst) = (remaining.count, left.worst);
    if fit.wild > 0.0 && after.saturating_mul(TAMED.1) > left.count.saturating_mul(TAMED.0) {
        return Some("the estimated clocks would bend back and forth as no clock does".into());
    }
    if fit.doubt > 0.0 && fit.anywhere > fit.crystals + ABSURD * worst {
        return Some("the estimated clocks would drift away from the recorded ones as no clocks do, and by far more than any violation shows".into());
    }
    let evident = fit.is_overwhelming() || fit.is_evident_when_prompt();
    if worst < DOUBTED * fit.doubt && fit.moved_apart > SHOWN * worst && !evident {
        return Some(
            "the violations of the recorded clocks are within the uncertainty of clocks estimated from waiting messages".into(),
        );
    }
    let credible = fit.is_overwhelming() && measured <= INCREDIBLE * worst;
    let explained = explained && (credible || fit.straight && fit.is_within_stated());
    let overwhelming = explained && fit.is_overwhelming();
    let known_elsewhere = !fit.confirmed && !fit.once && !overwhelming;
    if fit.late && fit.anywhere > BEYOND * worst && known_elsewhere {
        return Some(
            "nearly all messages are late, and the estimated clocks differ from the recorded ones by far more than any violation shows".into(),
        );
    }
    let as_bad = after >= MANY && remaining.worst > NEARLY_AS_BAD * worst;
    if fit.late && as_bad && !fit.once && fit.anywhere > SIMILAR * worst {
        return Some("the estimated clocks would leave many violations, and some nearly as bad as before".into());
    }
    let uncertain = (worst < fit.half_trip || fit.stated) && !fit.is_overwhelming();
    let proven = if uncertain { UNCERTAIN } else { PROVEN };
    if fit.contradiction > proven * worst && !fit.is_convincing() && !explained {
        let far = if fit.contradiction > PROVEN * worst { " far" } else { "" };
        return Some(format!(
            "the estimated clocks contradict the recorded offsets by{far} more than any violation shows"
        ));
    }
    if measured > IN_A_RING * worst && !fit.round_trips && !mostly {
        return Some(
            "messages go around in one direction only, and the estimated clocks contradict the recorded offsets".into(),
        );
    }
    None
}

#[cfg(test)]
#[path = "model_selection_tests.rs"]
mod tests;
