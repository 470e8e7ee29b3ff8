//! Stacks of this program, started again as one that does what a test needs.
#![allow(unsafe_code)]

use super::*;
use std::hint::black_box;
use std::process::{Child, Command, Stdio};

/// What the child does; without it there is none.
const WAY: &str = "CLC_MONITOR_STACKS_TEST";

/// A child, until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(way: &str) -> Running {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "stacks::tests::what_the_child_does", "--nocapture"]).env(WAY, way);
        Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn stacks(&self) -> ProcessStacks {
        let wanted = StackRequest { rank: 7, process: self.id(), started: 0 };
        of(&[wanted], "here", Duration::from_secs(5)).remove(0)
    }

    /// The stack of a thread that is in this function, as soon as there is one.
    #[track_caller]
    fn inside(&self, function: &str) -> ThreadStack {
        let begun = Instant::now();
        loop {
            let stacks = self.stacks();
            let found = stacks.threads.iter().find(|thread| place_of(thread, function).is_some());
            if let Some(found) = found {
                return found.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no {function}: {}", stacks.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: two numbers.
        assert_eq!(unsafe { libc::kill(self.id() as libc::pid_t, signal) }, 0);
    }

    /// What the kernel says that a thread does, in a letter.
    fn state(&self, thread: u32) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.id())).unwrap_or_default();
        text.rsplit_once(") ").map_or("gone", |(_, rest)| &rest[..1]).to_owned()
    }

    #[track_caller]
    fn comes_to(&self, thread: u32, states: &[&str]) {
        let begun = Instant::now();
        while !states.contains(&self.state(thread).as_str()) {
            assert!(begun.elapsed() < Duration::from_secs(10), "it is {}, not {states:?}", self.state(thread));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn place_of(thread: &ThreadStack, function: &str) -> Option<usize> {
    let suffix = format!("::{function}");
    let is = |frame: &StackFrame| frame.function.as_ref().is_some_and(|name| name.ends_with(&suffix));
    thread.frames.iter().position(is)
}

#[inline(never)]
fn spins_here() {
    loop {
        black_box(());
    }
}

#[inline(never)]
fn calls_what_spins() {
    black_box(spins_here)();
    black_box(());
}

#[inline(never)]
fn goes_deep(levels: u32) {
    if levels == 0 {
        return black_box(spins_here)();
    }
    goes_deep(black_box(levels - 1));
    black_box(());
}

/// More than is copied while the thread is stopped.
#[inline(never)]
fn has_much_on_its_stack() {
    let much = black_box([0_u8; 1 << 20]);
    black_box(calls_what_spins)();
    black_box(much);
}

#[inline(never)]
fn sleeps_for_events() {
    // SAFETY: the list has room for one event.
    let found = unsafe {
        let epoll = libc::epoll_create1(0);
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        libc::epoll_wait(epoll, &raw mut event, 1, -1)
    };
    let error = std::io::Error::last_os_error();
    std::fs::write(std::env::var("CLC_MONITOR_STACKS_FILE").unwrap_or_default(), format!("{found} {error}")).ok();
    spins_here();
}

/// The kernel does not disturb one who waits for a child like this.
#[inline(never)]
fn waits_for_a_child() {
    // SAFETY: the child has memory of its own, and only sleeps.
    unsafe {
        let flags = libc::c_long::from(libc::CLONE_VFORK | libc::SIGCHLD);
        if libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::sleep(60);
            libc::_exit(0);
        }
    }
    spins_here();
}

#[test]
fn what_the_child_does() {
    match std::env::var(WAY).as_deref() {
        Ok("spin") => calls_what_spins(),
        Ok("deep") => goes_deep(200),
        Ok("much") => has_much_on_its_stack(),
        Ok("events") => sleeps_for_events(),
        Ok("vfork") => waits_for_a_child(),
        _ => {}
    }
}

#[test]
fn functions_are_told_and_the_process_goes_on() {
    let child = Running::start("spin");
    let thread = child.inside("spins_here");
    let places = ["spins_here", "calls_what_spins", "what_the_child_does"].map(|name| place_of(&thread, name));
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{thread:#?}");
    assert_eq!(thread.note, None, "{thread:#?}");
    let inner = &thread.frames[places[0].unwrap()];
    assert!(inner.source.as_ref().is_some_and(|source| source.contains("stacks/tests.rs:")), "{inner:?}");
    assert!(inner.text().contains("spins_here (tests.rs:"), "{}", inner.text());
    // The program's first thread waits for the one of the test.
    let all = child.stacks();
    assert_eq!((all.rank, all.process, all.threads[0].thread), (7, child.id(), child.id()));
    assert!(all.threads.len() >= 2 && all.threads[0].frames.len() > 2, "{}", all.text());
    assert!(all.text().starts_with(&format!("stack of rank 7, process {} on here:\n", child.id())), "{}", all.text());
    child.comes_to(thread.thread, &["R"]);
}

#[test]
fn a_stopped_process_is_told_of_and_stays_stopped() {
    let child = Running::start("spin");
    let thread = child.inside("spins_here").thread;
    child.signal(libc::SIGSTOP);
    child.comes_to(thread, &["T"]);
    for _ in 0..3 {
        let begun = Instant::now();
        assert_eq!(child.inside("calls_what_spins").thread, thread);
        assert!(begun.elapsed() < Duration::from_secs(5));
        child.comes_to(thread, &["T"]);
        child.comes_to(child.id(), &["T"]);
    }
    child.signal(libc::SIGCONT);
    child.comes_to(thread, &["R"]);
}

#[test]
fn deep_stacks_are_cut_and_large_ones_are_not() {
    let deep = Running::start("deep").inside("goes_deep");
    assert_eq!((deep.frames.len(), deep.note.as_deref()), (DEPTH, Some(modules::DEEPER)));
    let much = Running::start("much").inside("calls_what_spins");
    assert!(place_of(&much, "has_much_on_its_stack") < place_of(&much, "what_the_child_does"), "{much:#?}");
}

#[test]
fn a_sleep_that_would_be_cut_short_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("woken");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "stacks::tests::what_the_child_does", "--nocapture"]).env(WAY, "events");
    command.env("CLC_MONITOR_STACKS_FILE", &file).stdout(Stdio::null());
    let child = Running(command.spawn().unwrap());
    let thread = child.inside("sleeps_for_events");
    assert!(place_of(&thread, "what_the_child_does").is_some(), "{thread:#?}");
    std::thread::sleep(Duration::from_millis(100));
    assert!(!file.exists(), "{}", std::fs::read_to_string(&file).unwrap());
    assert_eq!(child.state(thread.thread), "S");
}

