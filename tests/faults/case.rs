//! One row of the matrix: how the fault is made, what has to come of it, and what is checked in any case.

use crate::common::damage::Copy;
use crate::common::{self, Finished, Running, alone, assert_same_tree, run, tree, with_ranks};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A fault and its outcome.
pub(crate) struct Case {
    pub group: &'static str,
    /// Short, in words with underscores.
    pub name: String,
    /// What is wrong, for the table in the documentation.
    pub fault: String,
    pub outcome: Outcome,
    /// Numbers of analysis ranks.
    pub ranks: &'static [usize],
    /// Makes the trace, or makes it wrong, and says more about what has to come.
    pub make: Box<dyn Fn(&mut Scene) + Send + Sync>,
}

/// What has to come of a fault.
pub(crate) enum Outcome {
    /// Exit status 2 and one line with everything in [`Scene::says`]; nothing on disk has changed.
    Refused,
    /// Exit status 0, a verified output, and warnings with everything in [`Scene::says`].
    Corrected,
    /// The same, but with exit status 3: too little of the trace could be checked.
    Uncovered,
    /// Whatever the text says; the function runs the program.
    Other(String, fn(&Scene, usize)),
}

impl Outcome {
    /// For the table in the documentation.
    pub(crate) fn text(&self) -> &str {
        match self {
            Outcome::Refused => "status 2, one line",
            Outcome::Corrected => "corrected",
            Outcome::Uncovered => "corrected; status 3, less than 90 % could be checked",
            Outcome::Other(text, _) => text,
        }
    }
}

/// How many ranks most cases run on: alone, and as several where each hosts another number of processes.
pub(crate) const USUAL: &[usize] = &[1, 3];

/// From the failure of a rank to the end of all.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// A case that is refused.
pub(crate) fn refused(name: &str, fault: &str, make: impl Fn(&mut Scene) + Send + Sync + 'static) -> Case {
    other(name, fault, Outcome::Refused, make)
}

/// A case that is corrected, perhaps with warnings.
pub(crate) fn corrected(name: &str, fault: &str, make: impl Fn(&mut Scene) + Send + Sync + 'static) -> Case {
    other(name, fault, Outcome::Corrected, make)
}

/// A case that is corrected, with too little to be checked.
pub(crate) fn uncovered(name: &str, fault: &str, make: impl Fn(&mut Scene) + Send + Sync + 'static) -> Case {
    other(name, fault, Outcome::Uncovered, move |scene| {
        scene.status = 3;
        make(scene);
    })
}

/// A case with an outcome of its own.
pub(crate) fn special(
    name: &str,
    fault: &str,
    outcome: &str,
    make: impl Fn(&mut Scene) + Send + Sync + 'static,
    act: fn(&Scene, usize),
) -> Case {
    other(name, fault, Outcome::Other(outcome.into(), act), make)
}

fn other(name: &str, fault: &str, outcome: Outcome, make: impl Fn(&mut Scene) + Send + Sync + 'static) -> Case {
    Case { group: "", name: name.into(), fault: fault.into(), outcome, ranks: USUAL, make: Box::new(make) }
}

impl Case {
    /// On other numbers of ranks than usual.
    pub(crate) fn on(mut self, ranks: &'static [usize]) -> Case {
        self.ranks = ranks;
        self
    }
}

/// A trace in a directory of its own, and what is expected of it.
pub(crate) struct Scene {
    pub copy: Copy,
    /// What the error, or the warnings, have to contain.
    pub says: Vec<String>,
    /// The exit status of a run that succeeds.
    pub status: i32,
    /// Further options of the program.
    pub options: Vec<String>,
    /// A word that the case's function may use: which signal, which part of the run.
    pub word: String,
    /// For what must not lie beside the trace.
    signs: tempfile::TempDir,
}

