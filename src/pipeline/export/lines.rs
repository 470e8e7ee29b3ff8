//! The text of an export, as it is made: rank 0 writes it, the others hold theirs until it is their turn.

use crate::output::files::PendingFile;
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, agree};
use clc_trace::Result;

/// Bytes of text that a rank sends at once. Chosen by hand: rank 0 holds as much beside what it writes; smaller ones take more rounds of all ranks.
const PIECE: usize = 4 << 20;

/// Text that is made on one analysis rank.
pub(super) enum Lines {
    /// On rank 0.
    Written(PendingFile),
    /// On the others.
    Held(Vec<u8>),
}

impl Lines {
    /// Into `file` on rank 0.
    pub(super) fn new(file: Option<PendingFile>) -> Lines {
        file.map_or_else(|| Lines::Held(Vec::new()), Lines::Written)
    }

    /// Adds to what this rank makes.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn add(&mut self, text: &str) -> Result<()> {
        match self {
            Lines::Written(file) => file.add(text.as_bytes()),
            Lines::Held(held) => {
                held.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }

    /// Appends what all other ranks have made to the file of rank 0, in the order of ranks, and gives it back. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport, the file cannot be written.
    pub(super) fn joined(self, transport: &mut dyn Transport) -> Result<Option<PendingFile>> {
        let (mut file, held) = match self {
            Lines::Written(file) => (Some(file), Vec::new()),
            Lines::Held(held) => (None, held),
        };
        let mut most = [held.len().div_ceil(PIECE) as i64];
        transport.all_reduce(ReduceOp::Max, &mut most)?;
        let mut outcome = Ok(());
        for turn in (1..transport.size() as u32).map(AnalysisRank) {
            for piece in 0..most[0] as usize {
                let own = (transport.rank() == turn).then(|| held.chunks(PIECE).nth(piece)).flatten();
                let all = transport.gather(AnalysisRank::FIRST, own.unwrap_or_default())?;
                if let Some((file, all)) = file.as_mut().zip(all).filter(|_| outcome.is_ok()) {
                    outcome = file.add(&all[turn.place()]);
                }
            }
        }
        agree(transport, outcome)?;
        Ok(file)
    }
}
