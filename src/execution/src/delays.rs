//! Delay costs: what a process did too long, so that another one waited for it.
//!
//! Since the two were last synchronised (by a wait of one for the other, or of all for all), waiter and delayer did things that took one longer than the other. What took the delayer longer, its *delays*, and
//! what it waited itself for others made the waiter wait; the waiting time is divided among them in proportion (Böhme, Geimer, Wolf and Arnold, *Identifying the
//! root causes of wait states in large-scale parallel applications*, International Conference on Parallel Processing 2010).

/// What a wait is blamed on beside delays, in ticks. Together with the costs of the delays they are the wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelayCosts {
    /// On waiting of the delayer.
    pub propagated: i64,
    /// On nothing that is known: the delayer took nothing longer than the waiter, or not by so much. Also what is lost in rounding.
    pub unexplained: i64,
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
        return DelayCosts { propagated: 0, unexplained: wait };
    }
    let whole = if capped { whole.max(wait.into()) } else { whole };
    let mut blamed = 0;
    for (region, delay) in delays {
        let part = share(wait, delay, whole);
        blamed += part;
        cost(region, part);
    }
    let propagated = share(wait, waited, whole);
    DelayCosts { propagated, unexplained: wait - blamed - propagated }
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
        assert_eq!(costs, (vec![(1, 15), (2, 5)], DelayCosts { propagated: 10, unexplained: 0 }));
        // Only region 3 took it longer.
        assert_eq!(blamed(7, &waiter, &delayer, (0, false)).0, [(3, 7)]);
        // Nothing did.
        assert_eq!(blamed(7, &waiter, &waiter, (0, false)), (Vec::new(), DelayCosts { propagated: 0, unexplained: 7 }));
        // What is lost in rounding.
        let delayer = Profile::from([(1, 1), (2, 1), (3, 1)]);
        assert_eq!(blamed(10, &delayer, &Profile::new(), (0, false)).1.unexplained, 1);
    }

    #[test]
    fn nothing_is_blamed_for_more_than_it_took() {
        // 30 and 10 more, and 20 of waiting, for a wait of 90: 30 are for nothing that is known.
        let delayer = Profile::from([(1, 30), (2, 10)]);
        let costs = blamed(90, &delayer, &Profile::new(), (20, true));
        assert_eq!(costs, (vec![(1, 30), (2, 10)], DelayCosts { propagated: 20, unexplained: 30 }));
        let costs = blamed(90, &delayer, &Profile::new(), (20, false));
        assert_eq!(costs, (vec![(1, 45), (2, 15)], DelayCosts { propagated: 30, unexplained: 0 }));
        // A shorter one is divided.
        let costs = blamed(30, &delayer, &Profile::new(), (20, true));
        assert_eq!(costs, (vec![(1, 15), (2, 5)], DelayCosts { propagated: 10, unexplained: 0 }));
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
