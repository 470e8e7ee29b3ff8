//! Functions of the program that it is in before anything is recorded.

use crate::format::FUNCTION_ENTER;
use crate::stream::Stream;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many functions that were entered before `MPI_Init` was called are kept.
const DEPTH: usize = 64;

/// Functions that a thread is in before anything is recorded: addresses and times.
struct EarlyFunctions {
    depth: Cell<usize>,
    entered: [Cell<(usize, u64)>; DEPTH],
}

thread_local! {
    static EARLY: EarlyFunctions = const { EarlyFunctions { depth: Cell::new(0), entered: [const { Cell::new((0, 0)) }; DEPTH] } };
}

/// Functions of the program have been recorded: addresses are to be kept.
static FUNCTIONS: AtomicBool = AtomicBool::new(false);

/// Whether functions of the program have been recorded.
pub(crate) fn has_functions() -> bool {
    FUNCTIONS.load(Ordering::Relaxed)
}

/// One has been recorded.
pub(crate) fn recorded() {
    if !has_functions() {
        FUNCTIONS.store(true, Ordering::Relaxed);
    }
}

/// This thread enters one before anything is recorded.
pub(crate) fn enter_early(address: usize, time: fn() -> u64) {
    EARLY.with(|early| {
        let depth = early.depth.get();
        if let Some(place) = early.entered.get(depth) {
            place.set((address, time()));
        }
        early.depth.set(depth + 1);
    });
}

/// This thread leaves one before anything is recorded.
pub(crate) fn leave_early() {
    EARLY.with(|early| early.depth.set(early.depth.get().saturating_sub(1)));
}

/// Integers of the record of one, and of any other of the program's own.
pub(crate) const ROOM: usize = 8;

/// Records the functions that this thread is in when recording begins.
pub(crate) fn begin(stream: &mut Stream) {
    EARLY.with(|early| {
        let depth = early.depth.get().min(DEPTH);
        if depth == 0 || !stream.reserve(ROOM * depth) {
            return;
        }
        FUNCTIONS.store(true, Ordering::Relaxed);
        for (address, time) in early.entered[..depth].iter().map(Cell::get) {
            stream.unsigned(FUNCTION_ENTER);
            stream.stamp(time);
            stream.address(address);
        }
    });
}
