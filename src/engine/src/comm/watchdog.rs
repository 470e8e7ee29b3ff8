//! Who is waited for: what the watching ranks make of the signs of life of the others.
//!
//! Every rank tells two *watchers*, the ranks 0 and 1, now and then that it waits or how far its work is. A watcher that has to wait for long
//! itself looks who does not wait, and who has said nothing. Rank 1 speaks only if rank 0 is silent. Nobody is ended for being silent: the
//! run goes on when that rank does.

use clc_trace::{Error, Result};
use std::time::{Duration, Instant};

/// Ranks that watch. Chosen by hand: with one, nobody would notice that it is silent itself; more cost messages.
pub(super) const WATCHERS: usize = 2;

/// Most ranks that one message names. Chosen by hand: with more, the line cannot be read; the number of the others follows.
const NAMED: usize = 8;

/// Environment variable with the seconds of waiting after which a message says whom for; 0: never.
const SETTING: &str = "CLC_REPLAY_WATCH";

/// How long a wait has to be to be told, unless [`SETTING`] says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// Finds out whether the patience that the environment asks for is one. Until somebody has, a wrong setting is none.
///
/// # Errors
/// It is no number of seconds.
pub fn check_setting() -> Result<()> {
    let Some(text) = std::env::var_os(SETTING) else { return Ok(()) };
    match text.to_str().and_then(|text| text.trim().parse::<f64>().ok()) {
        Some(seconds) if seconds >= 0.0 => Ok(()),
        _ => Err(Error::new(format!("{SETTING} is '{}'", text.to_string_lossy()))
            .hint("it has to be a number of seconds, or 0 for no messages")),
    }
}

/// How long to wait before a message says whom for; `None`: no messages.
pub(super) fn patience() -> Option<Duration> {
    let given = std::env::var(SETTING).ok().and_then(|text| text.trim().parse::<f64>().ok());
    match given {
        Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds.clamp(0.1, 1e6)).ok(),
        Some(0.0) => None,
        _ => Some(PATIENCE),
    }
}

/// What a rank says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sign {
    /// It waits for others.
    pub waits: bool,
    /// The part of the run that it is in: at most eight bytes of its name.
    pub part: [u8; 8],
    /// How much of that is done, in thousandths, if that is known.
    pub done: Option<u16>,
}

impl Sign {
    /// Words of a message.
    pub(super) fn encode(&self) -> [u64; 2] {
        let done = self.done.map_or(u64::from(u16::MAX), u64::from);
        [u64::from_le_bytes(self.part), done << 1 | u64::from(self.waits)]
    }

    /// Reads what [`Sign::encode`] wrote.
    pub(super) fn decode([part, rest]: [u64; 2]) -> Sign {
        let done = u16::try_from(rest >> 1).ok().filter(|&done| done != u16::MAX);
        Sign { waits: rest & 1 == 1, part: part.to_le_bytes(), done }
    }

    /// The first bytes of the name of a part.
    pub(super) fn name(part: &str) -> [u8; 8] {
        let mut name = [0; 8];
        name.iter_mut().zip(part.bytes()).for_each(|(to, from)| *to = from);
        name
    }

    fn describe(&self) -> String {
        let part = String::from_utf8_lossy(&self.part).trim_end_matches('\0').to_owned();
        match (part.is_empty(), self.done) {
            (true, _) => String::new(),
            (false, None) => format!(", in {part}"),
            (false, Some(done)) => format!(", in {part}, {} %", done / 10),
        }
    }
}

/// The process of a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Home {
    /// Number of the process on its node.
    pub process: u32,
    /// Name of the node.
    pub node: String,
}

impl Home {
    /// Of this process, on a node called `node`.
    pub(super) fn here(node: String) -> Home {
        Home { process: std::process::id(), node }
    }

    /// Words of a message.
    pub(super) fn encode(&self) -> Vec<u64> {
        let bytes = self.node.bytes().collect::<Vec<u8>>();
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        std::iter::once(u64::from(self.process)).chain(words).collect()
    }

