//! The fault matrix: whatever is wrong with the input or with the machine, a result or one clear line, and nothing lost.
//!
//! Each case runs the real program, alone and under the launcher, with a time limit. Checked in every case: exit status, message, the
//! input's bytes, what is left on disk, and that no process is left. The table in `docs/reliability.md` is compared with the cases here;
//! with the environment variable `UPDATE_DOCS` it is written anew.

#[path = "../common/mod.rs"]
mod common;

mod case;
mod environment;
mod files;
mod mpi_calls;
mod semantics;
mod shim;
mod signals;
mod sweep;
mod table;

use case::{Case, act};
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::Arc;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let cases: Vec<Arc<Case>> = all().into_iter().map(Arc::new).collect();
    let mut trials = Vec::new();
    let table = table::of(&cases);
    trials.push(Trial::test("the_table_in_the_documentation", move || table::compare(&table)));
    for (name, sweep) in sweep::all() {
        trials.push(Trial::test(format!("sweep::{name}"), move || guarded(sweep)));
    }
    for case in cases {
        for &ranks in case.ranks {
            let case = case.clone();
            let name = format!("{}::{}::{ranks}", case.group, case.name);
            trials.push(Trial::test(name, move || guarded(|| act(&case, ranks))));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// All cases, in the order of the table.
fn all() -> Vec<Case> {
    let groups: [(&'static str, Vec<Case>); 4] = [
        ("files", files::cases()),
        ("semantics", semantics::cases()),
        ("environment", environment::cases()),
        ("mpi", mpi_calls::cases()),
    ];
    let name = |(group, cases): (&'static str, Vec<Case>)| {
        cases.into_iter().map(move |case| Case { group, ..case }).collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(name).collect()
}

/// A panic is a failure with its message.
fn guarded(test: impl FnOnce()) -> Result<(), Failed> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(test)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default().into()
    })
}
