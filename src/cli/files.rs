//! What each job reads and writes.

use super::{Invocation, PerturbOptions, SimulateOptions};
use crate::output::conflicts::Content;
use crate::output::paths::{Input, Target, TargetKind};
use std::borrow::Cow;
use std::path::Path;

impl Invocation {
    /// The file for the page of the report; "-" for standard output.
    pub fn html(&self) -> Option<&Path> {
        match self {
            Invocation::Correct(options) => options.html.as_deref(),
            Invocation::Check(options) => options.html.as_deref(),
            Invocation::Analyze(options) => options.html.as_deref(),
            Invocation::Report(options) => options.html.as_deref(),
            _ => None,
        }
    }

    /// The file for the result as JSON; "-" for standard output.
    pub fn json(&self) -> Option<&Path> {
        match self {
            Invocation::Correct(options) => options.common.report.as_deref(),
            Invocation::Check(options) => options.common.report.as_deref(),
            Invocation::Analyze(options) => options.common.report.as_deref(),
            Invocation::Evaluate(options) => options.common.report.as_deref(),
            Invocation::Info(options) => options.report.as_deref(),
            Invocation::Convert(options) => options.report.as_deref(),
            Invocation::Perturb(PerturbOptions { generated, .. })
            | Invocation::Simulate(SimulateOptions { generated, .. }) => generated.report.as_deref(),
            Invocation::Record(_)
            | Invocation::Recover(_)
            | Invocation::Monitor(_)
            | Invocation::Report(_)
            | Invocation::Export(_)
            | Invocation::Man(_)
            | Invocation::Completions(_) => None,
        }
    }

    /// Whether an output may replace what is in its place.
    pub fn force(&self) -> bool {
        match self {
            Invocation::Correct(options) => options.common.force,
            Invocation::Check(options) => options.common.force,
            Invocation::Analyze(options) => options.common.force,
            Invocation::Evaluate(options) => options.common.force,
            Invocation::Info(options) => options.force,
            Invocation::Convert(options) => options.force,
            Invocation::Record(options) => options.written.force,
            Invocation::Monitor(_) => false,
            Invocation::Recover(options) => options.written.force,
            Invocation::Perturb(PerturbOptions { generated, .. })
            | Invocation::Simulate(SimulateOptions { generated, .. }) => generated.force,
            Invocation::Report(options) => options.force,
            Invocation::Export(options) => options.force,
            Invocation::Man(_) | Invocation::Completions(_) => false,
        }
    }

    /// Options that ask for something on standard output in the place of the text.
    pub fn to_stdout(&self) -> Vec<&'static str> {
        let plot = if let Invocation::Evaluate(options) = self { options.plot.as_deref() } else { None };
        let named = [("--report", self.json()), ("--html", self.html()), ("--plot", plot)];
        named.into_iter().filter(|(_, path)| *path == Some(Path::new("-"))).map(|(option, _)| option).collect()
    }

    /// What it reads.
    pub(crate) fn inputs(&self) -> Vec<Input<'_>> {
        match self {
            Invocation::Correct(options) => vec![Input::Trace(&options.trace)],
            Invocation::Check(options) => vec![Input::Trace(&options.trace)],
            Invocation::Analyze(options) => vec![Input::Trace(&options.trace)],
            Invocation::Info(options) => vec![Input::Trace(&options.trace)],
            Invocation::Perturb(options) => vec![Input::Trace(&options.trace)],
            Invocation::Convert(options) => vec![Input::Trace(&options.trace)],
            Invocation::Export(options) => vec![Input::Trace(&options.trace)],
            Invocation::Evaluate(options) => {
                // The true times may be named themselves; the trace then is the directory above.
                let above =
                    options.truth.parent().filter(|_| options.truth.file_name().is_some_and(|name| name == "truth"));
                let above = above.map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above });
                let named = [Some(options.trace.as_path()), Some(&options.truth), above];
                named.into_iter().flatten().map(Input::Trace).collect()
            }
            Invocation::Report(options) => vec![Input::File(&options.report)],
            Invocation::Record(_)
            | Invocation::Recover(_)
            | Invocation::Monitor(_)
            | Invocation::Simulate(_)
            | Invocation::Man(_)
            | Invocation::Completions(_) => Vec::new(),
        }
    }

    /// What it writes, but for standard output.
    pub fn targets(&self) -> Vec<Target<'_>> {
        fn target<'a>(option: &'static str, path: &'a Path, kind: TargetKind) -> Target<'a> {
            Target { option, path: Cow::Borrowed(path), kind }
        }
        let file =
            |option, path, content| (path != Path::new("-")).then(|| target(option, path, TargetKind::File(content)));
        let mut targets = Vec::new();
        match self {
            Invocation::Correct(options) if !options.dry_run => {
                // If there is no such name, the job says so.
                let path = options.output_directory().ok().map(Cow::Owned);
                targets.extend(path.map(|path| Target { option: "--output", path, kind: TargetKind::Trace }));
            }
            Invocation::Convert(options) => targets.push(target("TARGET", &options.output, TargetKind::Trace)),
            Invocation::Record(options) => targets.push(target("--output", &options.output, TargetKind::Trace)),
            Invocation::Recover(options) => targets.push(target("DIR", &options.output, TargetKind::Trace)),
            Invocation::Simulate(options) => targets.push(target("DIR", &options.output, TargetKind::Trace)),
            Invocation::Perturb(options) => targets.push(target("DIR", &options.output, TargetKind::Trace)),
            Invocation::Man(options) => {
                targets.push(target("DIR", &options.directory, TargetKind::Files(Content::ManPages)))
            }
            Invocation::Export(options) => {
                let content = options.format.content();
                targets.extend(file("--output", &options.output, content));
            }
            Invocation::Analyze(options) => {
                targets.extend(
                    options
                        .csv
                        .as_deref()
                        .map(|path| target("--csv", path, TargetKind::Files(Content::AnalysisTables))),
                );
            }
            Invocation::Evaluate(options) => {
                targets.extend(options.plot.as_deref().and_then(|path| file("--plot", path, Content::Plot)));
            }
            _ => {}
        }
        targets.extend(self.html().and_then(|path| file("--html", path, Content::Page)));
        targets.extend(self.json().and_then(|path| file("--report", path, Content::Json)));
        targets
    }
}
