//! The progress bar on a terminal.

use crate::cli::pause::Pause;
use clc_engine::comm::AnalysisRank;
use clc_marks::Region;
use clc_trace::progress::{Progress, Silent};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Mutex;

/// The bar on the screen, if there is one, so that log lines can be written around it.
static VISIBLE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A progress bar on analysis rank 0 if standard error is a terminal and `quiet` is not set; otherwise nothing.
pub(crate) fn progress(rank: AnalysisRank, quiet: bool) -> Box<dyn Progress> {
    if rank == AnalysisRank::FIRST && !quiet && std::io::stderr().is_terminal() {
        Box::new(PhaseBar)
    } else {
        Box::new(Silent)
    }
}

/// The same, beside `others` (the watchdog of the analysis ranks), and with the pause that `CLC_REPLAY_PAUSE` asks for.
pub fn watched(others: Box<dyn Progress>, rank: AnalysisRank, quiet: bool) -> Box<dyn Progress> {
    Box::new(ProgressFanOut {
        bar: progress(rank, quiet),
        others,
        pause: Pause::asked_for(rank),
        region: Cell::new(None),
    })
}

/// Passes the progress on to everybody who wants to know.
struct ProgressFanOut {
    bar: Box<dyn Progress>,
    others: Box<dyn Progress>,
    pause: Option<Pause>,
    /// The part of the run, for those who watch it (`--monitor`).
    region: Cell<Option<Region<'static>>>,
}

/// Parts of the run by their names: few, and known as long as the program runs.
static PARTS: Mutex<BTreeMap<&'static str, &'static CStr>> = Mutex::new(BTreeMap::new());

fn part_named(name: &'static str) -> Option<&'static CStr> {
    let mut parts = PARTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(part) = parts.get(name) {
        return Some(part);
    }
    let part: &'static CStr = Box::leak(CString::new(name).ok()?.into_boxed_c_str());
    parts.insert(name, part);
    Some(part)
}

impl ProgressFanOut {
    fn begin(&self, part: &'static str) {
        // The last one ends first.
        drop(self.region.take());
        self.region.set(part_named(part).map(clc_marks::region));
        if let Some(pause) = &self.pause {
            pause.at(part);
        }
    }
}

impl Progress for ProgressFanOut {
    fn phase(&self, name: &'static str, events: u64) {
        self.bar.phase(name, events);
        self.others.phase(name, events);
        self.begin(name);
    }

    fn advance(&self, events: u64) {
        self.bar.advance(events);
        self.others.advance(events);
    }

    fn finish(&self) {
        self.bar.finish();
        self.others.finish();
        drop(self.region.take());
    }

    fn step(&self, name: &'static str) {
        self.bar.step(name);
        self.others.step(name);
        self.begin(name);
    }
}

/// Writes something to the terminal while the bar is away.
pub(super) fn suspended<T>(write: impl FnOnce() -> T) -> T {
    match current() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn current() -> Option<ProgressBar> {
    // A panic elsewhere while the lock was held leaves a usable value.
    VISIBLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

fn show(bar: Option<ProgressBar>) {
    let previous = std::mem::replace(&mut *VISIBLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), bar);
    if let Some(previous) = previous {
        previous.finish_and_clear();
    }
}

/// One bar per phase, cleared when the phase is over: the report has the times.
#[derive(Debug)]
struct PhaseBar;

impl Progress for PhaseBar {
    fn phase(&self, name: &'static str, events: u64) {
        let bar = ProgressBar::new(events).with_style(style()).with_message(name);
        // Seen at once even if the first events take long.
        bar.tick();
        show(Some(bar));
    }

    fn advance(&self, events: u64) {
        if let Some(bar) = current() {
            bar.inc(events);
        }
    }

    fn finish(&self) {
        show(None);
    }
}

impl Drop for PhaseBar {
    fn drop(&mut self) {
        show(None);
    }
}

fn style() -> ProgressStyle {
    // The template is a constant, covered by a test; the fallback is never seen.
    ProgressStyle::with_template(TEMPLATE)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, text: &mut dyn Write| {
            let _ = write!(text, "{}", clc_trace::format::rate(state.per_sec(), "events/s"));
        })
        .progress_chars("=> ")
}

const TEMPLATE: &str = "{msg:16} [{bar:30}] {percent:>3} % {rate:>16} {eta:>5}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }

    // One test for all, since there is one bar per process.
    #[test]
    fn a_bar_lives_as_long_as_its_phase_and_on_rank_0_only() {
        for (rank, quiet) in [(AnalysisRank(1), false), (AnalysisRank(0), true)] {
            let progress = progress(rank, quiet);
            progress.phase("scan", 10);
            assert!(current().is_none());
        }
        let bar = PhaseBar;
        bar.phase("scan", 10);
        bar.advance(4);
        assert_eq!(current().map(|bar| bar.position()), Some(4));
        assert_eq!(suspended(|| 7), 7);
        bar.finish();
        assert!(current().is_none());
    }
}
