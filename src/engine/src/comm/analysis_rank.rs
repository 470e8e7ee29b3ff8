//! Which of the processes that analyse.

use clc_trace::number;

number! {
    /// A rank of the analysis: one of those that replay, not of the application. It hosts a block of the application's timelines
    /// ([`Placement`](crate::matching::placement::Placement)); with as many ranks as processes, rank r hosts process r.
    AnalysisRank(u32), one per "analysis rank"
}

impl AnalysisRank {
    /// Rank 0, which reads the definitions, decides for all, and reports.
    pub const FIRST: AnalysisRank = AnalysisRank(0);

    /// The rank at a place of a list with one element per rank.
    #[inline]
    pub fn at(place: usize) -> AnalysisRank {
        AnalysisRank(place as u32)
    }

    /// The first `size` ranks, in order.
    pub fn all(size: usize) -> impl DoubleEndedIterator<Item = AnalysisRank> + ExactSizeIterator {
        (0..size).map(AnalysisRank::at)
    }
}
