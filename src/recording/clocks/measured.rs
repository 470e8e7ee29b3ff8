//! The files with the measurements of clocks.

use crate::recording::raw::format::measured::{MAGIC, SUFFIX};
use clc_trace::{Error, Result};
use std::path::Path;

/// One exchange of messages that measures a clock: when it began and ended by the own counter, and when it arrived and left again by that of the partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The question left.
    pub asked: u64,
    /// The answer came.
    pub answered: u64,
    /// The question came.
    pub came: u64,
    /// The answer left.
    pub left: u64,
}

/// The fastest ones of many exchanges in a row, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// With which process.
    pub partner: u32,
    /// By which messages.
    pub method: u64,
    /// What was measured.
    pub exchanges: Vec<Exchange>,
}

/// What a process has measured; nothing if it measures nothing. What was cut off at the end of the file is left out.
///
/// # Errors
/// The file cannot be read, or is none.
pub(crate) fn read(directory: &Path, rank: u32) -> Result<Vec<Batch>> {
    let path = directory.join(format!("{rank}.{SUFFIX}"));
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(&path, "cannot read the clock measurements", &error)),
    };
    let words =
        bytes.strip_prefix(&MAGIC).ok_or_else(|| Error::new("not a file of clock measurements").in_file(&path))?;
    let mut words = words.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    Ok(std::iter::from_fn(|| batch(&mut words)).collect())
}

fn batch(words: &mut impl ExactSizeIterator<Item = u64>) -> Option<Batch> {
    let (partner, method, _) = (words.next()?, words.next()?, words.next()?);
    let count = usize::try_from(words.next()?).ok().filter(|&count| count <= words.len() / 4)?;
    let mut exchanges = Vec::with_capacity(count);
    for _ in 0..count {
        let [asked, answered, came, left] = [words.next()?, words.next()?, words.next()?, words.next()?];
        // A reading of a counter fits; anything else is damage.
        let readings = [asked, answered, came, left].iter().all(|&reading| reading < 1 << 62);
        let ordered = exchanges.last().is_none_or(|last: &Exchange| last.answered <= asked && last.left <= came);
        if !readings || answered < asked || left < came || !ordered {
            return None;
        }
        exchanges.push(Exchange { asked, answered, came, left });
    }
    Some(Batch { partner: u32::try_from(partner).ok()?, method, exchanges })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::file_of_words;

    fn file(words: &[u64]) -> tempfile::TempDir {
        file_of_words("3.clock", MAGIC, words)
    }

    #[test]
    fn whole_batches_are_read() {
        let whole = [0, 1, 128, 1, 10, 40, 120, 130];
        let one = Batch {
            partner: 0,
            method: 1,
            exchanges: vec![Exchange { asked: 10, answered: 40, came: 120, left: 130 }],
        };
        assert_eq!(read(file(&whole).path(), 3).unwrap(), std::slice::from_ref(&one));
        assert_eq!(read(file(&whole).path(), 2).unwrap(), []);
        let cut = [&whole[..], &[0, 1, 128, 2, 50, 60, 150, 160]].concat();
        assert_eq!(read(file(&cut).path(), 3).unwrap(), [one]);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for words in [[0, 1, 128, 1, 40, 10, 120, 130], [0, 1, 128, 1, 10, 40, 130, 120], [0, 1, 1, 9, 1, 2, 3, 4]] {
            assert_eq!(read(file(&words).path(), 3).unwrap(), []);
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("0.clock"), "nonsense").unwrap();
        assert!(read(directory.path(), 0).unwrap_err().message.contains("not a file of clock measurements"));
    }
}