    /// Reads what [`Home::encode`] wrote.
    pub(super) fn decode(words: &[u64]) -> Home {
        let bytes: Vec<u8> = words.iter().skip(1).flat_map(|word| word.to_le_bytes()).collect();
        let node = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
        Home { process: words.first().map_or(0, |&process| process as u32), node }
    }

    /// What the system says of the process, if it runs on the same node as this one, `here`.
    fn state(&self, here: &Home) -> &'static str {
        if self.node != here.node || self.node.is_empty() {
            return "";
        }
        let Ok(line) = std::fs::read_to_string(format!("/proc/{}/stat", self.process)) else { return "" };
        // The name stands in parentheses, the state after them. In another namespace the number may be another program's.
        match line
            .rsplit_once(')')
            .map(|(name, rest)| (name.ends_with("(clc-replay"), rest.trim_start().chars().next()))
        {
            Some((true, Some('T' | 't'))) => ", which is stopped",
            Some((true, Some('D'))) => ", which is waiting for a disk",
            Some((true, Some('R'))) => ", which is computing",
            Some((true, Some('Z' | 'X'))) => ", which has ended",
            _ => "",
        }
    }
}

/// What a watcher knows of one rank.
#[derive(Debug, Clone)]
struct WatchedRank {
    last: Instant,
    sign: Sign,
    home: Option<Home>,
    reported: bool,
}

/// What a watcher knows.
#[derive(Debug)]
pub(super) struct Watchdog {
    own: usize,
    here: Home,
    patience: Duration,
    ranks: Vec<WatchedRank>,
    /// Waits that are shorter are not told (again).
    next: Duration,
}

impl Watchdog {
    /// Of rank `own` in a world of `size`.
    pub(super) fn new(own: usize, size: usize, here: Home, patience: Duration, now: Instant) -> Watchdog {
        let heard = WatchedRank { last: now, sign: Sign::default(), home: None, reported: false };
        Watchdog { own, here, patience, ranks: vec![heard; size], next: patience }
    }

    /// A sign of life of `rank`. Returns what is to be told.
    pub(super) fn hear(&mut self, rank: usize, sign: Sign, home: Option<Home>, now: Instant) -> Option<String> {
        let heard = self.ranks.get_mut(rank)?;
        let silent = now.duration_since(heard.last);
        heard.last = now;
        heard.sign = sign;
        heard.home = home.or(heard.home.take());
        std::mem::take(&mut heard.reported)
            .then(|| format!("heartbeat from rank {rank} received again after {} s", silent.as_secs()))
    }

