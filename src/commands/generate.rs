//! `clc-replay man` and `clc-replay completions`.

use crate::cli::{CompletionsOptions, ManOptions, completions, man as write_pages};
use crate::commands::Outcome;
use clc_engine::comm::{AnalysisRank, Transport, agree};
use clc_trace::Result;

/// Writes the man pages. Rank 0 does it, for all.
///
/// # Errors
/// A page cannot be written.
pub fn man(transport: &mut dyn Transport, options: &ManOptions) -> Result<Option<Outcome>> {
    let first = transport.rank() == AnalysisRank::FIRST;
    let written = if first { write_pages(&options.directory) } else { Ok(Vec::new()) };
    let list = agree(transport, written)?;
    let text = list.iter().map(|path| format!("{}\n", path.display())).collect();
    Ok(first.then_some(Outcome::Text(text)))
}

/// The completions for a shell.
///
/// # Errors
/// None.
pub fn completions_of(transport: &mut dyn Transport, options: &CompletionsOptions) -> Result<Option<Outcome>> {
    let script = String::from_utf8_lossy(&completions(options.shell)).into_owned();
    Ok((transport.rank() == AnalysisRank::FIRST).then_some(Outcome::Text(script)))
}
