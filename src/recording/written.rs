//! What one process of a recording has become.

use crate::recording::events::UnplacedCalls;
use crate::recording::nodes::samples::Sampled;
use clc_trace::{ClockOffset, LocationId};

/// What one process has become.
#[derive(Default)]
pub(super) struct WrittenProcess {
    pub(super) threads: Vec<(LocationId, u64)>,
    pub(super) offsets: Vec<ClockOffset>,
    /// First and last time that is shown.
    pub(super) span: Option<(i64, i64)>,
    pub(super) largest: i64,
    pub(super) unplaced: UnplacedCalls,
    /// Events that have lost their fields, since a native trace cannot hold them.
    pub(super) without_fields: u64,
    /// Samples of its node, if it has taken them.
    pub(super) sampled: Option<Sampled>,
}
