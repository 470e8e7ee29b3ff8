//! Warnings as data: collected on every rank, merged, printed once.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that the user should know, and how often it came up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// One sentence: what is odd, and what to do about it.
    pub text: String,
    /// How often it came up.
    pub count: u64,
}

/// A collection of warnings without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warnings {
    counts: BTreeMap<String, u64>,
    omitted: u64,
}

impl Warnings {
    /// Most distinct texts that are kept; a damaged trace could give a different one per event. Chosen by hand: with fewer, warnings of a sound trace
    /// could be lost; with more, memory grows with the damage.
    pub const DISTINCT: usize = 1000;

    /// Adds a warning.
    pub fn add(&mut self, text: impl Into<String>) {
        self.add_many(text, 1);
    }

    /// Adds a warning that came up `count` times.
    pub fn add_many(&mut self, text: impl Into<String>, count: u64) {
        let text = text.into();
        if count == 0 {
            return;
        }
        if let Some(known) = self.counts.get_mut(&text) {
            *known = known.saturating_add(count);
        } else if self.counts.len() < Self::DISTINCT {
            self.counts.insert(text, count);
        } else {
            self.omitted = self.omitted.saturating_add(count);
        }
    }

    /// Adds all warnings of another rank.
    pub fn merge(&mut self, other: Warnings) {
        for (text, count) in other.counts {
            self.add_many(text, count);
        }
        self.omitted = self.omitted.saturating_add(other.omitted);
    }

    /// The warnings for the report, in the order of their texts.
    pub fn into_list(self) -> Vec<Warning> {
        let omitted = (self.omitted > 0).then(|| Warning { text: "further warnings".into(), count: self.omitted });
        self.counts.into_iter().map(|(text, count)| Warning { text, count }).chain(omitted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_counted() {
        let mut warnings = Warnings::default();
        warnings.add("b");
        warnings.add("a");
        warnings.add_many("b", 0);
        let mut other = Warnings::default();
        other.add_many("b", 2);
        warnings.merge(other);
        let list: Vec<_> = warnings.into_list().into_iter().map(|w| (w.text, w.count)).collect();
        assert_eq!(list, [("a".to_owned(), 1), ("b".to_owned(), 3)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut warnings = Warnings::default();
        for number in 0..5000 {
            warnings.add(format!("{number:05}"));
        }
        warnings.add("00000");
        let list = warnings.into_list();
        assert_eq!(list.len(), Warnings::DISTINCT + 1);
        assert_eq!(list[0].count, 2);
        assert_eq!(list.last().map(|w| (w.text.as_str(), w.count)), Some(("further warnings", 4000)));
    }
}
