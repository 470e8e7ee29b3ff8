//! Parts of a trace in forms that other tools read. Each analysis rank makes the text of its locations, rank 0 puts them in order:
//! the same bytes for any number of ranks. What is exported has to fit into the memory of rank 0.

mod perfetto;
mod violations;

pub use perfetto::perfetto;
pub use violations::{HEAD as VIOLATIONS_HEAD, violations};

use crate::pipeline::load::LocalTrace;
use clc_trace::format::duration;
use clc_trace::{Error, Result, Ticks};

/// A window of pre-synchronised time, both ends inclusive, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportWindow {
    /// Where it begins.
    pub from: i64,
    /// Where it ends.
    pub to: i64,
}

impl ExportWindow {
    /// From and to are counted from the first event; the ends of the trace where they are not given. A second has `resolution` ticks.
    ///
    /// # Errors
    /// The window lies outside the trace.
    pub fn new(loaded: &LocalTrace, from: Option<Ticks>, to: Option<Ticks>, resolution: u64) -> Result<ExportWindow> {
        let (first, last) = loaded.span.map_or((0, 0), |(first, last)| (first.0, last.0));
        let window = ExportWindow {
            from: from.map_or(first, |from| first.saturating_add(from.0)),
            to: to.map_or(last, |to| first.saturating_add(to.0)),
        };
        if window.from > last || window.to < first {
            let length = duration((Ticks(last) - Ticks(first)).seconds(resolution));
            return Err(Error::new(format!(
                "--window is outside the trace, which ends {length} after its first event"
            )));
        }
        Ok(window)
    }

    fn holds(&self, time: i64) -> bool {
        (self.from..=self.to).contains(&time)
    }
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// The file.
    pub text: String,
    /// Regions, or violations, in it.
    pub items: u64,
    /// Messages in it (of violations, those that are messages).
    pub messages: u64,
}
