//! A small trace of which one file has any contents. Every command comes to a result or to an error of one line, the input stays as it
//! is, and there is no output after an error.

use super::Choices;
use clc_replay::cli::Job;
use clc_replay::comm::local::LocalTransport;
use clc_replay::commands;
use clc_replay::trace::progress::Silent;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The traces, and which of their files is replaced.
const FILES: [(&str, &str); 8] = [
    ("otf2", "traces.otf2"),
    ("otf2", "traces.def"),
    ("otf2", "traces/0.def"),
    ("otf2", "traces/0.evt"),
    ("otf2", "traces/1.evt"),
    ("native.clct", "definitions.clcd"),
    ("native.clct", "events/0.clce"),
    ("native.clct", "events/1.clce"),
];

/// A place to work in, one per thread.
struct Bench {
    directory: tempfile::TempDir,
}

thread_local! {
    static BENCH: OnceCell<Bench> = const { OnceCell::new() };
}

fn fixture() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR")))
        .ancestors()
        .map(|above| above.join("tests/data/tracer-collectives-4"))
        .find(|path| path.is_dir())
        .expect("the recorded traces")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

impl Bench {
    fn new() -> Bench {
        // In memory where that is possible.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        copy(&fixture(), &directory.path().join("otf2"));
        let (from, to) = (directory.path().join("otf2"), directory.path().join("native.clct"));
        run(&["convert", &from.to_string_lossy(), &to.to_string_lossy()]).unwrap();
        Bench { directory }
    }

    fn attempt(&self, which: usize, contents: &[u8]) -> Result<(), String> {
        let (trace, file) = FILES[which];
        let trace = self.directory.path().join(trace);
        let path = trace.join(file);
        let output = self.directory.path().join("output");
        let original = std::fs::read(&path).unwrap();
        std::fs::write(&path, contents).unwrap();
        let (trace, to) = (trace.to_string_lossy(), output.to_string_lossy());
        let outcome = run(&[&trace, "-o", &to]);
        let checked = run(&["check", &trace]).and(run(&["info", &trace]));
        let after = std::fs::read(&path).unwrap();
        std::fs::write(&path, original).unwrap();
        let exists = output.exists();
        drop(std::fs::remove_dir_all(&output));
        if after != contents {
            return Err("the input was changed".to_owned());
        }
        match &outcome {
            Ok(()) if !exists => return Err("no output after success".to_owned()),
            Err(error) if exists => return Err(format!("output after the error {error}")),
            _ => {}
        }
        let others: Vec<_> =
            std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        if others.len() != 2 {
            return Err(format!("something was left behind: {others:?}"));
        }
        for error in [outcome.err(), checked.err()].into_iter().flatten() {
            if error.is_empty() || error.contains('\n') {
                return Err(format!("not one line: {error:?}"));
            }
            if error.contains("this is a bug") {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Runs the program's job in this process.
fn run(arguments: &[&str]) -> Result<(), String> {
    let job = Job::parse(["clc-replay"].iter().chain(arguments).chain(&["--quiet"])).expect("these options exist");
    let mut alone = LocalTransport::alone();
    let outcome = match &job {
        Job::Correct(options) => commands::correct(&mut alone, options, &Silent),
        Job::Check(options) => commands::check(&mut alone, options, &Silent),
        Job::Info(options) => commands::info(&mut alone, options, &Silent),
        Job::Convert(options) => commands::convert(&mut alone, options, &Silent),
        _ => unreachable!("not used here"),
    };
    outcome.map(|_| ()).map_err(|error| error.to_string())
}

/// The target: the first byte says which file, the others are its contents.
pub fn target(input: &[u8]) -> Result<(), String> {
    let mut choices = Choices(input);
    let which = choices.below(FILES.len());
    BENCH.with(|bench| bench.get_or_init(Bench::new).attempt(which, choices.0))
}

/// An input for each file as it was recorded.
pub fn seeds() -> Vec<Vec<u8>> {
    BENCH.with(|bench| {
        let bench = bench.get_or_init(Bench::new);
        let file = |(which, (trace, file)): (usize, &(&str, &str))| {
            let contents = std::fs::read(bench.directory.path().join(trace).join(file)).unwrap();
            [&[which as u8], &contents[..]].concat()
        };
        FILES.iter().enumerate().map(file).collect()
    })
}