#[test]
fn who_cannot_be_stopped_is_told_of_in_time_and_let_go() {
    let child = Running::start("vfork");
    let begun = Instant::now();
    let thread = loop {
        let stacks = child.stacks();
        let said = |thread: &&ThreadStack| thread.note.as_ref().is_some_and(|note| note.contains("uninterruptible"));
        if let Some(thread) = stacks.threads.iter().find(said) {
            break thread.thread;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", stacks.text());
    };
    let asked = Instant::now();
    child.stacks();
    assert!(asked.elapsed() < Duration::from_secs(3));
    // When it can go on, it does.
    let children = std::fs::read_to_string(format!("/proc/{}/task/{thread}/children", child.id())).unwrap();
    let other: libc::pid_t = children.trim().parse().unwrap();
    // SAFETY: two numbers; it is the child of a child of this process.
    unsafe { libc::kill(other, libc::SIGKILL) };
    child.comes_to(thread, &["R"]);
    child.inside("spins_here");
}

#[test]
fn who_is_gone_or_traced_is_told_so() {
    let mut child = Running::start("spin");
    child.inside("spins_here");
    // A later process with the same id is another one.
    let wanted = StackRequest { rank: 7, process: child.id(), started: 1 };
    assert_eq!(of(&[wanted], "here", Duration::from_secs(5))[0].note.as_deref(), Some("the process is gone"));
    // Only one can trace it: here another thread of this process.
    let debugger = threads::tests::hold(child.id());
    let said = child.stacks();
    let first = said.threads.iter().find(|thread| thread.thread == child.id()).unwrap();
    let expected = format!("process {} (a debugger) is already attached to it", std::process::id());
    assert_eq!(first.note.as_deref(), Some(&*expected), "{}", said.text());
    drop(debugger);
    // Dead, but not buried yet; then buried.
    child.0.kill().unwrap();
    let begun = Instant::now();
    while child.stacks().note.as_deref() != Some("the process is gone") {
        assert!(begun.elapsed() < Duration::from_secs(5), "{}", child.stacks().text());
    }
    // It is a child of the one that looks at it, who may have buried it while it was attached to it.
    let _ = child.0.wait();
    let said = child.stacks();
    assert_eq!((said.note.as_deref(), said.threads.len()), (Some("the process is gone"), 0));
    assert_eq!(said.text(), format!("stack of rank 7, process {} on here: the process is gone\n", child.id()));
}

#[test]
fn nothing_takes_longer_than_it_may() {
    let children: Vec<Running> = (0..3).map(|_| Running::start("spin")).collect();
    children.iter().for_each(|child| drop(child.inside("spins_here")));
    let wanted: Vec<StackRequest> =
        children.iter().map(|child| StackRequest { rank: 0, process: child.id(), started: 0 }).collect();
    let begun = Instant::now();
    let found = of(&wanted, "here", Duration::ZERO);
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(found.iter().all(|one| one.note.is_some()), "{found:#?}");
    children.iter().for_each(|child| drop(child.inside("spins_here")));
}
