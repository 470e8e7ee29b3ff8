//! What the integration tests share: running the real program with a time limit, recorded traces, and damaging copies of them.
#![allow(dead_code)] // every test file uses its own part of this one

pub(crate) mod damage;

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The interpreter that sees Debian's python3-otf2; another one in the path need not.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// After this long, a program hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// What a finished program left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Exit status; 128 + signal number if a signal ended it.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Fails the test with everything the program said unless it ended with `status`.
    #[track_caller]
    pub(crate) fn expect(self, status: i32, what: &str) -> Finished {
        assert_eq!(self.status, status, "{what}\nstdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

/// Runs a command to its end. If it takes longer than [`LIMIT`], it is killed with all its children, and the test fails.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Finished {
    start(command).finish()
}

/// A program that runs.
pub(crate) struct Running {
    command: String,
    pub child: Child,
    // Files instead of pipes: nobody has to empty them, and a child left behind cannot hold them open.
    said: tempfile::TempDir,
    start: Instant,
}

/// Starts a command in a process group of its own.
#[track_caller]
pub(crate) fn start(command: &mut Command) -> Running {
    let said = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| std::fs::File::create(said.path().join(name)).expect("a temporary file");
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).process_group(0);
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Running { command: format!("{command:?}"), child, said, start: Instant::now() }
}

impl Running {
    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.said.path().join(name)).unwrap_or_default()).into_owned()
    }

    /// What it has said so far on standard error.
    pub(crate) fn stderr(&self) -> String {
        self.read("err")
    }

    /// Waits until it has said `text` on standard error.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.stderr().contains(text) {
            let ended = self.child.try_wait().expect("wait for a child");
            if ended.is_some() && !self.stderr().contains(text) {
                panic!("{} ended without saying '{text}': {}", self.command, self.stderr());
            }
            self.limit(&format!("without saying '{text}'"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    fn limit(&mut self, what: &str) {
        if self.start.elapsed() > LIMIT {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.child.id())]).status();
            let _ = self.child.wait();
            panic!("{} hangs {what}\nstdout: {}\nstderr: {}", self.command, self.read("out"), self.read("err"));
        }
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Finished {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait for a child") {
                break status;
            }
            self.limit("");
            std::thread::sleep(Duration::from_millis(5));
        };
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Finished { status, stdout: self.read("out"), stderr: self.read("err") }
    }
}

/// `clc-replay`: the program of these tests, or the one that the environment variable `CLC_REPLAY_PROGRAM` names, which was built with another MPI library.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| match std::env::var_os("CLC_REPLAY_PROGRAM").filter(|path| !path.is_empty()) {
        Some(path) => {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            path.canonicalize().unwrap_or_else(|error| panic!("CLC_REPLAY_PROGRAM: {}: {error}", path.display()))
        }
        None => PathBuf::from(env!("CARGO_BIN_EXE_clc-replay")),
    })
}

/// `clc-replay` as one process without MPI.
pub(crate) fn alone() -> Command {
    let mut command = Command::new(program());
    command.env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG");
    command
}

/// The program, with the recorder beside it: a library of its own, which building the tests does not build.
pub(crate) fn with_recorder() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let program = program().to_path_buf();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--locked", "--package", "clc-recorder"]);
        let release = program.components().any(|part| part.as_os_str() == "release");
        build.args(release.then_some("--release")).current_dir(env!("CARGO_MANIFEST_DIR"));
        // Where the program is.
        build.arg("--target-dir").arg(program.parent().and_then(Path::parent).expect("a target directory"));
        run(&mut build).expect(0, "the recorder");
        program
    })
}

/// `clc-replay` as `ranks` MPI processes.
pub(crate) fn with_ranks(ranks: usize) -> Command {
    let launcher = launcher();
    let mut command = Command::new(&launcher.words[0]);
    command.args(&launcher.words[1..]);
    command.env_remove("CLC_REPLAY_MPI").env_remove("RUST_LOG");
    if launcher.open_mpi {
        // More ranks than cores; bound to one core each they would wait for each other.
        command.arg("--oversubscribe").args(["--bind-to", "none"]);
        // As root it wants to be told twice; for everybody else this says nothing.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    command.args(["-n", &ranks.to_string()]).arg(program());
    command
}

/// The launcher of MPI programs.
pub(crate) struct Launcher {
    /// The command, from the environment variable `MPIEXEC` if it is set.
    pub words: Vec<String>,
    /// Whether it belongs to Open MPI.
    pub open_mpi: bool,
}

/// The launcher to use: `MPIEXEC`, or Open MPI's where it has a name of its own, or `mpirun`.
pub(crate) fn launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER.get_or_init(|| {
        let version = |words: &[String]| {
            Command::new(&words[0]).args(&words[1..]).arg("--version").stdin(Stdio::null()).output().ok()
        };
        let given = std::env::var("MPIEXEC").ok().filter(|text| !text.trim().is_empty());
        let candidates = match &given {
            Some(text) => vec![text.as_str()],
            None => vec!["mpirun.openmpi", "mpirun"],
        };
        for candidate in &candidates {
            let words: Vec<String> = candidate.split_whitespace().map(str::to_owned).collect();
            if let Some(output) = version(&words) {
                let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
                let open_mpi = text.contains("open mpi") || text.contains("openrte") || text.contains("prrte");
                return Launcher { words, open_mpi };
            }
        }
        panic!("no launcher of MPI programs among {candidates:?}; scripts/setup.sh installs one, or set MPIEXEC");
    })
}

