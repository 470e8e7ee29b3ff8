//! Parts of a trace in forms that other tools read. Each analysis rank makes the text of its locations, rank 0 puts them in order:
//! the same bytes for any number of ranks. A rank other than the first holds the text of its own locations.

mod flows;
mod lines;
mod perfetto;
mod threads;
mod times;
mod violations;

pub(crate) use perfetto::perfetto;
pub(crate) use times::ExportedTimes;
pub(crate) use violations::{HEAD as VIOLATIONS_HEAD, violations};

/// A window of exported time, both ends inclusive, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExportWindow {
    /// Where it begins.
    pub from: i64,
    /// Where it ends.
    pub to: i64,
}

impl ExportWindow {
    fn holds(&self, time: i64) -> bool {
        (self.from..=self.to).contains(&time)
    }
}
