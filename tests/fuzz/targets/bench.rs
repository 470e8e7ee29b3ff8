//! Where files are replaced: copies of a recorded trace in a directory of their own, and the program's jobs in this process.

use clc_engine::comm::local::LocalTransport;
use clc_otf2::Otf2Archive;
use clc_replay::cli::{Invocation, Stop};
use clc_replay::commands::{self, Outcome};
use clc_replay::report;
use clc_trace::Result;
use clc_trace::progress::Silent;
use std::path::{Path, PathBuf};

/// A directory to work in.
pub(crate) struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    /// A directory that holds `otf2`, a recorded trace. Its anchor says that there are snapshots, so that they are read if they are there.
    pub(crate) fn new() -> Bench {
        // In memory where that is possible.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let bench = Bench { directory };
        copy(&fixture(), &bench.path("otf2"));
        let mut anchor = Otf2Archive::open(&bench.path("otf2")).unwrap().anchor().clone();
        anchor.snapshots = 1;
        std::fs::write(bench.path("otf2/traces.otf2"), anchor.write()).unwrap();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn outcome(&self, arguments: &[&str]) -> Result<Option<Outcome>> {
        let path = |name: &str| self.path(name).to_string_lossy().into_owned();
        let full = |argument: &&str| argument.strip_prefix('@').map_or_else(|| (*argument).to_owned(), path);
        let arguments = ["clc-replay"].iter().chain(arguments).chain(&["--quiet"]).map(full);
        let job = Invocation::parse(arguments).expect("these options exist");
        let mut alone = LocalTransport::alone();
        match &job {
            Invocation::Correct(options) => commands::correct(&mut alone, options, &Silent),
            Invocation::Check(options) => commands::check(&mut alone, options, &Silent),
            Invocation::Analyze(options) => commands::analyze(&mut alone, options, &Silent),
            Invocation::Info(options) => commands::info(&mut alone, options, &Silent),
            Invocation::Convert(options) => commands::convert(&mut alone, options, &Silent),
            Invocation::Perturb(options) => commands::perturb(&mut alone, options, &Silent),
            Invocation::Export(options) => commands::export(&mut alone, options, &Silent),
            Invocation::Evaluate(options) => commands::evaluate(&mut alone, options, &Silent),
            Invocation::Report(options) => commands::report(&mut alone, options),
            _ => unreachable!("not used here"),
        }
    }

    /// A job on files of this directory, and all that would be printed and stored. Arguments that begin with `@` are paths in it.
    pub(crate) fn run(&self, arguments: &[&str]) -> std::result::Result<(), String> {
        let rendered = self.outcome(arguments).and_then(|outcome| outcome.as_ref().map_or(Ok(()), render));
        rendered.map_err(|error| Stop::from(error).to_string())
    }

    /// The report of a job as it would be stored.
    pub(crate) fn report(&self, arguments: &[&str]) -> String {
        match self.outcome(arguments) {
            Ok(Some(Outcome::Report(report))) => report::json(&report).unwrap(),
            other => panic!("{arguments:?}: no report but {other:?}"),
        }
    }

    /// Names of everything in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = std::fs::read_dir(self.directory.path()).unwrap().map(name).collect();
        names.sort();
        names
    }

    /// Replaces a file, which need not exist, during `attempt`; it has to keep what was written to it.
    pub(crate) fn with_contents<T>(
        &self,
        name: &str,
        contents: &[u8],
        attempt: impl FnOnce() -> T,
    ) -> std::result::Result<T, String> {
        let path = self.path(name);
        let original = std::fs::read(&path).ok();
        std::fs::write(&path, contents).unwrap();
        let outcome = attempt();
        let after = std::fs::read(&path).ok();
        match original {
            Some(original) => std::fs::write(&path, original).unwrap(),
            None => drop(std::fs::remove_file(&path)),
        }
        if after.as_deref() == Some(contents) { Ok(outcome) } else { Err("the input was changed".to_owned()) }
    }

    /// Removes a file or a directory; whether it was there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let path = self.path(name);
        let is_directory = path.is_dir();
        let exists = path.symlink_metadata().is_ok();
        if exists {
            if is_directory { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
        }
        exists
    }
}

/// What would be printed and stored.
fn render(outcome: &Outcome) -> Result<()> {
    match outcome {
        Outcome::Report(report) => {
            report::text(report);
            report::json(report.as_ref())?;
            report::html(report)?;
        }
        Outcome::Info(info) => {
            report::info_text(info, true);
            report::json(info.as_ref())?;
        }
        Outcome::Evaluation(evaluation) => {
            report::evaluation_text(evaluation);
            report::evaluation_plot(evaluation)?;
            report::json(evaluation.as_ref())?;
        }
        Outcome::Converted(conversion) => drop(report::conversion_text(conversion)),
        Outcome::Generated(generated) => drop(report::generated_text(generated)),
        Outcome::Text(_) => {}
    }
    Ok(())
}

/// An error is one line, and no fault of the program that it knows of itself.
pub(crate) fn proper(outcome: &std::result::Result<(), String>) -> std::result::Result<(), String> {
    match outcome {
        Err(error) if error.is_empty() || error.contains(char::is_control) => Err(format!("not one line: {error:?}")),
        Err(error) if error.contains("this is a bug") => Err(error.clone()),
        _ => Ok(()),
    }
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
