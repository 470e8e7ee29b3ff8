//! Delay costs: what a process did too long, so that another one waited for it.
//!
//! Since the two were last synchronised (by a wait of one for the other, or of all for all), waiter and delayer did things that took one longer than the other. What took the delayer longer, its *delays*, and
//! what it waited itself for others made the waiter wait; the waiting time is divided among them in proportion (Böhme, Geimer, Wolf and Arnold, *Identifying the
//! root causes of wait states in large-scale parallel applications*, International Conference on Parallel Processing 2010).
//!
//! Costs are short-term as far as they are of waits for the delayer itself. The part of a wait that is blamed on waiting of the delayer has its causes where that one waited: it is divided there, in the same
//! proportions, and so on from wait to wait. What delays are blamed for in this way are their long-term costs ([`pass_on`], [`PassedOn`]).

use std::collections::BinaryHeap;

/// What a wait is blamed on beside delays, in ticks. Together with the costs of the delays they are the wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelayCosts {
    /// On waiting of the delayer.
    pub propagated: i64,
    /// On nothing that is known: the delayer took nothing longer than the waiter, or not by so much. Also what is lost in rounding.
    pub unexplained: i64,
    /// What the wait is divided by: all delays and the waiting of the delayer. Nothing is blamed on anything if it is zero.
    pub whole: i128,
}

/// Blames a wait that lasted `wait` ticks. `regions` is what the two did since they were last synchronised: region, and time in it without waiting of the
/// delayer and of the waiter, the delayer until the waiter waited no longer, the waiter until it waited; the delayer has `waited` for others meanwhile. If it is
/// `capped`, nothing is blamed for more than it took. `cost` is told the delays: region, and what it is blamed for (short-term costs).
pub fn blame(
    wait: i64,
    regions: impl Iterator<Item = (u32, i64, i64)> + Clone,
    waited: i64,
    capped: bool,
    mut cost: impl FnMut(u32, i64),
) -> DelayCosts {
    let delays = regions.map(|(region, delayer, waiter)| (region, delayer - waiter)).filter(|&(_, delay)| delay > 0);
    let waited = waited.max(0);
    let whole: i128 = delays.clone().map(|(_, delay)| i128::from(delay)).sum::<i128>() + i128::from(waited);
    if whole == 0 {
        return DelayCosts { propagated: 0, unexplained: wait, whole };
    }
    let whole = if capped { whole.max(wait.into()) } else { whole };
    let mut blamed = 0;
    for (region, delay) in delays {
        let part = share(wait, delay, whole);
        blamed += part;
        cost(region, part);
    }
    let propagated = share(wait, waited, whole);
    DelayCosts { propagated, unexplained: wait - blamed - propagated, whole }
}

/// Divides `ticks`, which others have waited because of a wait, as the wait itself was: by `whole`, among `delays` (region, and by how much it took the delayer longer) and the waiting of the delayer. `cost` is
/// told the delays: region, and what it is blamed for (long-term costs). Returns what has its causes in the waiting.
pub fn pass_on(
    ticks: i128,
    delays: impl Iterator<Item = (u32, i64)>,
    waited: i64,
    whole: i128,
    mut cost: impl FnMut(u32, i128),
) -> i128 {
    if whole <= 0 || ticks <= 0 {
        return 0;
    }
    // A product of both numbers may be too large, but not one of the rest.
    let part = |part: i64| ticks / whole * i128::from(part) + ticks % whole * i128::from(part) / whole;
    delays.for_each(|(region, delay)| cost(region, part(delay)));
    part(waited)
}

/// The operations of a process that explain a wait of another one for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The first operation of the interval.
    pub since: u32,
    /// The first one behind it.
    pub until: u32,
    /// How long it waited in the operation before the first one, of which only a part counts.
    pub rest: i64,
}

