//! Results as text, in lines of less than 80 columns.

pub mod analysis;
pub mod conversion;
pub mod correction;
pub mod evaluation;
pub mod info;
pub mod locks;
pub mod made;
pub mod pairs;
pub mod table;

use crate::report::Report;

/// The summary, in lines of less than 80 columns (paths may be longer), the verdict first.
pub fn text(report: &Report) -> String {
    match report.analysis {
        Some(_) => analysis::analysis_text(report, 10),
        None => correction::correction_text(report),
    }
}
