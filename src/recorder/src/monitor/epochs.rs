//! Epochs and locks of windows: who may access whose memory.

use super::{Board, Slot};
use crate::format::calls::Effect;
use crate::layout::{self, epoch, kind, slot};
use std::sync::atomic::Ordering;

impl Board {
    /// An epoch of a window begins with a group, by the call that the thread is in.
    #[cold]
    pub(crate) fn epoch_begins(&self, slot: Slot, effect: Effect, members: &[std::ffi::c_int], now: u64) {
        let kind = if effect == Effect::WinStart { kind::ACCESS } else { kind::EXPOSURE };
        self.epoch(slot.comm(), kind, layout::NOBODY, members, now);
    }

    /// A lock of a window is there, or an epoch is over, by the call that the thread is in.
    #[cold]
    pub(crate) fn epoch_changes(&self, slot: Slot, effect: Effect, now: u64) {
        let (win, peer) = (slot.comm(), slot.get(slot::PEER));
        let target = (peer >> 32) as u32 as i32;
        let ended = match effect {
            Effect::WinLock if target == layout::NOBODY => return,
            Effect::WinLock => {
                let kind = if peer as u32 == 1 { kind::EXCLUSIVE } else { kind::SHARED };
                return self.epoch(win, kind, target, &[], now);
            }
            Effect::WinLockAll => return self.epoch(win, kind::ALL, layout::NOBODY, &[], now),
            Effect::WinUnlock => layout::place_of_epoch(win, kind::SHARED, target),
            Effect::WinUnlockAll => layout::place_of_epoch(win, kind::ALL, layout::NOBODY),
            Effect::WinComplete => layout::place_of_epoch(win, kind::ACCESS, layout::NOBODY),
            _ => layout::place_of_epoch(win, kind::EXPOSURE, layout::NOBODY),
        };
        let place = layout::EPOCHS + ended * layout::EPOCH;
        if self.word(place + epoch::WIN).load(Ordering::Relaxed) == win {
            self.word(place + epoch::ENDED).store(now, Ordering::Relaxed);
        }
    }

    fn epoch(&self, win: u64, kind: u64, target: i32, members: &[std::ffi::c_int], now: u64) {
        let place = layout::EPOCHS + layout::place_of_epoch(win, kind, target) * layout::EPOCH;
        let set = |offset: usize, value: u64| self.word(place + offset).store(value, Ordering::Relaxed);
        set(epoch::WIN, 0);
        set(epoch::KIND, kind | u64::from(target as u32) << 32);
        set(epoch::SINCE, now);
        set(epoch::ENDED, 0);
        set(epoch::COUNT, members.len() as u64);
        for (i, two) in members.chunks(2).take(layout::MEMBERS / 2).enumerate() {
            let second = two.get(1).map_or(0, |&rank| u64::from(rank as u32));
            set(epoch::MEMBERS + 8 * i, u64::from(two[0] as u32) | second << 32);
        }
        self.word(place + epoch::WIN).store(win, Ordering::Release);
    }
}
