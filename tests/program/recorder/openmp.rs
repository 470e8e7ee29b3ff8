//! Programs of MPI and OpenMP: what their threads do is in the recordings, and keeps its order.

use super::{App, Library, MPICH, OPEN_MPI, events};
use crate::common::{PYTHON, alone, fixture, run};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The hybrid program by a compiler of C.
fn hybrid(library: Library, compiler: &str) -> App {
    let mut command = Command::new(library.compiler);
    command.env("OMPI_CC", compiler).env("MPICH_CC", compiler);
    App::build_by(library, &mut command, "hybrid.c", &["-g", "-fopenmp"])
}

/// What the independent checker says of the orders between threads.
struct ThreadOrders {
    /// Checked and violated by kind.
    kinds: BTreeMap<String, (u64, u64)>,
    left_out: bool,
}

impl ThreadOrders {
    fn of(archive: &Path) -> ThreadOrders {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/check_thread_orders.py");
        let anchor = crate::common::anchor(archive);
        let ended = run(Command::new(PYTHON).arg(script).arg(anchor));
        assert!(matches!(ended.status, 0 | 1), "{}", ended.stderr);
        let mut orders = ThreadOrders { kinds: BTreeMap::new(), left_out: ended.stdout.contains("left out") };
        for line in ended.stdout.lines() {
            if let [kind, violated, "violations", "of", checked] = line.split_whitespace().collect::<Vec<_>>()[..] {
                let number = |text: &str| text.parse().expect("a number");
                orders.kinds.insert(kind.to_owned(), (number(checked), number(violated)));
            }
        }
        orders
    }

    fn violated(&self) -> u64 {
        self.kinds.values().map(|&(_, violated)| violated).sum()
    }
}

/// What the program says that its threads have done is in the archive.
fn assert_threads_complete(archive: &Path, said: &str) {
    let counts = events(archive);
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    for (line, begin, end) in [
        ("forks", "THREAD_FORK", "THREAD_JOIN"),
        ("begins", "THREAD_TEAM_BEGIN", "THREAD_TEAM_END"),
        ("locks", "THREAD_ACQUIRE_LOCK", "THREAD_RELEASE_LOCK"),
        ("tasks", "THREAD_TASK_CREATE", "THREAD_TASK_COMPLETE"),
    ] {
        let done = said.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok());
        assert_eq!((Some(count(begin)), Some(count(end))), (done, done), "{line}: {said}");
    }
    assert_eq!(count("ENTER"), count("LEAVE"));
}

/// The regions of the archive with their roles and paradigms.
fn regions(archive: &Path) -> Vec<String> {
    let anchor = crate::common::anchor(archive);
    let printed = run(Command::new("otf2-print").arg("-G").arg(anchor)).expect(0, "otf2-print");
    printed.stdout.lines().filter(|line| line.starts_with("REGION ")).map(str::to_owned).collect()
}

#[track_caller]
fn records_threads(library: Library) {
    let app = hybrid(library, "clang");
    let ended = run(&mut app.record(&[], 2, &["12", "20", "4"])).expect(0, "record");
    let archive = app.recorded();
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 processes on 1 node, 8 locations"), "{}", ended.stderr);
    assert_threads_complete(&archive, &ended.stdout);
    // The runtime makes its threads; who makes them is no matter of the program.
    assert_eq!(events(&archive).get("THREAD_CREATE"), None);
    let orders = ThreadOrders::of(&archive);
    assert!(orders.violated() == 0 && !orders.left_out, "{:?}", orders.kinds);
    // Of 12 iterations of two processes: a region of four threads has a barrier of the program and three at the ends of constructs; two regions of two threads one each.
    assert_eq!(orders.kinds["barrier"].0, 12 * 2 * (4 + 2));
    assert!(["fork", "join", "lock", "task"].iter().all(|&kind| orders.kinds[kind].0 > 0), "{:?}", orders.kinds);
    let regions = regions(&archive);
    for (name, role) in [
        ("!$omp parallel @hybrid.c:", "PARALLEL"),
        ("!$omp implicit barrier", "IMPLICIT_BARRIER"),
        ("!$omp barrier @hybrid.c:", "BARRIER"),
        ("!$omp for @hybrid.c:", "LOOP"),
        ("!$omp single @hybrid.c:", "SINGLE"),
        ("!$omp critical @hybrid.c:", "CRITICAL"),
        ("!$omp task @hybrid.c:", "TASK"),
        ("!$omp taskwait @hybrid.c:", "TASK_WAIT"),
    ] {
        let is_it = |line: &&String| line.contains(&format!("Name: \"{name}"));
        let line = regions.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {regions:?}"));
        assert!(line.contains(&format!("Role: {role}, Paradigm: \"OpenMP\"")), "{line}");
    }
    // The program finds the same orders, and none of them violated.
    let report = crate::common::report(&archive, &["check"], 0);
    for kind in ["fork", "thread_barrier", "task", "thread_lock"] {
        let (checked, violated) = crate::common::found(&report, kind);
        assert!(checked > 0 && violated == 0, "{kind}: {report}");
    }
}

