//! What the nodes were doing at agreed times, as they have recorded it.

use crate::recording::raw::format::sampled::{MAGIC, SUFFIX};
use clc_trace::{Error, Result};
use std::path::Path;

/// Most of the samples have to be there, or it is said: one in so many may be missing.
const MISSING: u64 = 10;

/// Name and unit of what is sampled at agreed times.
pub(crate) const METRICS: [(&str, &str); 2] = [("CPU utilisation", ""), ("Link utilisation", "")];

/// One sample of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeSample {
    /// Its agreed time, in periods; its number, if there is none.
    pub(super) turn: u64,
    /// When it was taken, by the counter of the node.
    pub(super) counter: u64,
    /// Shares of the cores' time and of the links' capacity, or what the agent of the node has noted.
    pub(super) values: Vec<f64>,
}

/// Those of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Samples {
    /// Nanoseconds between two agreed times, and so much later than its time a sample may be; none if no times were agreed.
    pub(super) agreed: Option<(u64, u64)>,
    pub(super) list: Vec<NodeSample>,
}

/// What has become of the samples of a node.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampled {
    /// So many are in the trace.
    pub(super) written: u64,
    /// First and last agreed time that it has a sample of.
    pub(super) turns: Option<(u64, u64)>,
}

/// What a process has sampled; none if it does not sample. What was cut off at the end of the file, or makes no sense, is left out.
///
/// # Errors
/// The file cannot be read, or is none.
pub(crate) fn read(directory: &Path, rank: u32) -> Result<Option<Samples>> {
    let path = directory.join(format!("{rank}.{SUFFIX}"));
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(&path, "cannot read the samples of a node", &error)),
    };
    let words = bytes.strip_prefix(&MAGIC).ok_or_else(|| Error::new("not a file of node samples").in_file(&path))?;
    let mut words = words.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    let (Some(period), Some(bound)) = (words.next().filter(|&period| period > 0), words.next()) else {
        return Ok(None);
    };
    let mut list: Vec<NodeSample> = Vec::new();
    while let (Some(turn), Some(counter), Some(cpu), Some(link)) =
        (words.next(), words.next(), words.next(), words.next())
    {
        let values = [cpu, link].map(f64::from_bits);
        let ordered = list.last().is_none_or(|last| last.turn < turn && last.counter <= counter);
        // A reading of a counter fits, and shares are between nothing and all; anything else is damage.
        if !ordered || counter >= 1 << 62 || values.iter().any(|value| !(0.0..=1.0).contains(value)) {
            break;
        }
        list.push(NodeSample { turn, counter, values: values.to_vec() });
    }
    Ok(Some(Samples { agreed: Some((period, bound)), list }))
}

/// What is to be said of the samples of all nodes: each should have one of every agreed time from the first to the last one of all, but for one at its own start or end.
pub(crate) fn missing(all: impl Iterator<Item = Sampled>) -> Option<String> {
    let (mut nodes, mut written, mut range) = (0_u64, 0_u64, None::<(u64, u64)>);
    for sampled in all {
        nodes += 1;
        written += sampled.written;
        range = match (range, sampled.turns) {
            (Some((first, last)), Some((begin, end))) => Some((first.min(begin), last.max(end))),
            (known, other) => known.or(other),
        };
    }
    let (first, last) = range?;
    let agreed = (last - first).saturating_add(1).saturating_mul(nodes);
    let left_out = agreed.saturating_sub(written);
    (left_out > agreed / MISSING + nodes)
        .then(|| format!("{left_out} of {agreed} samples of the nodes were not taken in time and are omitted"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::file_of_words;

    fn file(words: &[u64]) -> tempfile::TempDir {
        file_of_words("2.samples", MAGIC, words)
    }

    #[test]
    fn whole_samples_are_read() {
        let [cpu, link] = [0.25, 1.0].map(f64::to_bits);
        let directory = file(&[100, 10, 7, 5000, cpu, link, 9, 6000, cpu, 0, 10, 7000]);
        let samples = read(directory.path(), 2).unwrap().unwrap();
        let list = vec![
            NodeSample { turn: 7, counter: 5000, values: vec![0.25, 1.0] },
            NodeSample { turn: 9, counter: 6000, values: vec![0.25, 0.0] },
        ];
        assert_eq!(samples, Samples { agreed: Some((100, 10)), list });
        assert_eq!(read(directory.path(), 1).unwrap(), None);
    }

    #[test]
    fn what_makes_no_sense_ends_them() {
        let [cpu, much, none] = [0.5, 1.5, f64::NAN].map(f64::to_bits);
        for wrong in [[8, 6000, much, cpu], [8, 6000, cpu, none], [7, 6000, cpu, cpu], [8, 4000, cpu, cpu]] {
            let directory = file(&[&[100, 10, 7, 5000, cpu, cpu][..], &wrong, &[9, 7000, cpu, cpu]].concat());
            assert_eq!(read(directory.path(), 2).unwrap().unwrap().list.len(), 1, "{wrong:?}");
        }
        assert_eq!(read(file(&[0, 10]).path(), 2).unwrap(), None);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("0.samples"), "nonsense").unwrap();
        assert!(read(directory.path(), 0).unwrap_err().message.contains("not a file of node samples"));
    }

    #[test]
    fn it_is_said_if_many_are_missing() {
        let sampled = |written, turns| std::iter::once(Sampled { written, turns });
        assert_eq!(missing(std::iter::empty()), None);
        assert_eq!(missing(sampled(0, None)), None);
        assert_eq!(missing(sampled(92, Some((1, 100)))), None);
        let said = missing(sampled(80, Some((1, 100))).chain(sampled(90, Some((11, 100)))));
        assert!(said.unwrap().starts_with("30 of 200 samples"));
        // One that does not know the agreed times.
        assert!(missing(sampled(100, Some((1, 100))).chain(sampled(0, None))).unwrap().starts_with("100 of 200 "));
    }
}
