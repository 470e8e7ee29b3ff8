//! A small trace of which one file has any contents. Every job comes to a result or to an error of one line, the input stays as it
//! is, and there is an output after success only, and nothing else.

use super::Choices;
use super::bench::{Bench, proper};
use super::seal::seal;
use std::cell::OnceCell;

/// Which file is replaced, and the trace that it belongs to. Markers and snapshots are not there otherwise.
const FILES: [(&str, &str); 10] = [
    ("otf2", "traces.otf2"),
    ("otf2", "traces.def"),
    ("otf2", "traces/0.def"),
    ("otf2", "traces/0.evt"),
    ("otf2", "traces/1.evt"),
    ("otf2", "traces.marker"),
    ("otf2", "traces/0.snap"),
    ("native.clct", "definitions.clcd"),
    ("native.clct", "events/0.clce"),
    ("native.clct", "events/1.clce"),
];
/// What is done: the arguments before the trace, those after it, and whether there is an output after success.
const JOBS: [(&[&str], &[&str], bool); 7] = [
    (&[], &["-o", "@output"], true),
    (&["check"], &["--html", "@page"], false),
    (&["info"], &[], false),
    (&["convert"], &["@output"], true),
    (&["perturb"], &["@output", "--anyway"], true),
    (&["export"], &["-o", "@output"], true),
    (&["analyze"], &["--html", "@page"], false),
];

thread_local! {
    static BENCH: OnceCell<Bench> = const { OnceCell::new() };
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.run(&["convert", "@otf2", "@native.clct"]).unwrap();
    bench
}

fn attempt(bench: &Bench, (trace, file): (&str, &str), job: usize, contents: &[u8]) -> Result<(), String> {
    let (before, after, writes) = JOBS[job];
    let trace_argument = format!("@{trace}");
    // A name that ends in .clct asks for a native trace.
    let output = if before == ["convert"] && trace == "otf2" { "@output.clct" } else { "@output" };
    let named = |&argument: &&'static str| if argument == "@output" { output } else { argument };
    let arguments: Vec<&str> =
        before.iter().copied().chain([trace_argument.as_str()]).chain(after.iter().map(named)).collect();
    let outcome = bench.with_contents(&format!("{trace}/{file}"), contents, || bench.run(&arguments))?;
    let exists = bench.remove(&output[1..]);
    match &outcome {
        Ok(()) if exists != writes => return Err(format!("{arguments:?}: output {exists} after success")),
        Err(error) if exists => return Err(format!("{arguments:?}: output after the error {error}")),
        _ => {}
    }
    if bench.names() != ["native.clct", "otf2"] {
        return Err(format!("{arguments:?}: something was left behind: {:?}", bench.names()));
    }
    proper(&outcome)
}

/// Splits the first byte: which file, which job, whether checksums are made right.
fn split(choice: usize) -> (usize, usize, bool) {
    (choice % FILES.len(), choice / FILES.len() % JOBS.len(), choice / (FILES.len() * JOBS.len()) % 2 == 1)
}

/// The target: the first byte says which file, which job and whether checksums are made right; the others are the contents.
pub(crate) fn target(input: &[u8]) -> Result<(), String> {
    let mut choices = Choices(input);
    let (which, job, sealed) = split(choices.below(256));
    let mut contents = choices.0.to_vec();
    if sealed {
        seal(&mut contents);
    }
    BENCH.with(|cell| attempt(cell.get_or_init(bench), FILES[which], job, &contents))
}

/// An input for each file as it was recorded and each job; of those with checksums one that makes them right, too.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    BENCH.with(|cell| {
        let bench = cell.get_or_init(bench);
        let seed = |choice: usize| {
            let (which, _, sealed) = split(choice);
            let (trace, file) = FILES[which];
            let contents = std::fs::read(bench.path(trace).join(file)).ok().filter(|_| !sealed || trace != "otf2")?;
            Some([&[choice as u8], &contents[..]].concat())
        };
        (0..2 * FILES.len() * JOBS.len()).filter_map(seed).collect()
    })
}
