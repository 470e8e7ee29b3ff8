//! What each job reads and writes.

use super::{Job, PerturbOptions, SimulateOptions};
use crate::output::conflicts::Content;
use crate::output::paths::{Input, Kind, Target};
use std::borrow::Cow;
use std::path::Path;

impl Job {
    /// The file for the page of the report; "-" for standard output.
    pub fn html(&self) -> Option<&Path> {
        match self {
            Job::Correct(options) => options.html.as_deref(),
            Job::Check(options) => options.html.as_deref(),
            Job::Analyze(options) => options.html.as_deref(),
            Job::Report(options) => options.html.as_deref(),
            _ => None,
        }
    }

    /// The file for the result as JSON; "-" for standard output.
    pub fn json(&self) -> Option<&Path> {
        match self {
            Job::Correct(options) => options.common.report.as_deref(),
            Job::Check(options) => options.common.report.as_deref(),
            Job::Analyze(options) => options.common.report.as_deref(),
            Job::Evaluate(options) => options.common.report.as_deref(),
            Job::Info(options) => options.report.as_deref(),
            Job::Convert(options) => options.report.as_deref(),
            Job::Perturb(PerturbOptions { generated, .. }) | Job::Simulate(SimulateOptions { generated, .. }) => {
                generated.report.as_deref()
            }
            Job::Record(_)
            | Job::Recover(_)
            | Job::Monitor(_)
            | Job::Report(_)
            | Job::Export(_)
            | Job::Man(_)
            | Job::Completions(_) => None,
        }
    }

    /// Whether an output may replace what is in its place.
    pub fn force(&self) -> bool {
        match self {
            Job::Correct(options) => options.common.force,
            Job::Check(options) => options.common.force,
            Job::Analyze(options) => options.common.force,
            Job::Evaluate(options) => options.common.force,
            Job::Info(options) => options.force,
            Job::Convert(options) => options.force,
            Job::Record(options) => options.written.force,
            Job::Monitor(_) => false,
            Job::Recover(options) => options.written.force,
            Job::Perturb(PerturbOptions { generated, .. }) | Job::Simulate(SimulateOptions { generated, .. }) => {
                generated.force
            }
            Job::Report(options) => options.force,
            Job::Export(options) => options.force,
            Job::Man(_) | Job::Completions(_) => false,
        }
    }

    /// Options that ask for something on standard output in the place of the text.
    pub fn to_stdout(&self) -> Vec<&'static str> {
        let plot = if let Job::Evaluate(options) = self { options.plot.as_deref() } else { None };
        let named = [("--report", self.json()), ("--html", self.html()), ("--plot", plot)];
        named.into_iter().filter(|(_, path)| *path == Some(Path::new("-"))).map(|(option, _)| option).collect()
    }

    /// What it reads.
    pub fn inputs(&self) -> Vec<Input<'_>> {
        match self {
            Job::Correct(options) => vec![Input::Trace(&options.trace)],
            Job::Check(options) => vec![Input::Trace(&options.trace)],
            Job::Analyze(options) => vec![Input::Trace(&options.trace)],
            Job::Info(options) => vec![Input::Trace(&options.trace)],
            Job::Perturb(options) => vec![Input::Trace(&options.trace)],
            Job::Convert(options) => vec![Input::Trace(&options.trace)],
            Job::Export(options) => vec![Input::Trace(&options.trace)],
            Job::Evaluate(options) => {
                // The true times may be named themselves; the trace then is the directory above.
                let above =
                    options.truth.parent().filter(|_| options.truth.file_name().is_some_and(|name| name == "truth"));
                let above = above.map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above });
                let named = [Some(options.trace.as_path()), Some(&options.truth), above];
                named.into_iter().flatten().map(Input::Trace).collect()
            }
            Job::Report(options) => vec![Input::File(&options.report)],
            Job::Record(_)
            | Job::Recover(_)
            | Job::Monitor(_)
            | Job::Simulate(_)
            | Job::Man(_)
            | Job::Completions(_) => Vec::new(),
        }
    }

    /// What it writes, but for standard output.
    pub fn targets(&self) -> Vec<Target<'_>> {
        fn target<'a>(option: &'static str, path: &'a Path, kind: Kind) -> Target<'a> {
            Target { option, path: Cow::Borrowed(path), kind }
        }
        let file = |option, path, content| (path != Path::new("-")).then(|| target(option, path, Kind::File(content)));
        let mut targets = Vec::new();
        match self {
            Job::Correct(options) if !options.dry_run => {
                // If there is no such name, the job says so.
                let path = options.output_directory().ok().map(Cow::Owned);
                targets.extend(path.map(|path| Target { option: "--output", path, kind: Kind::Trace }));
            }
            Job::Convert(options) => targets.push(target("TARGET", &options.output, Kind::Trace)),
            Job::Record(options) => targets.push(target("--output", &options.output, Kind::Trace)),
            Job::Recover(options) => targets.push(target("DIR", &options.output, Kind::Trace)),
            Job::Simulate(options) => targets.push(target("DIR", &options.output, Kind::Trace)),
            Job::Perturb(options) => targets.push(target("DIR", &options.output, Kind::Trace)),
            Job::Man(options) => targets.push(target("DIR", &options.directory, Kind::Files(Content::ManPages))),
            Job::Export(options) => {
                let content = options.format.content();
                targets.extend(file("--output", &options.output, content));
            }
            Job::Analyze(options) => {
                targets.extend(
                    options.csv.as_deref().map(|path| target("--csv", path, Kind::Files(Content::AnalysisTables))),
                );
            }
            Job::Evaluate(options) => {
                targets.extend(options.plot.as_deref().and_then(|path| file("--plot", path, Content::Plot)));
            }
            _ => {}
        }
        targets.extend(self.html().and_then(|path| file("--html", path, Content::Page)));
        targets.extend(self.json().and_then(|path| file("--report", path, Content::Json)));
        targets
    }
}