#[test]
fn threads_of_openmp_are_recorded_with_open_mpi() {
    records_threads(OPEN_MPI);
}

#[test]
fn threads_of_openmp_are_recorded_with_mpich() {
    records_threads(MPICH);
}

#[test]
fn threads_with_wrong_clocks_are_put_in_order() {
    let app = hybrid(OPEN_MPI, "clang");
    let clock = ["--clock", "offset=5ms,drift=20ppm,sine=100us/50%", "--clock-per-thread"];
    run(&mut app.record(&clock, 2, &["8", "20", "3"])).expect(0, "record");
    let before = ThreadOrders::of(&app.recorded());
    assert!(before.violated() > 50, "{:?}", before.kinds);
    let corrected = app.path("corrected");
    run(alone().arg(app.recorded()).arg("-o").arg(&corrected)).expect(0, "the correction");
    let after = ThreadOrders::of(&corrected);
    assert!(after.violated() == 0 && !after.left_out, "{:?}", after.kinds);
    let checked =
        |orders: &ThreadOrders| orders.kinds.iter().map(|(kind, of)| (kind.clone(), of.0)).collect::<Vec<_>>();
    assert_eq!(checked(&after), checked(&before));
}

#[test]
fn a_recorded_hybrid_program_is_put_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let (recorded, corrected) = (fixture("recorded-hybrid-3"), directory.path().join("corrected"));
    let before = ThreadOrders::of(&recorded);
    let violated: Vec<_> = before.kinds.iter().map(|(kind, of)| (kind.as_str(), of.1)).collect();
    assert_eq!(violated, [("barrier", 269), ("fork", 73), ("join", 150), ("lock", 133), ("task", 23)]);
    run(alone().arg(&recorded).arg("-o").arg(&corrected)).expect(0, "the correction");
    let after = ThreadOrders::of(&corrected);
    assert!(after.violated() == 0 && !after.left_out, "{:?}", after.kinds);
    let truth = ["evaluate", "--truth", recorded.to_str().expect("a path")];
    let report = crate::common::report(&corrected, &truth, 0);
    let phases = report["phases"].as_array().expect("a list");
    let error = |phase: Option<&serde_json::Value>| phase.and_then(|phase| phase["clock"]["rms_seconds"].as_f64());
    let errors = [error(phases.first()), error(phases.last())];
    let [Some(raw), Some(corrected)] = errors else { panic!("{errors:?}: {report}") };
    assert!(corrected < raw / 10.0, "{errors:?}");
}

#[test]
fn a_runtime_without_the_interface_is_named() {
    let app = hybrid(OPEN_MPI, "gcc");
    let ended = run(&mut app.record(&[], 2, &["2", "5"])).expect(0, "record");
    assert!(ended.stderr.contains("the OpenMP runtime of 2 processes offers no tool interface"), "{}", ended.stderr);
    assert_eq!(events(&app.recorded()).get("THREAD_FORK"), None);
}

#[test]
fn another_tool_has_precedence() {
    let app = hybrid(OPEN_MPI, "clang");
    let mut command = app.record(&[], 2, &["2", "5"]);
    let ended = run(command.env("OMP_TOOL_LIBRARIES", "/no/such/tool.so")).expect(0, "record");
    assert!(ended.stderr.contains("offers no tool interface"), "{}", ended.stderr);
    assert_eq!(events(&app.recorded()).get("THREAD_FORK"), None);
}

#[test]
fn of_a_ring_whole_regions_are_in_order() {
    let app = hybrid(OPEN_MPI, "clang");
    let ended = run(&mut app.record(&["--ring", "--memory", "128K"], 2, &["600", "1", "3"])).expect(0, "record");
    let orders = ThreadOrders::of(&app.recorded());
    assert!(ended.stderr.contains("parallel regions were recorded only in part"), "{}", ended.stderr);
    assert_eq!(orders.violated(), 0, "{:?}", orders.kinds);
    let counts = events(&app.recorded());
    assert_eq!(counts["THREAD_FORK"], counts["THREAD_JOIN"]);
    assert_eq!(counts["THREAD_TEAM_BEGIN"], counts["THREAD_TEAM_END"]);
    assert!((100..3_000).contains(&counts["THREAD_FORK"]), "{counts:?}");
}
