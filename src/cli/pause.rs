//! A run that stands still where it is told to: for tests of what happens to a run that is killed, stopped, or robbed of its files there.

use clc_engine::comm::AnalysisRank;
use clc_trace::{Error, Result};
use std::cell::Cell;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// `PART[@RANK][:UNTIL]`, e.g. `write@1:20`: analysis rank RANK (0) stands still when it comes to PART of the run for the first time, for
/// UNTIL seconds (60), or until the file UNTIL exists (but not longer than a minute).
const SETTING: &str = "CLC_REPLAY_PAUSE";

/// Longest pause that nobody has given a length. Chosen by hand: a test that loses its way then ends by itself, but a slow machine has the time that
/// tests need.
const LONGEST: Duration = Duration::from_secs(60);

/// The parts of a run of any command, roughly in their order.
const PARTS: [&str; 20] = [
    "open", "simulate", "prepare", "scan", "convert", "perturb", "clocks", "check", "replay", "pass", "backward",
    "write", "verify", "regions", "waits", "path", "analyse", "compare", "publish", "details",
];

/// Where this rank stands still, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    rank: AnalysisRank,
    part: String,
    time: Duration,
    file: Option<PathBuf>,
    done: Cell<bool>,
}

impl Pause {
    /// What the environment asks of analysis rank `rank`.
    pub(crate) fn asked_for(rank: AnalysisRank) -> Option<Pause> {
        Pause::parse(&std::env::var(SETTING).ok()?).filter(|pause| pause.rank == rank)
    }

    /// Finds out whether what the environment asks for is there.
    ///
    /// # Errors
    /// It is not.
    pub fn check_setting() -> Result<()> {
        let Some(text) = std::env::var_os(SETTING) else { return Ok(()) };
        match text.to_str().and_then(Pause::parse) {
            Some(_) => Ok(()),
            None => Err(Error::new(format!("{SETTING} is '{}'", text.to_string_lossy()))
                .hint(format!("expected PART[@RANK][:UNTIL], where PART is one of {}", PARTS.join(", ")))),
        }
    }

    fn parse(text: &str) -> Option<Pause> {
        let (place, until) = text.split_once(':').unwrap_or((text, ""));
        let (part, rank) = place.split_once('@').unwrap_or((place, "0"));
        let (time, file) = match until.parse() {
            Ok(seconds) => (Duration::from_secs(seconds), None),
            Err(_) => (LONGEST, Some(PathBuf::from(until)).filter(|_| !until.is_empty())),
        };
        PARTS.contains(&part).then_some(())?;
        Some(Pause {
            rank: AnalysisRank(rank.parse().ok()?),
            part: part.to_owned(),
            time,
            file,
            done: Cell::new(false),
        })
    }

    /// The rank comes to a part of the run.
    pub(crate) fn at(&self, part: &str) {
        if part != self.part || self.done.replace(true) {
            return;
        }
        // Always said, so that nobody is surprised by a setting that was forgotten.
        let _ = writeln!(std::io::stderr(), "clc-replay: [rank {}] {SETTING}: pausing at {part}", self.rank);
        let start = Instant::now();
        while start.elapsed() < self.time && !self.file.as_ref().is_some_and(|file| file.exists()) {
            std::thread::sleep(Duration::from_millis(10).min(self.time));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let pause = |rank, part: &str, seconds, file: Option<&str>| {
            let time = Duration::from_secs(seconds);
            Some(Pause {
                rank: AnalysisRank(rank),
                part: part.into(),
                time,
                file: file.map(Into::into),
                done: false.into(),
            })
        };
        assert_eq!(Pause::parse("scan"), pause(0, "scan", 60, None));
        assert_eq!(Pause::parse("write@2:7"), pause(2, "write", 7, None));
        assert_eq!(Pause::parse("write@2:/tmp/x"), pause(2, "write", 60, Some("/tmp/x")));
        for text in ["", "@1", "scan@x", ":5", "foo", "foo@1:5"] {
            assert_eq!(Pause::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_pause_is_made_once() {
        let pause = Pause::parse("scan:0").unwrap();
        pause.at("write");
        assert!(!pause.done.get());
        pause.at("scan");
        assert!(pause.done.get());
    }
}
