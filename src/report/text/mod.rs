//! Results as text, in lines of less than 80 columns.

pub(crate) mod analysis;
pub(crate) mod conversion;
pub(crate) mod correction;
pub(crate) mod evaluation;
pub(crate) mod generated;
pub(crate) mod info;
pub(crate) mod locks;
pub(crate) mod pairs;
pub(crate) mod table;

use crate::report::Report;

/// The summary, in lines of less than 80 columns (paths may be longer), the verdict first.
pub fn text(report: &Report) -> String {
    match report.analysis {
        Some(_) => analysis::analysis_text(report, 10),
        None => correction::correction_text(report),
    }
}
