//! What the threads of OpenMP do, as its runtime tells a tool (OpenMP 5.1, chapter 4, "OMPT Interface").
//!
//! A runtime that has this interface (that of LLVM, Intel and others) looks for a function [`ompt_start_tool`] when it starts, and calls the functions that were
//! registered from then on. What they see is written as it comes; what belongs together is found out after the run. A parallel region that begins while
//! nothing is recorded has no number, and what its threads do is left out.

use crate::clock;
use crate::format::OPENMP;
use crate::format::openmp::{self, kind};
use crate::functions::{self, ROOM};
use crate::hooks;
use crate::openmp_runtime;
use crate::stream::Stream;
use crate::{control, session};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// `ompt_data_t`: a word of the tool's own, or a pointer.
#[repr(C)]
pub(crate) struct Data(AtomicU64);

type Initialise = unsafe extern "C" fn(Lookup, c_int, *mut Data) -> c_int;
type Finalise = unsafe extern "C" fn(*mut Data);
type Lookup = unsafe extern "C" fn(*const c_char) -> *const c_void;
/// `ompt_set_callback`: the number of a callback and the function.
type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// `ompt_start_tool_result_t`.
#[repr(C)]
pub(crate) struct Tool {
    initialise: Initialise,
    finalise: Finalise,
    data: Data,
}

static TOOL: Tool = Tool { initialise, finalise, data: Data(AtomicU64::new(0)) };
/// Numbers of parallel regions and of tasks: how many there have been.
static REGIONS: AtomicU64 = AtomicU64::new(0);
static TASKS: AtomicU64 = AtomicU64::new(0);

/// `ompt_scope_begin`; its end is 2.
const BEGIN: c_int = 1;

/// What the runtime calls when it starts. Another tool that the program or its user wants has precedence.
#[unsafe(no_mangle)]
extern "C" fn ompt_start_tool(_version: c_uint, _runtime: *const c_char) -> *const Tool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("CLC_RECORDER_DIR") && !is_set("OMP_TOOL_LIBRARIES") { &raw const TOOL } else { std::ptr::null() }
}

/// Registers the functions. A runtime that does not have some of the events calls for the others.
unsafe extern "C" fn initialise(lookup: Lookup, _device: c_int, _data: *mut Data) -> c_int {
    // SAFETY: the runtime gives the address of its function by this name, or null.
    let set = unsafe { lookup(c"ompt_set_callback".as_ptr()) };
    if set.is_null() {
        return 0;
    }
    // SAFETY: that is its type.
    let set: SetCallback = unsafe { std::mem::transmute(set) };
    for (event, function) in [
        (3, parallel_begin as *const c_void),
        (4, parallel_end as *const c_void),
        (5, task_create as *const c_void),
        (6, task_schedule as *const c_void),
        (7, implicit_task as *const c_void),
        (17, mutex_released as *const c_void),
        (20, work as *const c_void),
        (21, masked as *const c_void),
        (23, sync_region as *const c_void),
        (26, mutex_acquire as *const c_void),
        (27, mutex_acquired as *const c_void),
    ] {
        // SAFETY: each function has the type of its event.
        unsafe { set(event, function) };
    }
    openmp_runtime::is_seen();
    1
}

unsafe extern "C" fn finalise(_data: *mut Data) {}

/// The word that the tool has given a region or a task; 0 if none.
///
/// # Safety
/// It is a pointer of the runtime, or null.
unsafe fn word(data: *const Data) -> u64 {
    // SAFETY: the caller says so.
    unsafe { data.as_ref() }.map_or(0, |data| data.0.load(Ordering::Relaxed))
}

/// Gives it one.
///
/// # Safety
/// As [`word`].
unsafe fn give(data: *const Data, word: u64) {
    // SAFETY: the caller says so.
    if let Some(data) = unsafe { data.as_ref() } {
        data.0.store(word, Ordering::Relaxed);
    }
}

/// Words of tasks: the number of the region of an implicit one, or the number of an explicit one; both from 1.
const EXPLICIT: u64 = 1;

