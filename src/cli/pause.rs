//! A run that stands still where it is told to: for tests of what happens to a run that is killed, stopped, or robbed of its files there.

use std::time::Duration;

/// `PART[@RANK][:SECONDS]`, e.g. `write@1:20`: analysis rank RANK (0) stands still for SECONDS (60) when it comes to PART for the first time.
const SETTING: &str = "CLC_REPLAY_PAUSE";

/// Where this rank stands still, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    rank: usize,
    part: String,
    time: Duration,
    done: std::cell::Cell<bool>,
}

impl Pause {
    /// What the environment asks of analysis rank `rank`.
    pub fn asked_for(rank: usize) -> Option<Pause> {
        Pause::parse(&std::env::var(SETTING).ok()?).filter(|pause| pause.rank == rank)
    }

    fn parse(text: &str) -> Option<Pause> {
        let (place, seconds) = text.split_once(':').unwrap_or((text, "60"));
        let (part, rank) = place.split_once('@').unwrap_or((place, "0"));
        let time = Duration::from_secs(seconds.parse().ok()?);
        (!part.is_empty()).then_some(())?;
        Some(Pause { rank: rank.parse().ok()?, part: part.to_owned(), time, done: false.into() })
    }

    /// The rank comes to a part of the run.
    pub fn at(&self, part: &str) {
        if part == self.part && !self.done.replace(true) {
            // Always said, so that nobody is surprised by a setting that was forgotten.
            eprintln!("clc-replay: [rank {}] {SETTING}: pausing at {part} for {} s", self.rank, self.time.as_secs());
            std::thread::sleep(self.time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let pause = |rank, part: &str, seconds| {
            Some(Pause { rank, part: part.into(), time: Duration::from_secs(seconds), done: false.into() })
        };
        assert_eq!(Pause::parse("scan"), pause(0, "scan", 60));
        assert_eq!(Pause::parse("write@2:7"), pause(2, "write", 7));
        for text in ["", "@1", "scan@x", "scan:soon", ":5"] {
            assert_eq!(Pause::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_pause_is_made_once() {
        let pause = Pause::parse("scan:0").unwrap();
        assert!(!pause.done.get());
        pause.at("write");
        assert!(!pause.done.get());
        pause.at("scan");
        assert!(pause.done.get());
    }
}
