//! What models of the clocks are compared by ([`super::selection`]).

use super::anchor::Anchor;
use super::grid::Grid;
use super::observations::{Observations, Offsets};

/// The messages in windows of one length, and the clocks by which they were seen.
#[derive(Debug)]
pub(crate) struct TrialData {
    /// The windows.
    pub grid: Grid,
    /// The messages.
    pub observations: Observations,
    /// The clocks so far.
    pub now: Offsets,
    /// Other clocks to begin with, if these predict messages better.
    pub otherwise: Option<Offsets>,
    /// Recorded offsets.
    pub anchors: Vec<Anchor>,
}