/// Whether anything is recorded.
fn recording() -> bool {
    session::recording().is_some() && !control::paused()
}

/// Appends a step at a time.
fn step(time: u64, step: u64, fields: impl FnOnce(&mut Stream)) {
    hooks::append(ROOM, |stream| {
        stream.unsigned(OPENMP);
        stream.stamp(time);
        stream.unsigned(step);
        fields(stream);
    });
}

/// The place of a construct: the instruction that has called the runtime, which gives where it returns to.
fn place(stream: &mut Stream, after: *const c_void) {
    stream.address((after as usize).saturating_sub(1));
    functions::recorded();
}

/// A region of a thread begins, at a place of the program or of the runtime's own.
fn begin(kind: u64, after: *const c_void) {
    step(clock::before(), openmp::BEGIN, |stream| {
        stream.unsigned(kind << 1 | u64::from(!after.is_null()));
        if !after.is_null() {
            place(stream, after);
        }
    });
}

fn end(kind: u64) {
    step(clock::after(), openmp::END, |stream| stream.unsigned(kind));
}

/// `ompt_callback_parallel_begin`.
unsafe extern "C" fn parallel_begin(
    _task: *mut Data,
    _frame: *const c_void,
    region: *mut Data,
    threads: c_uint,
    flags: c_int,
    after: *const c_void,
) {
    /// `ompt_parallel_league`: teams of `teams`, whose members are no threads of one team.
    const LEAGUE: c_int = 0x4000_0000;
    let recorded = recording() && flags & LEAGUE == 0;
    let number = if recorded { REGIONS.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
    // SAFETY: of the runtime.
    unsafe { give(region, number) };
    if recorded {
        step(clock::before(), openmp::FORK, |stream| {
            stream.unsigned(number);
            stream.unsigned(u64::from(threads));
            place(stream, after);
        });
    }
}

/// `ompt_callback_parallel_end`.
unsafe extern "C" fn parallel_end(region: *mut Data, _task: *mut Data, _flags: c_int, _after: *const c_void) {
    // SAFETY: of the runtime.
    let number = unsafe { word(region) };
    if number != 0 {
        step(clock::after(), openmp::JOIN, |stream| stream.unsigned(number));
    }
}

/// `ompt_callback_implicit_task`.
unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    region: *mut Data,
    task: *mut Data,
    threads: c_uint,
    index: c_uint,
    _flags: c_int,
) {
    if endpoint == BEGIN {
        // SAFETY: of the runtime.
        let number = unsafe { word(region) };
        // SAFETY: likewise.
        unsafe { give(task, number << 1) };
        if number != 0 {
            step(clock::after(), openmp::TEAM_BEGIN, |stream| {
                stream.unsigned(number);
                stream.unsigned(u64::from(threads));
                stream.unsigned(u64::from(index));
            });
        }
        return;
    }
    // Its region may be gone.
    // SAFETY: of the runtime.
    let number = unsafe { word(task) } >> 1;
    if number != 0 {
        step(clock::before(), openmp::TEAM_END, |stream| stream.unsigned(number));
    }
}

/// `ompt_callback_sync_region`.
unsafe extern "C" fn sync_region(
    what: c_int,
    endpoint: c_int,
    _region: *mut Data,
    task: *mut Data,
    after: *const c_void,
) {
    let (kind, after) = match what {
        // Of the end of a region, or of a construct within it: only some threads know of which.
        2 | 4 | 8 | 9 => (kind::IMPLICIT_BARRIER, std::ptr::null()),
        1 | 3 => (kind::BARRIER, after),
        5 => (kind::TASKWAIT, after),
        6 => (kind::TASKGROUP, after),
        _ => return,
    };
    // SAFETY: of the runtime.
    if unsafe { word(task) } == 0 {
        return;
    }
    if endpoint == BEGIN { begin(kind, after) } else { end(kind) }
}