/// What the waits of one process have led to, from its last operation to the first: how long others waited because of each.
///
/// What is blamed on the waiting in an interval is divided among the waits in it in proportion, so every tick of them leads to the same amount.
#[derive(Debug, Default)]
pub struct PassedOn {
    /// Intervals that have ended behind the present operation: their begins, and what each tick leads to, and the rests.
    open: BinaryHeap<(u32, i128, i64)>,
    /// What each tick of a wait leads to, in units of 2^-48.
    per_tick: i128,
}

impl PassedOn {
    /// Units in which it is counted what a tick leads to.
    const BITS: u32 = 48;

    /// An interval whose waiting lasts for `waited` in all, on which so many `ticks` are blamed. Comes before all waits in it.
    pub fn interval(&mut self, interval: Interval, waited: i64, ticks: i128) {
        if waited > 0 && ticks > 0 {
            let per_tick = ticks.saturating_mul(1 << Self::BITS) / i128::from(waited);
            self.per_tick = self.per_tick.saturating_add(per_tick);
            self.open.push((interval.since, per_tick, interval.rest));
        }
    }

    /// What a wait of `ticks` in `operation` has led to: it comes before all waits in earlier operations, and after all intervals that end behind it.
    pub fn wait(&mut self, operation: u32, ticks: i64) -> i128 {
        let mut rests = 0i128;
        while let Some(&(since, per_tick, rest)) = self.open.peek().filter(|open| open.0 > operation) {
            self.open.pop();
            self.per_tick -= per_tick;
            if since == operation + 1 {
                rests = rests.saturating_add(per_tick.saturating_mul(rest.into()));
            }
        }
        self.per_tick.saturating_mul(ticks.into()).saturating_add(rests) >> Self::BITS
    }
}