    /// This rank has waited for `waited` in one wait, and still does. Returns what is to be told.
    pub(super) fn look(&mut self, waited: Duration, now: Instant) -> Vec<String> {
        if waited < self.patience {
            self.next = self.patience;
        }
        if waited < self.next {
            return Vec::new();
        }
        // Three signs are missing.
        let silent = |heard: &WatchedRank| now.duration_since(heard.last) > self.patience.mul_f64(0.75);
        if self.own > 0 && !silent(&self.ranks[0]) {
            return Vec::new();
        }
        self.next = self.next.saturating_mul(2);
        let others = || (0..self.ranks.len()).filter(|&rank| rank != self.own);
        let quiet: Vec<usize> = others().filter(|&rank| silent(&self.ranks[rank])).collect();
        let busy: Vec<usize> =
            others().filter(|&rank| !silent(&self.ranks[rank]) && !self.ranks[rank].sign.waits).collect();
        let name = |rank: usize| {
            let heard = &self.ranks[rank];
            let seconds = now.duration_since(heard.last).as_secs();
            let home = heard.home.as_ref().map_or(String::new(), |home| {
                format!(" (process {} on {}{})", home.process, home.node, home.state(&self.here))
            });
            match silent(heard) {
                true => format!("rank {rank}{home}, silent for {seconds} s{}", heard.sign.describe()),
                false => format!("rank {rank}{home}{}", heard.sign.describe()),
            }
        };
        let list = |ranks: &[usize]| {
            let mut names: Vec<String> = ranks.iter().take(NAMED).map(|&rank| name(rank)).collect();
            if ranks.len() > NAMED {
                names.push(format!("and {} more", ranks.len() - NAMED));
            }
            names.join("; ")
        };
        let mut lines = Vec::new();
        if !quiet.is_empty() {
            lines.push(format!("waiting for {} s; no heartbeat from {}", waited.as_secs(), list(&quiet)));
        }
        if !busy.is_empty() {
            lines.push(format!("waiting for {} s for slower ranks: {}", waited.as_secs(), list(&busy)));
        }
        for rank in quiet {
            self.ranks[rank].reported = true;
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(own: usize, start: Instant) -> Watchdog {
        let here = Home { process: 1, node: "here".into() };
        let mut watch = Watchdog::new(own, 4, here, Duration::from_secs(10), start);
        for rank in 0..4 {
            let home = Home { process: 100 + rank as u32, node: "there".into() };
            assert_eq!(watch.hear(rank, Sign::default(), Some(home), start), None);
        }
        watch
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn signs_and_homes_travel() {
        for done in [None, Some(0), Some(417), Some(1000)] {
            for waits in [false, true] {
                let sign = Sign { waits, part: Sign::name("backward amortisation"), done };
                assert_eq!(Sign::decode(sign.encode()), sign);
            }
        }
        for node in ["", "a", "node0001", "node0001.cluster"] {
            let home = Home { process: 4711, node: node.into() };
            assert_eq!(Home::decode(&home.encode()), home);
        }
    }

    #[test]
    fn silent_and_slow_ranks_are_named_ever_more_rarely() {
        let start = Instant::now();
        let mut watch = watch(0, start);
        let sign = |waits, done| Sign { waits, part: Sign::name("scan"), done };
        assert!(watch.look(Duration::from_secs(9), after(start, 9)).is_empty());
        watch.hear(1, sign(true, None), None, after(start, 11));
        watch.hear(3, sign(false, Some(417)), None, after(start, 11));
        assert_eq!(
            watch.look(Duration::from_secs(10), after(start, 11)),
            [
                "waiting for 10 s; no heartbeat from rank 2 (process 102 on there), silent for 11 s",
                "waiting for 10 s for slower ranks: rank 3 (process 103 on there), in scan, 41 %"
            ]
        );
        assert!(watch.look(Duration::from_secs(19), after(start, 20)).is_empty());
        watch.hear(1, sign(true, None), None, after(start, 20));
        watch.hear(3, sign(false, Some(800)), None, after(start, 20));
        assert_eq!(watch.look(Duration::from_secs(20), after(start, 21)).len(), 2);
        assert!(watch.look(Duration::from_secs(39), after(start, 39)).is_empty());
        let again = watch.hear(2, sign(true, None), None, after(start, 39));
        assert_eq!(again.as_deref(), Some("heartbeat from rank 2 received again after 39 s"));
        assert_eq!(watch.hear(2, sign(true, None), None, after(start, 40)), None);
        // The next long wait begins anew.
        assert!(watch.look(Duration::from_secs(1), after(start, 41)).is_empty());
        assert!(!watch.look(Duration::from_secs(10), after(start, 60)).is_empty());
    }

    #[test]
    fn rank_1_speaks_for_rank_0_only() {
        let start = Instant::now();
        let mut watch = watch(1, start);
        watch.hear(0, Sign::default(), None, after(start, 10));
        assert!(watch.look(Duration::from_secs(15), after(start, 15)).is_empty());
        assert!(watch.look(Duration::from_secs(25), after(start, 25))[0].contains("no heartbeat from rank 0"));
    }

    #[test]
    fn many_are_counted() {
        let start = Instant::now();
        let here = Home { process: 1, node: "here".into() };
        let mut watch = Watchdog::new(0, 100, here, Duration::from_secs(10), start);
        let lines = watch.look(Duration::from_secs(12), after(start, 12));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("rank 8, silent for 12 s; and 91 more"), "{}", lines[0]);
    }
}