/// `ompt_callback_work`.
unsafe extern "C" fn work(
    what: c_int,
    endpoint: c_int,
    _region: *mut Data,
    task: *mut Data,
    _count: u64,
    after: *const c_void,
) {
    let kind = match what {
        // Versions 5.2 and later tell schedules apart.
        1 | 10..=13 => kind::FOR,
        2 => kind::SECTIONS,
        3 => kind::SINGLE,
        5 => kind::WORKSHARE,
        7 => kind::TASKLOOP,
        _ => return,
    };
    // SAFETY: of the runtime.
    if unsafe { word(task) } == 0 {
        return;
    }
    if endpoint == BEGIN { begin(kind, after) } else { end(kind) }
}

/// `ompt_callback_masked`, before version 5.1 `ompt_callback_master`.
unsafe extern "C" fn masked(endpoint: c_int, _region: *mut Data, task: *mut Data, after: *const c_void) {
    // SAFETY: of the runtime.
    if unsafe { word(task) } == 0 {
        return;
    }
    if endpoint == BEGIN { begin(kind::MASTER, after) } else { end(kind::MASTER) }
}

/// A lock, by `ompt_mutex_t`: whether it is a critical construct; none of atomic and ordered constructs, which have no order to keep.
fn is_critical(what: c_int) -> Option<bool> {
    matches!(what, 1..=5).then_some(what == 5)
}

/// `ompt_callback_mutex_acquire`: a thread waits for a lock. Testing one may fail, and has no region.
unsafe extern "C" fn mutex_acquire(
    what: c_int,
    _hint: c_uint,
    _implementation: c_uint,
    _lock: u64,
    after: *const c_void,
) {
    match what {
        5 => begin(kind::CRITICAL, after),
        1 | 3 => begin(kind::SET_LOCK, std::ptr::null()),
        _ => {}
    }
}

/// `ompt_callback_mutex_acquired`: it has it.
unsafe extern "C" fn mutex_acquired(what: c_int, lock: u64, _after: *const c_void) {
    if is_critical(what).is_none() {
        return;
    }
    step(clock::after(), openmp::ACQUIRED, |stream| stream.unsigned(lock));
    if matches!(what, 1 | 3) {
        end(kind::SET_LOCK);
    }
}

/// `ompt_callback_mutex_released`: others may have it since, maybe for some time.
unsafe extern "C" fn mutex_released(what: c_int, lock: u64, _after: *const c_void) {
    let Some(critical) = is_critical(what) else { return };
    step(clock::before(), openmp::RELEASED, |stream| stream.unsigned(lock));
    if critical {
        end(kind::CRITICAL);
    }
}

/// `ompt_callback_task_create`.
unsafe extern "C" fn task_create(
    _task: *mut Data,
    _frame: *const c_void,
    new: *mut Data,
    flags: c_int,
    _dependences: c_int,
    after: *const c_void,
) {
    /// `ompt_task_explicit`.
    const TASK: c_int = 4;
    if flags & TASK == 0 {
        return;
    }
    let number = if recording() { TASKS.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
    // SAFETY: of the runtime.
    unsafe { give(new, if number == 0 { 0 } else { number << 1 | EXPLICIT }) };
    if number != 0 {
        step(clock::before(), openmp::TASK_CREATE, |stream| {
            stream.unsigned(number);
            place(stream, after);
        });
    }
}

/// `ompt_callback_task_schedule`: a thread leaves a task for another one.
unsafe extern "C" fn task_schedule(from: *mut Data, status: c_int, to: *mut Data) {
    /// `ompt_task_complete` and `ompt_task_cancel`.
    const ENDED: [c_int; 2] = [1, 3];
    // SAFETY: of the runtime; there is none to go to where only the completion of an event is told.
    let (from, next) = unsafe { (word(from), word(to)) };
    let number = |word: u64| if word & EXPLICIT != 0 { word >> 1 } else { 0 };
    if from == 0 && next == 0 {
        return;
    }
    if ENDED.contains(&status) && number(from) != 0 {
        step(clock::before(), openmp::TASK_COMPLETE, |stream| stream.unsigned(number(from)));
    }
    if !to.is_null() {
        step(clock::after(), openmp::TASK_SWITCH, |stream| stream.unsigned(number(next)));
    }
}
