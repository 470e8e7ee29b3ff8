//! Corrects a trace from a program of one's own, in this process.
//!
//!     cargo run --example correct_trace -- TRACE CORRECTED
#![allow(clippy::print_stdout)]

use clc_replay::report::Violations;
use clc_replay::{Corrector, Error, Result};
use std::path::Path;

/// Corrects `trace` and says how many messages and collective operations were out of order before and after.
pub(crate) fn correct(trace: &Path, corrected: &Path) -> Result<String> {
    let report = Corrector::builder().build().run(trace, corrected)?;
    let Violations { raw, corrected, .. } = report.violations;
    let count = |stage: Option<clc_replay::report::StageViolations>| stage.map_or(0, |stage| stage.violated());
    Ok(format!("{} violations before, {} after: {:?}", count(raw), count(corrected), report.verdict))
}

#[allow(dead_code)] // the tests only want the function
fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(trace), Some(corrected)) = (arguments.next(), arguments.next()) else {
        return Err(Error::new("usage: correct_trace TRACE CORRECTED"));
    };
    println!("{}", correct(Path::new(&trace), Path::new(&corrected))?);
    Ok(())
}
