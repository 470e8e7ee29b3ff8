//! How much of the communication in a trace was compared: a trace in which nothing can be compared is not a consistent one.

use crate::report::{CallCount, EventCount, Matching, StageViolations, Verdict, Violations};
use serde::{Deserialize, Serialize};

/// Communications that were compared, and those that were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Messages and collective instances that were compared.
    pub checked: u64,
    /// What communicates and was compared with nothing: ends of messages without a partner, orders that were taken back, collective instances that are incomplete or
    /// of a kind that constrains nobody, ends of collectives that could not be put together, one-sided operations, calls of a kind of which none left a record.
    pub not_checked: u64,
    /// Those of them that are one-sided: accesses to windows that nothing orders which was compared, and post, start, complete or wait steps
    /// without a partner.
    pub one_sided: u64,
    /// Checked ones over both; null if there is nothing that communicates.
    pub share: Option<f64>,
}

/// Records of one-sided synchronisation that constrain nobody.
const ONE_SIDED: [&str; 2] = ["RmaSync", "RmaWaitChange"];

/// Collective operations that need not synchronise by what they are.
const HANDLES: [&str; 8] = [
    "create_handle",
    "destroy_handle",
    "win_create_handle",
    "win_destroy_handle",
    "win_allocate",
    "win_deallocate",
    "win_create_handle_and_allocate",
    "win_destroy_handle_and_deallocate",
];

impl Coverage {
    /// The share from which on what was checked speaks for the whole. Real traces have some ends without a partner (the measurement began late,
    /// requests were cancelled), and some have Alltoallv, of which nobody knows who waited; a recorder that leaves out a kind of records leaves out
    /// far more than a tenth.
    pub const ENOUGH: f64 = 0.9;

    /// Calls of a kind of which none left a record, from which on the recorder does not record them. Assumed: fewer may have failed, or gone to nobody.
    const UNRECORDED: u64 = 16;

    /// Of what was `checked`; `others` were found that are in no count of `matching`.
    pub fn new(checked: u64, matching: &Matching, others: u64, events: &[EventCount]) -> Coverage {
        let steps = matching.threads.iter().map(|steps| steps.left_out).fold(0, u64::saturating_add);
        let ends = [
            matching.unmatched_sends,
            matching.unmatched_receives,
            matching.undefined_peers,
            matching.contradicted_orders,
            others,
            steps,
        ];
        // Files order processes as well, but need not.
        let silent = matching.calls_without_records.iter();
        let is_of_files = |call: &CallCount| call.region.to_ascii_lowercase().contains("file_");
        let silent =
            silent.filter(|call| call.never_recorded && call.count >= Coverage::UNRECORDED && !is_of_files(call));
        let collectives = matching.collectives.iter().map(|op| {
            let unknown = if HANDLES.contains(&op.operation.as_str()) { 0 } else { op.unconstrained };
            op.incomplete.saturating_add(op.inconsistent).saturating_add(unknown)
        });
        let of_kind = events.iter().filter(|kind| ONE_SIDED.contains(&kind.kind.as_str()));
        let windows = &matching.windows;
        let fenced = matching.collectives.iter().any(|op| op.operation.starts_with("win_fence") && op.matched > 0);
        let accesses = [
            (windows.fence_accesses, fenced),
            (windows.group_accesses, windows.steps > 0),
            (windows.lock_accesses, false),
            (windows.unmatched_steps, false),
        ];
        let accesses = accesses.into_iter().filter(|(_, ordered)| !ordered).map(|(count, _)| count);
        let one_sided = of_kind.map(|kind| kind.count).chain(accesses).fold(0, u64::saturating_add);
        // The other ends of their messages may be among those without a partner.
        let alone = matching.unmatched_sends.saturating_add(matching.unmatched_receives);
        let silent = silent.map(|call| call.count).fold(0, u64::saturating_add).saturating_sub(alone);
        let not_checked = ends.into_iter().chain(collectives).chain([silent]).fold(one_sided, u64::saturating_add);
        let all = checked.saturating_add(not_checked);
        Coverage { checked, not_checked, one_sided, share: (all > 0).then(|| checked as f64 / all as f64) }
    }

    /// What was checked as a share, in words; nothing if that is all.
    pub fn words(&self) -> Option<String> {
        let share = self.share.filter(|_| self.not_checked > 0)?;
        // Never rounded up to all, or down to nothing.
        let thousandths = (share * 1000.0).floor();
        Some(match thousandths > 0.0 {
            true => format!("{:.1} %", thousandths / 10.0),
            false if self.checked > 0 => "less than 0.1 %".to_owned(),
            false => "0 %".to_owned(),
        })
    }
}

