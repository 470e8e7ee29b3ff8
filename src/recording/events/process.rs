//! The process whose events are written, and what is left out.

use crate::recording::clocks::Counter;
use crate::recording::raw::RawFileHeader;
use std::collections::BTreeSet;

/// The process whose events are written.
#[derive(Debug)]
pub(in crate::recording) struct EventsOf<'a> {
    /// Of the file of its first thread.
    pub header: &'a RawFileHeader,
    /// Number of its files.
    pub threads: usize,
    /// The calls that failed, as a [`ProcessSurvey`](crate::recording::survey::ProcessSurvey) lists them.
    pub failed: &'a BTreeSet<(usize, u64)>,
    /// Its counter.
    pub counter: Option<Counter>,
}

/// Calls on what is not known, which have no communication events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) struct UnplacedCalls {
    /// On communicators whose members are not known.
    pub on_unknown_communicators: u64,
    /// On windows that are not known.
    pub on_unknown_windows: u64,
}
