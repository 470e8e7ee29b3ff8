//! `--window`: a part of a trace by time.

/// A window of time in seconds after the first event of the trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeWindow {
    /// Where it begins; none for the first event.
    pub from: Option<super::Duration>,
    /// Where it ends; none for the last event.
    pub to: Option<super::Duration>,
}
