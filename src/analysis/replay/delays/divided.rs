//! How waits were divided, as far as it has to be known for long-term costs.

use super::DelayerSide;
use crate::analysis::gaps::{read, write};
use clc_execution::delays::Interval;

/// How a wait for a hosted process was divided.
#[derive(Debug)]
pub(super) struct Divided {
    /// The process that waited, and the operation in which it did.
    pub(super) waiter: (u32, u32),
    pub(super) interval: Interval,
    /// What the hosted process waited in the interval.
    pub(super) waited: i64,
    pub(super) whole: i128,
    /// What of the wait itself is blamed on that; then also what of the waiting that it has led to.
    pub(super) propagated: i128,
    /// Where its delays are.
    delays: usize,
    /// It is known what the wait has led to.
    pub(super) told: bool,
}

/// How all waits for one hosted process were divided.
#[derive(Debug, Default)]
pub(super) struct DividedWaits {
    pub(super) waits: Vec<Divided>,
    /// Of each wait the number of delays, and of each delay the place of its region, and how long it was.
    bytes: Vec<u8>,
}

impl DividedWaits {
    /// One more, of which the process has caused `delays`.
    pub(super) fn add(
        &mut self,
        wait: &DelayerSide,
        interval: Interval,
        waited: i64,
        (propagated, whole): (i64, i128),
        delays: impl Iterator<Item = (u32, i64)> + Clone,
    ) {
        let waiter = (wait.waiter, wait.operation);
        let propagated = propagated.into();
        let delays_at = self.bytes.len();
        self.waits.push(Divided { waiter, interval, waited, whole, propagated, delays: delays_at, told: false });
        write(&mut self.bytes, delays.clone().count() as u64);
        for (place, delay) in delays {
            write(&mut self.bytes, place.into());
            write(&mut self.bytes, delay.cast_unsigned());
        }
    }

    /// Its delays: the place of the region, and by how much it took the delayer longer.
    pub(super) fn delays(&self, wait: &Divided) -> impl Iterator<Item = (u32, i64)> + '_ {
        let mut next = wait.delays;
        let count = read(&self.bytes, &mut next);
        (0..count).map(move |_| {
            let place = read(&self.bytes, &mut next) as u32;
            (place, read(&self.bytes, &mut next).cast_signed())
        })
    }
}