impl Verdict {
    /// The outcome for a trace of so many processes. The last stage decides whether violations are left, the others whether there were any; and
    /// that none was found says something only if enough was compared. A single process has one clock, with which nobody can disagree.
    pub fn new(violations: &Violations, coverage: &Coverage, processes: u64) -> Verdict {
        let stages = [&violations.raw, &violations.presynchronised, &violations.corrected];
        let mut violated = stages.into_iter().flatten().map(StageViolations::violated);
        match violated.next_back() {
            Some(left) if left > 0 => Verdict::Violated,
            _ if coverage.checked == 0 && (coverage.not_checked > 0 || processes != 1) => Verdict::NothingToCheck,
            _ if coverage.share.is_some_and(|share| share < Coverage::ENOUGH) => Verdict::PartlyChecked,
            _ if violated.any(|count| count > 0) => Verdict::Corrected,
            _ => Verdict::Consistent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CollectiveCounts, PointToPointCheck, WindowUse};

    fn violations(checked: u64, raw: u64, left: u64) -> Violations {
        let stage = |violated| {
            Some(StageViolations {
                point_to_point: PointToPointCheck { checked, violated },
                ..StageViolations::default()
            })
        };
        Violations { raw: stage(raw), presynchronised: stage(left), corrected: None }
    }

    fn verdict(checked: u64, unmatched: u64, raw: u64, left: u64) -> Verdict {
        let matching = Matching { unmatched_sends: unmatched, ..Matching::default() };
        Verdict::new(&violations(checked, raw, left), &Coverage::new(checked, &matching, 0, &[]), 2)
    }

    #[test]
    fn calls_that_never_leave_a_record_are_not_checked() {
        let call = |region: &str, count, never_recorded| CallCount { region: region.to_owned(), count, never_recorded };
        let calls = |region, never_recorded| call(region, 900, never_recorded);
        let of = |calls| {
            let matching = Matching { calls_without_records: vec![calls], ..Matching::default() };
            Verdict::new(&violations(100, 0, 0), &Coverage::new(100, &matching, 0, &[]), 2)
        };
        assert_eq!(of(calls("MPI_Sendrecv", true)), Verdict::PartlyChecked);
        // Some of these went to nobody, perhaps.
        assert_eq!(of(calls("MPI_Send", false)), Verdict::Consistent);
        assert_eq!(of(calls("MPI_File_open", true)), Verdict::Consistent);
        // They may have failed.
        assert_eq!(of(call("MPI_Barrier", 15, true)), Verdict::Consistent);
        assert_eq!(of(call("MPI_Barrier", 16, true)), Verdict::PartlyChecked);
        let calls_without_records = vec![calls("MPI_Mrecv", true)];
        let matching = Matching { calls_without_records, unmatched_sends: 900, ..Matching::default() };
        assert_eq!(Coverage::new(100, &matching, 0, &[]).not_checked, 900);
    }

    #[test]
    fn only_what_was_checked_is_consistent() {
        assert_eq!(verdict(400, 0, 0, 0), Verdict::Consistent);
        assert_eq!(verdict(400, 0, 3, 0), Verdict::Corrected);
        assert_eq!(verdict(0, 800, 0, 0), Verdict::NothingToCheck);
        assert_eq!(verdict(1, 399, 0, 0), Verdict::PartlyChecked);
        assert_eq!(verdict(1, 399, 1, 0), Verdict::PartlyChecked);
        // A violation is one, however little was checked.
        assert_eq!(verdict(1, 399, 1, 1), Verdict::Violated);
        // Nine tenths are enough.
        assert_eq!(verdict(900, 100, 0, 0), Verdict::Consistent);
        assert_eq!(verdict(899, 101, 0, 0), Verdict::PartlyChecked);
        assert_eq!(verdict(0, 0, 0, 0), Verdict::NothingToCheck);
    }

    #[test]
    fn one_process_agrees_with_itself() {
        let nothing = Coverage::default();
        assert_eq!(Verdict::new(&violations(0, 0, 0), &nothing, 1), Verdict::Consistent);
        assert_eq!(Verdict::new(&violations(0, 0, 0), &nothing, 0), Verdict::NothingToCheck);
    }

    #[test]
    fn everything_that_communicates_is_counted_once() {
        let collective = |operation: &str, incomplete, inconsistent, unconstrained| CollectiveCounts {
            operation: operation.into(),
            matched: 50,
            incomplete,
            inconsistent,
            unconstrained,
            unconstrained_reasons: Vec::new(),
        };
        let matching = Matching {
            unmatched_sends: 1,
            unmatched_receives: 2,
            undefined_peers: 4,
            contradicted_orders: 512,
            collectives: vec![
                collective("barrier", 8, 16, 0),
                collective("alltoallv", 0, 0, 32),
                collective("create_handle", 0, 0, 7),
                collective("win_fence", 0, 0, 0),
            ],
            windows: WindowUse {
                fence_accesses: 5,
                lock_accesses: 200,
                unmatched_steps: 56,
                steps: 9,
                group_accesses: 7,
            },
            ..Matching::default()
        };
        let kind = |kind: &str, count| EventCount { kind: kind.into(), count };
        let events = [kind("RmaPut", 99), kind("RmaSync", 128), kind("MpiSend", 5), kind("RmaCollectiveEnd", 77)];
        let coverage = Coverage::new(1000, &matching, 64, &events);
        assert_eq!(coverage.not_checked, 1023);
        assert_eq!(coverage.one_sided, 384);
        assert_eq!(coverage.share, Some(1000.0 / 2023.0));
    }

    #[test]
    fn a_share_is_never_rounded_up() {
        let words = |checked, unmatched_sends| {
            let matching = Matching { unmatched_sends, ..Matching::default() };
            Coverage::new(checked, &matching, 0, &[]).words()
        };
        assert_eq!(words(10, 0), None);
        assert_eq!(words(0, 0), None);
        assert_eq!(words(99_999, 1).as_deref(), Some("99.9 %"));
        assert_eq!(words(1, 399).as_deref(), Some("0.2 %"));
        assert_eq!(words(1, 3_999).as_deref(), Some("less than 0.1 %"));
        assert_eq!(words(0, 800).as_deref(), Some("0 %"));
    }
}