/// `wait * part / whole`, rounded down; none is negative, and `part` is no more than `whole`, so the result is no more than `wait`.
fn share(wait: i64, part: i64, whole: i128) -> i64 {
    // Division of twice the width takes ten times as long.
    let share = match (wait.checked_mul(part), i64::try_from(whole)) {
        (Some(product), Ok(whole)) => product / whole,
        _ => return i64::try_from(i128::from(wait) * i128::from(part) / whole).unwrap_or(wait),
    };
    debug_assert!((0..=wait).contains(&share), "{wait} {part} {whole}");
    share
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Profile = BTreeMap<u32, i64>;

    fn blamed(
        wait: i64,
        delayer: &Profile,
        waiter: &Profile,
        (waited, capped): (i64, bool),
    ) -> (Vec<(u32, i64)>, DelayCosts) {
        let of_waiter = |region: &u32| waiter.get(region).copied().unwrap_or(0);
        let regions = delayer.iter().map(|(region, &ticks)| (*region, ticks, of_waiter(region)));
        let mut delays = Vec::new();
        let others = blame(wait, regions, waited, capped, |region, cost| delays.push((region, cost)));
        (delays, others)
    }

    #[test]
    fn the_excess_is_blamed_in_proportion() {
        // 30 more in region 1, 10 more in region 2, less in region 3, and the delayer waited 20 itself.
        let delayer = Profile::from([(1, 50), (2, 10), (3, 5)]);
        let waiter = Profile::from([(1, 20), (3, 8)]);
        let costs = blamed(30, &delayer, &waiter, (20, false));
        assert_eq!(costs, (vec![(1, 15), (2, 5)], DelayCosts { propagated: 10, unexplained: 0, whole: 60 }));
        // Only region 3 took it longer.
        assert_eq!(blamed(7, &waiter, &delayer, (0, false)).0, [(3, 7)]);
        // Nothing did.
        assert_eq!(
            blamed(7, &waiter, &waiter, (0, false)),
            (Vec::new(), DelayCosts { propagated: 0, unexplained: 7, whole: 0 })
        );
        // What is lost in rounding.
        let delayer = Profile::from([(1, 1), (2, 1), (3, 1)]);
        assert_eq!(blamed(10, &delayer, &Profile::new(), (0, false)).1.unexplained, 1);
    }

    #[test]
    fn nothing_is_blamed_for_more_than_it_took() {
        // 30 and 10 more, and 20 of waiting, for a wait of 90: 30 are for nothing that is known.
        let delayer = Profile::from([(1, 30), (2, 10)]);
        let costs = blamed(90, &delayer, &Profile::new(), (20, true));
        assert_eq!(costs, (vec![(1, 30), (2, 10)], DelayCosts { propagated: 20, unexplained: 30, whole: 90 }));
        let costs = blamed(90, &delayer, &Profile::new(), (20, false));
        assert_eq!(costs, (vec![(1, 45), (2, 15)], DelayCosts { propagated: 30, unexplained: 0, whole: 60 }));
        // A shorter one is divided.
        let costs = blamed(30, &delayer, &Profile::new(), (20, true));
        assert_eq!(costs, (vec![(1, 15), (2, 5)], DelayCosts { propagated: 10, unexplained: 0, whole: 60 }));
    }

    #[test]
    fn what_waits_have_led_to_is_divided_as_they_were() {
        // A wait of 30 was blamed on 20 and 10 more of two regions and 30 of waiting: 90 that others waited because of it are, too.
        let mut costs = Vec::new();
        assert_eq!(pass_on(90, [(1, 20), (2, 10)].into_iter(), 30, 60, |region, cost| costs.push((region, cost))), 45);
        assert_eq!(costs, [(1, 30), (2, 15)]);
        assert_eq!(pass_on(90, [(1, 20)].into_iter(), 30, 0, |_, _| panic!("divided by nothing")), 0);
        let large = 1i128 << 80;
        assert_eq!(pass_on(large, std::iter::empty(), 1 << 61, 1 << 62, |_, _| ()), large / 2);
    }

    #[test]
    fn waits_lead_to_what_is_blamed_on_the_intervals_they_are_in() {
        // Waits of 10 in operation 5, 20 in 3 and 30 in 1. Of one process 60 are blamed on operations 1 to 5 (10 of 20 and 30 of 60), of another 40 on those behind 3 and on 10 of the 20 in it.
        let mut passed_on = PassedOn::default();
        passed_on.interval(Interval { since: 4, until: 7, rest: 10 }, 20, 40);
        passed_on.interval(Interval { since: 0, until: 6, rest: 0 }, 60, 60);
        assert_eq!(passed_on.wait(5, 10), 20 + 10);
        // This one ends behind operation 3 only.
        passed_on.interval(Interval { since: 2, until: 4, rest: 6 }, 26, 52);
        assert_eq!(passed_on.wait(3, 20), 20 + 20 + 40);
        assert_eq!(passed_on.wait(1, 30), 30 + 12);
        assert_eq!(passed_on.wait(0, 5), 5);
    }

    #[test]
    fn shares_of_any_size() {
        let large = 1 << 61;
        assert_eq!(share(large, large, large.into()), large);
        assert_eq!(share(large, 3, 4), large / 4 * 3);
        assert_eq!(share(10, 1, 1 << 100), 0);
        assert_eq!(share(10, 1, 3), 3);
    }

    proptest! {
        #[test]
        fn all_parts_are_the_wait(
            wait in 0i64..1 << 61, waited in 0i64..1 << 40, capped: bool,
            delayer in prop::collection::btree_map(0u32..6, 0i64..1 << 60, 0..5),
            waiter in prop::collection::btree_map(0u32..6, 0i64..1 << 60, 0..5),
        ) {
            let (delays, costs) = blamed(wait, &delayer, &waiter, (waited, capped));
            let sum: i64 = delays.iter().map(|&(_, cost)| cost).sum();
            prop_assert_eq!(sum + costs.propagated + costs.unexplained, wait);
            prop_assert!(delays.iter().all(|&(_, cost)| cost >= 0) && costs.propagated >= 0);
            prop_assert!(costs.unexplained >= 0);
        }
    }
}