/// Four processes, 60 KB, no collectives but a barrier.
pub(crate) const HALO: &str = "tracer-halo-4";
/// Four processes, all kinds of collectives.
pub(crate) const COLLECTIVES: &str = "tracer-collectives-4";

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene {
            copy: Copy::of(HALO),
            says: Vec::new(),
            status: 0,
            options: Vec::new(),
            word: String::new(),
            signs: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.copy.directory.path()
    }

    /// While this file is missing, a run that stands still goes on doing so.
    pub(crate) fn go_on_file(&self) -> PathBuf {
        self.signs.path().join("go-on")
    }

    /// What the message has to contain.
    pub(crate) fn says<T: Into<String>>(&mut self, texts: impl IntoIterator<Item = T>) {
        self.says.extend(texts.into_iter().map(Into::into));
    }

    pub(crate) fn options(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(|&option| option.to_owned()));
    }

    /// The program on `ranks` ranks in the scene's directory. Its environment names the scene, so that its processes can be found.
    pub(crate) fn program(&self, ranks: usize) -> Command {
        let mut command = if ranks == 1 { alone() } else { with_ranks(ranks) };
        self.mark(&mut command);
        command
    }

    pub(crate) fn mark(&self, command: &mut Command) {
        command.current_dir(self.directory()).env(MARK, self.directory());
        heed_signals(command);
    }

    /// The same, told to correct the trace into `out`.
    pub(crate) fn correction(&self, ranks: usize) -> Command {
        let mut command = self.program(ranks);
        command.args(["trace", "-o", "out"]).args(&self.options);
        command
    }

    /// The correction in a shell that first does `before` on every rank.
    pub(crate) fn correction_after(&self, before: &str, ranks: usize) -> Command {
        let plain = self.correction(ranks);
        let program = common::program();
        let words: Vec<_> = std::iter::once(plain.get_program()).chain(plain.get_args()).collect();
        let at = words.iter().position(|word| *word == program.as_os_str()).expect("the program");
        let script = format!("{before}; exec \"$0\" \"$@\"");
        let mut all: Vec<_> = words[..at].to_vec();
        all.extend([std::ffi::OsStr::new("/bin/bash"), std::ffi::OsStr::new("-c"), script.as_ref()]);
        all.extend(&words[at..]);
        let mut command = Command::new(all[0]);
        command.args(&all[1..]);
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.mark(&mut command);
        command
    }

    /// Numbers of the processes of this scene that run the program, by rank.
    pub(crate) fn processes(&self) -> BTreeMap<usize, u32> {
        let mut found = BTreeMap::new();
        // The kernel follows links, as one in place of the target directory.
        let own = std::fs::canonicalize(common::program()).expect("the program");
        for (process, environment) in marked(self.directory()) {
            let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
            if program != own {
                continue;
            }
            let value = |name: &str| {
                let start = format!("{name}=");
                environment.iter().find_map(|entry| entry.strip_prefix(&start)?.parse::<usize>().ok())
            };
            let rank = value("OMPI_COMM_WORLD_RANK").or_else(|| value("PMI_RANK")).unwrap_or(0);
            found.insert(rank, process);
        }
        found
    }

    /// Fails unless all processes of the scene end within some seconds.
    pub(crate) fn nobody_is_left(&self) {
        let start = Instant::now();
        loop {
            let left = marked(self.directory());
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "processes are left: {:?}", left.keys());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Hidden entries beside the trace: unfinished outputs.
    pub(crate) fn unfinished(&self) -> Vec<PathBuf> {
        let entries =
            std::fs::read_dir(self.directory()).expect("a directory").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))).collect()
    }

    /// The trace as it is, undisturbed, corrected alone: what every other successful run has to give as well.
    pub(crate) fn undisturbed(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = alone();
        command.arg(&self.copy.trace).arg("-o").arg(directory.path().join("out")).args(&self.options);
        run(&mut command).expect(self.status, "an undisturbed run");
        directory
    }

    /// Fails unless `out` is there and is what an undisturbed run gives.
    pub(crate) fn output_is_right(&self) {
        assert_same_tree(&self.undisturbed().path().join("out"), &self.copy.output(), "the output");
    }

    /// The next run has to succeed, and to leave nothing but its output.
    pub(crate) fn the_next_run_succeeds(&self) {
        run(&mut self.correction(1)).expect(0, "the next run");
        assert_eq!(self.unfinished(), Vec::<PathBuf>::new(), "the next run leaves something behind");
        self.output_is_right();
    }
}

/// Environment variable that marks the processes of a scene.
const MARK: &str = "CLC_REPLAY_TEST_SCENE";

/// Whoever runs the tests in the background may ignore signals, and the program then leaves them ignored.
#[allow(unsafe_code)]
fn heed_signals(command: &mut Command) {
    let act = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: may be called between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: see above; nothing else happens in the closure.
    unsafe { command.pre_exec(act) };
}

