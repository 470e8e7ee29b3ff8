//! What each visited event of a timeline does, in few bytes.

use crate::matching::hash::HashMap;

/// A part per event: any number, and 0 behind the last one that was set. Those of a timeline are few, as it has few partners, so that each event has only the number of its part among
/// them, in two bytes as long as there are no more than 2¹⁶.
#[derive(Debug, Clone)]
pub(super) enum Parts {
    /// Number of the part of each event.
    Numbered(Vec<u16>, Distinct),
    /// The parts themselves.
    Plain(Vec<u32>),
}

/// Different parts.
#[derive(Debug, Clone)]
pub(super) struct Distinct {
    /// By number; the first is 0.
    parts: Vec<u32>,
    numbers: HashMap<u32, u16>,
    /// The part that was asked for last, and its number.
    last: (u32, u16),
}

impl Default for Parts {
    fn default() -> Self {
        let distinct = Distinct { parts: vec![0], numbers: HashMap::from_iter([(0, 0)]), last: (0, 0) };
        Parts::Numbered(Vec::new(), distinct)
    }
}

impl Distinct {
    /// The number of a part; `None` if there are too many.
    #[inline]
    fn number(&mut self, part: u32) -> Option<u16> {
        if self.last.0 == part { Some(self.last.1) } else { self.searched_number(part) }
    }

    #[inline(never)]
    fn searched_number(&mut self, part: u32) -> Option<u16> {
        let number = match self.numbers.get(&part) {
            Some(&number) => number,
            None => {
                let number = u16::try_from(self.parts.len()).ok()?;
                self.parts.push(part);
                self.numbers.insert(part, number);
                number
            }
        };
        self.last = (part, number);
        Some(number)
    }
}

impl Parts {
    /// The part of an event.
    #[inline(always)]
    pub(super) fn at(&self, event: usize) -> u32 {
        match self {
            Parts::Numbered(numbers, distinct) => {
                numbers.get(event).map_or(0, |&number| distinct.parts[usize::from(number)])
            }
            Parts::Plain(parts) => parts.get(event).copied().unwrap_or(0),
        }
    }

    /// Gives an event its part.
    #[inline]
    pub(super) fn set(&mut self, event: usize, part: u32) {
        if let Parts::Numbered(numbers, distinct) = self {
            match distinct.number(part) {
                Some(number) => return put(numbers, event, number),
                None => self.tell_apart(),
            }
        }
        if let Parts::Plain(parts) = self {
            put(parts, event, part);
        }
    }

    /// From now on events have the parts themselves.
    #[cold]
    fn tell_apart(&mut self) {
        if let Parts::Numbered(numbers, distinct) = self {
            let part = |&number: &u16| distinct.parts[usize::from(number)];
            *self = Parts::Plain(numbers.iter().map(part).collect());
        }
    }
}

/// Puts a value into a list, which becomes long enough for it.
#[inline]
fn put<T: Clone + Default>(list: &mut Vec<T>, place: usize, value: T) {
    if place >= list.len() {
        list.resize(place + 1, T::default());
    }
    list[place] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_however_many_there_are() {
        let mut parts = Parts::default();
        let count = (1 << 16) + 9u32;
        assert_eq!(parts.at(7), 0);
        (0..count).for_each(|event| parts.set(event as usize, event % 3));
        assert!(matches!(parts, Parts::Numbered(..)));
        (0..count).rev().for_each(|event| parts.set(event as usize, 7 * event));
        assert!(matches!(parts, Parts::Plain(_)));
        assert!((0..count).all(|event| parts.at(event as usize) == 7 * event));
        parts.set(count as usize + 2, 3);
        assert_eq!([0, 1, 2, 3].map(|more| parts.at(count as usize + more)), [0, 0, 3, 0]);
    }
}
