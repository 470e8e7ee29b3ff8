//! Places of events within a timeline, as parallel arrays.

use crate::EventNumber;

/// Locations and event numbers of a list of events: four bytes each as long as the locations are 0 and the numbers below 2³².
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    numbers: EventNumbers,
    /// Index of the location within the timeline; empty as long as that is 0 for all.
    locations: Vec<u32>,
}

/// Event numbers: four bytes each as long as that is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EventNumbers {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for EventNumbers {
    fn default() -> Self {
        EventNumbers::Narrow(Vec::new())
    }
}

impl Places {
    /// Empty, with room for `capacity` places.
    pub fn with_capacity(capacity: usize) -> Places {
        Places { numbers: EventNumbers::Narrow(Vec::with_capacity(capacity)), locations: Vec::new() }
    }

    fn len(&self) -> usize {
        match &self.numbers {
            EventNumbers::Narrow(numbers) => numbers.len(),
            EventNumbers::Wide(numbers) => numbers.len(),
        }
    }

    /// Appends the place of event `number` of location `location`.
    #[inline(always)]
    pub fn push(&mut self, location: u32, number: EventNumber) {
        match (&mut self.numbers, u32::try_from(number.0)) {
            // Nearly all of them.
            (EventNumbers::Narrow(numbers), Ok(number)) if location == 0 && self.locations.is_empty() => {
                numbers.push(number)
            }
            _ => self.push_any(location, number),
        }
    }

    /// As [`Places::push`], whatever the place is.
    #[inline(never)]
    fn push_any(&mut self, location: u32, number: EventNumber) {
        if location != 0 && self.locations.is_empty() {
            self.locations.resize(self.len(), 0);
        }
        if location != 0 || !self.locations.is_empty() {
            self.locations.push(location);
        }
        match &mut self.numbers {
            EventNumbers::Narrow(numbers) => match u32::try_from(number.0) {
                Ok(number) => numbers.push(number),
                Err(_) => {
                    let wide = numbers.iter().map(|&number| u64::from(number)).chain([number.0]).collect();
                    self.numbers = EventNumbers::Wide(wide);
                }
            },
            EventNumbers::Wide(numbers) => numbers.push(number.0),
        }
    }

    /// Number of an event in its location.
    #[inline]
    pub fn number(&self, index: usize) -> EventNumber {
        EventNumber(match &self.numbers {
            EventNumbers::Narrow(numbers) => u64::from(numbers[index]),
            EventNumbers::Wide(numbers) => numbers[index],
        })
    }

    /// Whether there are locations other than 0.
    pub fn has_locations(&self) -> bool {
        !self.locations.is_empty()
    }

    /// Index of an event's location within the timeline.
    #[inline]
    pub fn location(&self, index: usize) -> u32 {
        if self.locations.is_empty() { 0 } else { self.locations[index] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_as_they_were_pushed() {
        let mut places = Places::with_capacity(2);
        let pushed = [(0, 1), (0, 2), (2, 7), (0, u64::from(u32::MAX) + 5), (1, 8)];
        pushed.iter().for_each(|&(location, number)| places.push(location, EventNumber(number)));
        for (index, &place) in pushed.iter().enumerate() {
            assert_eq!((places.location(index), places.number(index).0), place);
        }
    }
}
