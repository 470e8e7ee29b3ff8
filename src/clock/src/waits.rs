//! The quickest of what takes the same time, by window: [`super::both_sides`] makes measurements of them.

use super::bounds::{Bound, DirectedBounds};
use super::kind::BoundKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What takes the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Class {
    /// The clock of the first event.
    pub from: u32,
    /// The clock of the second one.
    pub to: u32,
    /// What happens between them.
    pub kind: BoundKind,
}

/// The quickest of each class and window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuickestWaits {
    /// By class.
    pub classes: BTreeMap<Class, DirectedBounds>,
}

/// What is to be looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneWayDirections {
    /// Directions of pairs of clocks that have no traffic back to speak of.
    pub one_way: BTreeSet<(u32, u32)>,
}

impl QuickestWaits {
    /// Adds what others have seen.
    pub fn merge(&mut self, other: QuickestWaits) {
        for (class, bounds) in other.classes {
            self.classes.entry(class).or_default().merge(bounds);
        }
    }

    /// Adds one.
    pub fn add(&mut self, class: Class, window: usize, bound: Bound) {
        self.classes.entry(class).or_default().add(window, bound, 1);
    }

    /// How many there are for a pair of clocks that tell what one way does not.
    pub fn of_pair(&self, a: u32, b: u32) -> u64 {
        let classes = self.classes.iter().filter(|(class, _)| class.from.min(class.to) == a.min(b));
        let classes = classes.filter(|(class, _)| class.from.max(class.to) == a.max(b));
        classes.map(|(_, bounds)| bounds.messages).sum()
    }
}
