//! Parts of a trace in forms that other tools read. Each analysis rank makes the text of its locations, rank 0 puts them in order:
//! the same bytes for any number of ranks. What is exported has to fit into the memory of rank 0.

mod flows;
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

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    /// The file.
    pub text: String,
    /// How many regions, violations and messages it has, in words.
    pub contents: String,
}
