//! The communicators and windows that this process is a member of, and how many collective operations it has called on each.

use super::{Board, Slot};
use crate::format::calls::Effect;
use crate::layout::{self, field, slot};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// A communicator that this process has become a member of, with what all its members know of it.
pub(crate) struct NewMembership {
    /// Its handle.
    pub handle: u64,
    /// Rank of this process in it, and number of members.
    pub rank: usize,
    /// See above.
    pub size: usize,
    /// Global rank of its first member, and a number that tells its members.
    pub first: u64,
    /// See above.
    pub members: u64,
    /// The same of the other group.
    pub others: Option<(u64, u64)>,
}

impl Board {
    /// Where a communicator is in the file.
    #[inline]
    fn find(&self, handle: u64) -> Option<usize> {
        let first = layout::place_of(handle, layout::COMM_PLACES);
        let place = layout::COMMS + first * layout::COMM;
        if self.word(place).load(Ordering::Relaxed) == handle { Some(place) } else { self.find_from(handle, first) }
    }

    #[cold]
    fn find_from(&self, handle: u64, first: usize) -> Option<usize> {
        for probe in 0..layout::PROBES {
            let place = layout::COMMS + ((first + probe) & (layout::COMM_PLACES - 1)) * layout::COMM;
            match self.word(place).load(Ordering::Relaxed) {
                0 => return None,
                found if found == handle => return Some(place),
                _ => {}
            }
        }
        None
    }

    /// A collective operation begins: its number; 0 if the communicator is not known.
    #[inline]
    pub(super) fn count(&self, handle: u64) -> u64 {
        let Some(place) = self.find(handle) else { return 0 };
        let word = self.word(place + 16);
        // MPI allows only one thread at a time to be here.
        let number = word.load(Ordering::Relaxed) + 1;
        word.store(number, Ordering::Relaxed);
        // Above it is the place of its name.
        number & (layout::NAMED - 1)
    }

    pub(super) fn add(&self, handle: u64, identity: u64, rank_and_size: u64) {
        let first = layout::place_of(handle, layout::COMM_PLACES);
        let _one_at_a_time = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for probe in 0..layout::PROBES {
            let place = layout::COMMS + ((first + probe) & (layout::COMM_PLACES - 1)) * layout::COMM;
            let found = self.word(place).load(Ordering::Relaxed);
            if matches!(found, 0 | layout::FREED) || found == handle {
                self.word(place + 8).store(identity, Ordering::Relaxed);
                self.word(place + 16).store(0, Ordering::Relaxed);
                self.word(place + 24).store(rank_and_size, Ordering::Relaxed);
                self.word(place).store(handle, Ordering::Release);
                return;
            }
        }
        self.word(field::LOST).fetch_add(1, Ordering::Relaxed);
    }

    /// This process has become a member of a communicator, by the call that the thread is in, on another one.
    #[cold]
    pub(crate) fn joined(&self, slot: Slot, effect: Effect, parent: u64, new: &NewMembership) {
        let of_parent = self.find(parent).map_or(0, |place| self.word(place + 8).load(Ordering::Relaxed));
        let identity = match (effect, new.others) {
            // Told by its members, and how often the same have made one.
            (Effect::CommCreateGroup, _) => self.nth(layout::identity(&[3, new.members])),
            (_, Some((first, members))) => {
                let own = (new.first, new.members);
                let (one, other) = if own.0 < first { (own, (first, members)) } else { ((first, members), own) };
                let both = layout::identity(&[4, one.1, other.1]);
                if effect == Effect::IntercommCreate {
                    self.nth(both)
                } else {
                    layout::identity(&[5, of_parent, slot.get(slot::SEQUENCE), both])
                }
            }
            // All members of the other one have called it in the same order.
            _ => layout::identity(&[6, of_parent, slot.get(slot::SEQUENCE), new.first]),
        };
        let group = match new.others {
            Some((first, _)) if first < new.first => layout::INTER | layout::SECOND,
            Some(_) => layout::INTER,
            None => 0,
        };
        let size = new.size as u64 | group;
        self.add(new.handle, identity, (new.rank as u64) << 32 | size);
    }

    /// This process has a part of a window now, by the call that the thread is in: fences of windows are counted as collective operations of communicators are.
    #[cold]
    pub(crate) fn window(&self, slot: Slot, handle: u64) {
        self.like(slot, handle, 7, layout::WINDOW);
    }

    /// This process has opened a file, by the call that the thread is in.
    #[cold]
    pub(crate) fn file(&self, slot: Slot, handle: u64) {
        self.like(slot, handle, 8, layout::FILE);
    }

    /// Something with the members of the communicator of the call that the thread is in.
    fn like(&self, slot: Slot, handle: u64, kind: u64, flag: u64) {
        let Some(parent) = self.find(slot.comm()) else { return };
        let [of_parent, ranks] = [8, 24].map(|offset| self.word(parent + offset).load(Ordering::Relaxed));
        self.add(handle, layout::identity(&[kind, of_parent, slot.get(slot::SEQUENCE)]), ranks | flag);
    }

    /// The program has given a communicator or a window a name.
    #[cold]
    pub(crate) fn named(&self, handle: u64, name: &[u8]) {
        let Some(place) = self.find(handle) else { return };
        let named = self.name_in(layout::COMM_NAMES, layout::COMM_NAME_PLACES, name) * layout::NAMED;
        let word = self.word(place + 16);
        word.store(word.load(Ordering::Relaxed) & (layout::NAMED - 1) | named, Ordering::Relaxed);
    }

    fn nth(&self, identity: u64) -> u64 {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let count = made.entry(identity).or_insert(0);
        *count += 1;
        layout::identity(&[identity, *count])
    }

    /// A communicator or a window has been freed.
    #[cold]
    pub(crate) fn freed(&self, handle: u64) {
        if let Some(place) = self.find(handle) {
            self.word(place).store(layout::FREED, Ordering::Relaxed);
        }
    }
}
