//! Exchanges of messages that measure a clock, and the file they are kept in.

use crate::format::measured::{MAGIC, SUFFIX};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// A batch goes on until in both directions so many messages have been nearly as fast as the fastest one: slower by no more than this part of what both take
/// together.
const ALIKE: usize = 4;
const NEARLY: i64 = 250;
/// So many of the fastest messages of each direction are kept of a batch. Chosen by hand: with fewer, the two directions may not overlap in time;
/// more make files longer.
const KEPT: usize = 16;

/// One exchange: question left and answer came by the own counter, question came and answer left by that of the partner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    pub asked: u64,
    pub answered: u64,
    pub came: u64,
    pub left: u64,
}

impl Exchange {
    /// How long the question took, and the answer, up to what is the same for all of a batch.
    fn delays(&self) -> [i64; 2] {
        [self.came.wrapping_sub(self.asked) as i64, self.answered.wrapping_sub(self.left) as i64]
    }
}

/// Many exchanges in a row.
#[derive(Debug)]
pub(crate) struct Batch {
    exchanges: Vec<Exchange>,
    /// The fastest messages of each direction, in order.
    fastest: [[i64; ALIKE]; 2],
}

impl Default for Batch {
    fn default() -> Batch {
        Batch { exchanges: Vec::new(), fastest: [[i64::MAX; ALIKE]; 2] }
    }
}

impl Batch {
    /// How many there were.
    pub(crate) fn total(&self) -> usize {
        self.exchanges.len()
    }

    #[cfg(test)]
    pub(crate) fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Adds one.
    pub(crate) fn push(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
        for (fastest, delay) in self.fastest.iter_mut().zip(exchange.delays()) {
            if delay < fastest[ALIKE - 1] {
                fastest[ALIKE - 1] = delay;
                fastest.sort_unstable();
            }
        }
    }

    /// Whether more exchanges would not tell more: the fastest messages are no exceptions.
    pub(crate) fn is_settled(&self) -> bool {
        let most = self.together() / NEARLY;
        self.fastest.iter().all(|fastest| fastest[ALIKE - 1].wrapping_sub(fastest[0]) <= most)
    }

    /// What the fastest messages of both directions took together.
    fn together(&self) -> i64 {
        self.fastest[0][0].wrapping_add(self.fastest[1][0]).max(0)
    }

    /// How long the fastest messages of both directions took together, if the batch took so long.
    pub(crate) fn range(&self, elapsed: Duration) -> Duration {
        let (Some(first), Some(last)) = (self.exchanges.first(), self.exchanges.last()) else { return Duration::MAX };
        let ticks = last.answered.saturating_sub(first.asked).max(1);
        elapsed.mul_f64(self.together() as f64 / ticks as f64)
    }

    /// The fastest ones of each direction in the order of time.
    fn kept(mut self) -> Vec<Exchange> {
        let bound = |direction: usize| {
            let mut delays: Vec<i64> = self.exchanges.iter().map(|exchange| exchange.delays()[direction]).collect();
            delays.sort_unstable();
            delays.get(KEPT - 1).copied().unwrap_or(i64::MAX)
        };
        let bounds = [bound(0), bound(1)];
        self.exchanges.retain(|exchange| exchange.delays().iter().zip(bounds).any(|(&delay, bound)| delay <= bound));
        self.exchanges
    }
}

/// The file with the measurements of a process. What has been written is there, whatever happens to the process.
pub(crate) struct Measured {
    file: std::fs::File,
}

impl Measured {
    /// Makes it. None if that is not possible: then nothing is kept.
    pub(crate) fn create(directory: &Path, rank: usize) -> Option<Measured> {
        let path = directory.join(format!("{rank}.{SUFFIX}"));
        let mut file = std::fs::OpenOptions::new().append(true).create_new(true).open(path).ok()?;
        file.write_all(&MAGIC).ok()?;
        Some(Measured { file })
    }

    /// Appends a batch of exchanges with a process, made by `method`. Nothing depends on whether there is room for it.
    pub(crate) fn append(&mut self, partner: usize, method: u64, batch: Batch) {
        let total = batch.total() as u64;
        let kept = batch.kept();
        let mut bytes = Vec::with_capacity(32 * (kept.len() + 1));
        let mut add = |words: [u64; 4]| words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        add([partner as u64, method, total, kept.len() as u64]);
        kept.iter().for_each(|exchange| add([exchange.asked, exchange.answered, exchange.came, exchange.left]));
        let _ = self.file.write_all(&bytes);
    }
}
