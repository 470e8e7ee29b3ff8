//! The times of an event that are compared with each other.

use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};

/// A phase of a correction, or the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CorrectionPhase {
    /// As recorded.
    Raw,
    /// After pre-synchronisation.
    Presync,
    /// After the replays, without backward amortisation.
    Forward,
    /// In the corrected trace.
    Final,
    /// The true times, with which those of the phases are compared.
    Truth,
}

impl CorrectionPhase {
    /// All of them in their order, the truth at last.
    pub(crate) const ALL: [CorrectionPhase; 5] = [
        CorrectionPhase::Raw,
        CorrectionPhase::Presync,
        CorrectionPhase::Forward,
        CorrectionPhase::Final,
        CorrectionPhase::Truth,
    ];

    /// In reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CorrectionPhase::Raw => "raw",
            CorrectionPhase::Presync => "presync",
            CorrectionPhase::Forward => "forward",
            CorrectionPhase::Final => "final",
            CorrectionPhase::Truth => "truth",
        }
    }
}

/// Something of each phase and of the truth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByPhase<T>([T; CorrectionPhase::ALL.len()]);

impl<T> ByPhase<T> {
    /// Of each phase what `of` gives for it.
    pub(crate) fn new(of: impl FnMut(CorrectionPhase) -> T) -> Self {
        ByPhase(CorrectionPhase::ALL.map(of))
    }

    /// All, in the order of the phases.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CorrectionPhase, &T)> {
        CorrectionPhase::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<CorrectionPhase> for ByPhase<T> {
    type Output = T;

    fn index(&self, phase: CorrectionPhase) -> &T {
        &self.0[phase as usize]
    }
}

impl<T> IndexMut<CorrectionPhase> for ByPhase<T> {
    fn index_mut(&mut self, phase: CorrectionPhase) -> &mut T {
        &mut self.0[phase as usize]
    }
}
