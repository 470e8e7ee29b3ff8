//! Visited events of a timeline, one per message of a channel or instance of a communicator.

use std::ops::Range;
use std::sync::Arc;

/// Events by their index in the timeline, as a program has them, or mirrored: from the last one to the first, counted from the end of the timeline. A mirrored list takes no
/// memory of its own. Its elements differ from the stored ones, so there is no view of a list as a slice: it is read by [`EventList::at`] and [`EventList::each`], which are valid in
/// both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventList {
    events: Arc<Vec<u32>>,
    /// Of a mirrored list: the number of events of the timeline.
    mirrored: Option<u32>,
}

impl EventList {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// One of them, in the direction of the replay.
    #[inline]
    pub fn at(&self, place: usize) -> u32 {
        match self.mirrored {
            None => self.events[place],
            Some(events) => events - 1 - self.events[self.events.len() - 1 - place],
        }
    }

    /// The same, if there are so many.
    pub fn get(&self, place: usize) -> Option<u32> {
        (place < self.len()).then(|| self.at(place))
    }

    /// All of them, in the direction of the replay.
    pub fn each(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.some(0..self.len())
    }

    /// All of them as they lie in memory, unless the list is mirrored.
    pub(crate) fn as_slice(&self) -> Option<&[u32]> {
        self.mirrored.is_none().then_some(&self.events[..])
    }

    /// Those at these places, in the direction of the replay.
    pub(crate) fn some(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = u32> + '_ {
        places.map(|place| self.at(place))
    }

    /// The same in the mirrored program; their timeline has so many events.
    pub(crate) fn mirrored(&self, events: usize) -> EventList {
        let mirrored = if self.mirrored.is_none() { Some(events as u32) } else { None };
        EventList { events: Arc::clone(&self.events), mirrored }
    }

    /// To be changed: a list of its own if it is mirrored, or if another program shares it.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<u32> {
        if self.mirrored.is_some() {
            *self = self.each().collect();
        }
        Arc::make_mut(&mut self.events)
    }
}

impl From<Vec<u32>> for EventList {
    fn from(events: Vec<u32>) -> EventList {
        EventList { events: Arc::new(events), mirrored: None }
    }
}

impl FromIterator<u32> for EventList {
    fn from_iter<I: IntoIterator<Item = u32>>(events: I) -> EventList {
        events.into_iter().collect::<Vec<u32>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrored_lists_go_back_from_the_end() {
        let list: EventList = [1, 2, 7].into_iter().collect();
        let mirrored = list.mirrored(9);
        assert_eq!(mirrored.each().collect::<Vec<u32>>(), [1, 6, 7]);
        assert_eq!(mirrored.some(1..3).collect::<Vec<u32>>(), [6, 7]);
        assert_eq!((mirrored.len(), mirrored.at(2), list.at(2)), (3, 7, 7));
        assert_eq!(mirrored.mirrored(9), list);
        let mut changed = mirrored.clone();
        changed.to_mut().push(8);
        assert_eq!(changed.each().collect::<Vec<u32>>(), [1, 6, 7, 8]);
    }
}