/// Processes that belong to the scene in `directory`, with their environments.
fn marked(directory: &Path) -> BTreeMap<u32, Vec<String>> {
    let mark = format!("{MARK}={}", directory.display());
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The one of a zombie is empty.
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let entries: Vec<String> =
            environment.split(|&byte| byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect();
        if entries.contains(&mark) {
            found.insert(process, entries);
        }
    }
    found
}

/// The error lines of a run that failed; a launcher adds lines of its own.
pub(crate) fn error_lines(finished: &Finished) -> Vec<&str> {
    finished.stderr.lines().filter(|line| line.starts_with("clc-replay: error: ")).collect()
}

/// Fails unless the run ended with status 2 and one line that contains all `says`.
pub(crate) fn one_line(finished: &Finished, ranks: usize, says: &[String]) {
    assert_eq!(finished.status, 2, "not refused: {finished:?}");
    let errors = error_lines(finished);
    assert_eq!(errors.len(), 1, "not one line: {finished:?}");
    if ranks == 1 {
        let others = finished.stderr.lines().filter(|line| !line.contains("CLC_REPLAY_PAUSE")).count() - 1;
        assert_eq!(others, 0, "more than the error: {finished:?}");
    }
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
    for text in says {
        assert!(errors[0].contains(text), "'{text}' is missing in: {}", errors[0]);
    }
}

/// Runs one case on one number of ranks.
pub(crate) fn act(case: &Case, ranks: usize) {
    let mut scene = Scene::new();
    (case.make)(&mut scene);
    let input = scene.copy.trace.exists().then(|| tree(&scene.copy.trace));
    match &case.outcome {
        Outcome::Refused => {
            let before = tree(scene.directory());
            let finished = run(&mut scene.correction(ranks));
            one_line(&finished, ranks, &scene.says);
            assert!(before == tree(scene.directory()), "something on disk has changed: {finished:?}");
        }
        Outcome::Corrected | Outcome::Uncovered => corrected_run(&scene, ranks),
        Outcome::Other(_, act) => act(&scene, ranks),
    }
    scene.nobody_is_left();
    // Cases that change the input while the program runs put it back.
    assert!(input == scene.copy.trace.exists().then(|| tree(&scene.copy.trace)), "the input has changed");
}

fn corrected_run(scene: &Scene, ranks: usize) {
    let mut command = scene.correction(ranks);
    let finished = run(command.args(["--report", "report.json"]));
    assert_eq!(finished.status, scene.status, "{finished:?}");
    assert!(!finished.stderr.contains("clc-replay:"), "{finished:?}");
    let mut left: Vec<_> = std::fs::read_dir(scene.directory())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["out", "report.json", "trace"], "something is left behind");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(scene.directory().join("report.json")).expect("a report")).expect("JSON");
    let said = format!("{} {}", report["warnings"], report["matching"]);
    for text in &scene.says {
        assert!(said.contains(text), "'{text}' is missing in: {said}");
    }
    let verdicts = if scene.status == 0 { ["consistent", "corrected"] } else { ["partly_checked", "nothing_to_check"] };
    assert!(verdicts.iter().any(|verdict| report["verdict"] == *verdict), "{report}");
    let mut check = scene.program(1);
    run(check.args(["check", "out"]).args(&scene.options)).expect(scene.status, "the output is checked again");
    if ranks > 1 {
        scene.output_is_right();
    }
}

/// Waits until `done`; fails after the time limit of all programs.
pub(crate) fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < common::LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process.
#[allow(unsafe_code)]
pub(crate) fn send(signal: i32, process: u32) {
    // SAFETY: no memory is involved.
    let sent = unsafe { libc::kill(process as libc::pid_t, signal) };
    assert_eq!(sent, 0, "signal {signal} to {process}");
}

/// Starts a correction that stands still in `part` of the run on rank `rank`, and waits until it does.
pub(crate) fn paused(scene: &Scene, ranks: usize, part: &str, rank: usize, environment: &[(&str, &str)]) -> Running {
    paused_in(scene, scene.correction(ranks), part, rank, environment)
}

/// The same of a correction that is given.
pub(crate) fn paused_in(
    scene: &Scene,
    mut command: Command,
    part: &str,
    rank: usize,
    environment: &[(&str, &str)],
) -> Running {
    command.env("CLC_REPLAY_PAUSE", format!("{part}@{rank}:{}", scene.go_on_file().display()));
    command.envs(environment.iter().copied());
    let mut running = common::start(&mut command);
    running.wait_for(&format!("pausing at {part}"));
    running
}
