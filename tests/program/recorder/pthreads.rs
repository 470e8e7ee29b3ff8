//! Threads that programs make themselves: who made them, when they began and ended, and who waited for them.

use super::{App, Library, MPICH, OPEN_MPI, events};
use crate::common::run;
use std::collections::BTreeMap;
use std::process::Command;

/// A thread by the process and its number in it.
type Thread = (String, String);

/// The times of the steps of each thread and the locations they are of, by what `otf2-print` calls them.
fn steps(app: &App) -> BTreeMap<Thread, BTreeMap<String, (u64, u64)>> {
    let anchor = app.recorded().join("traces.otf2");
    let printed = run(Command::new("otf2-print").arg(anchor)).expect(0, "otf2-print");
    let mut threads: BTreeMap<Thread, BTreeMap<String, (u64, u64)>> = BTreeMap::new();
    for line in printed.stdout.lines().filter(|line| line.starts_with("THREAD_")) {
        let (event, fields) = line.split_once("Thread Contingent: ").expect("a contingent");
        let (process, number) = fields.split_once(", Sequence Count: ").expect("a number");
        let words: Vec<&str> = event.split_whitespace().collect();
        let [kind, location, time] = words[..] else { panic!("{line}") };
        let step = (time.parse().expect("a time"), location.parse().expect("a location"));
        let others = threads.entry((process.to_owned(), number.to_owned())).or_default();
        assert_eq!(others.insert(kind.to_owned(), step), None, "once: {line}");
    }
    threads
}

#[track_caller]
fn records_threads(library: Library) {
    let app = App::build(library, library.compiler, "pthreads.c", &[]);
    let ended = run(&mut app.record(&[], 2, &[])).expect(0, "record");
    let said = |name: &str| {
        let number = ended.stdout.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok());
        2 * number.expect("a number")
    };
    let threads = steps(&app);
    let with = |kind: &str| threads.values().filter(|steps| steps.contains_key(kind)).count();
    // The silent thread has no location; that of the detached one has nobody who waits for it.
    assert_eq!(threads.len(), said("made"), "{threads:?}");
    assert_eq!(["THREAD_CREATE", "THREAD_BEGIN", "THREAD_END"].map(with), [said("made"); 3], "{threads:?}");
    assert_eq!(with("THREAD_WAIT"), said("waited"), "{threads:?}");
    for (thread, steps) in &threads {
        let step = |kind: &str| steps.get(kind).copied();
        let [Some(create), Some(begin), Some(end)] = ["THREAD_CREATE", "THREAD_BEGIN", "THREAD_END"].map(step) else {
            panic!("{thread:?}: {steps:?}")
        };
        assert!(create.0 <= begin.0 && begin.0 <= end.0, "{thread:?}: {steps:?}");
        assert!(begin.1 == end.1 && create.1 != begin.1, "{thread:?}: {steps:?}");
        if let Some(wait) = step("THREAD_WAIT") {
            assert!(end.0 <= wait.0 && wait.1 == create.1, "{thread:?}: {steps:?}");
        }
    }
    let counts = events(&app.recorded());
    assert_eq!(counts["ENTER"], counts["LEAVE"]);
    let report = crate::common::report(&app.recorded(), &["check"], 0);
    let (checked, violated) = crate::common::found(&report, "thread_creation");
    assert_eq!((checked, violated), ((said("made") + said("waited")) as u64, 0), "{report}");
}

#[test]
fn threads_that_a_program_makes_are_recorded_with_open_mpi() {
    records_threads(OPEN_MPI);
}

#[test]
fn threads_that_a_program_makes_are_recorded_with_mpich() {
    records_threads(MPICH);
}