/// The recorded traces of `tests/data`: directories with one archive each, in order.
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let found = archives_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"));
    assert!(!found.is_empty(), "no traces in tests/data; `make record` makes them");
    found
}

/// One of them by name.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    assert!(path.is_dir(), "{} is missing; `make record` makes it", path.display());
    path
}

/// Further traces, which are not part of the repository, if there are any: the directories in the directory that the environment variable
/// `CLC_REPLAY_TRACES` names, by default `shared/data` beside the repository.
pub(crate) fn more_traces() -> Vec<PathBuf> {
    let directory = match std::env::var_os("CLC_REPLAY_TRACES") {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
    };
    archives_below(&directory)
}

fn archives_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("a directory entry").path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.is_dir() && !anchors(path).is_empty()).collect();
    found.sort();
    found
}

fn anchors(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("a directory entry").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "otf2")).collect()
}

/// The anchor file of the one archive in a directory.
#[track_caller]
pub(crate) fn anchor(directory: &Path) -> PathBuf {
    let found = anchors(directory);
    assert_eq!(found.len(), 1, "{}: {found:?}", directory.display());
    found[0].clone()
}

/// The name of a trace for messages.
pub(crate) fn name(trace: &Path) -> String {
    trace.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Exit status of the program for a recorded trace in which no violation is left: 3 if too little of it could be checked. EZTrace records no
/// completion of requests, so nearly all messages of the halo exchange lack a partner, and no begin or end of some collectives.
pub(crate) fn clean(trace: &Path) -> i32 {
    if name(trace).starts_with("eztrace") { 3 } else { 0 }
}

/// Exit status of a check of a fixture before the correction: recorded offsets leave violations, but for one whose clocks were measured all the time.
pub(crate) fn violated(trace: &Path) -> i32 {
    i32::from(name(trace) != "recorded-stencil-4")
}

/// The report of a job on a trace.
pub(crate) fn report(path: &Path, arguments: &[&str], status: i32) -> serde_json::Value {
    let said =
        run(alone().args(arguments).args(["--report", "-", "--quiet"]).arg(path)).expect(status, "the job").stdout;
    serde_json::from_str(&said).expect("JSON")
}

/// Checked and violated of a kind after pre-synchronisation.
pub(crate) fn found(report: &serde_json::Value, kind: &str) -> (u64, u64) {
    let kinds = report["violations"]["presynchronised"]["collectives"].as_array().expect("a list");
    let of = |kind: &serde_json::Value, field: &str| kind[field].as_u64().expect("a number");
    let check = kinds.iter().find(|check| check["kind"] == kind);
    check.map_or((0, 0), |check| (of(check, "instances_checked"), of(check, "violated")))
}

/// All files below a directory with their contents, and the directories (without contents).
pub(crate) fn tree(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.expect("a directory entry").path();
            let relative = path.strip_prefix(directory).expect("below it").to_path_buf();
            if path.is_dir() {
                found.insert(relative, None);
                open.push(path);
            } else if !path.is_file() {
                // Nobody would ever write into a pipe.
                found.insert(relative, None);
            } else {
                found.insert(relative, Some(std::fs::read(&path).expect("a readable file")));
            }
        }
    }
    found
}

/// Fails unless both directories hold the same files with the same contents.
#[track_caller]
pub(crate) fn assert_same_tree(expected: &Path, got: &Path, what: &str) {
    let (expected, got) = (tree(expected), tree(got));
    assert_eq!(expected.keys().collect::<Vec<_>>(), got.keys().collect::<Vec<_>>(), "{what}: other files");
    for (path, contents) in &expected {
        // Not assert_eq: nobody wants to read the bytes.
        assert!(got[path] == *contents, "{what}: {} differs", path.display());
    }
}

/// Copies a directory with everything in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let path = entry.expect("a directory entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// A script of `tests/tools`, to be given its arguments.
pub(crate) fn tool(script: &str) -> Command {
    let mut command = Command::new(PYTHON);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(script));
    command
}
