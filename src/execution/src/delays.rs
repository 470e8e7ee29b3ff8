//! Delay costs: what a process did too long, so that another one waited for it.
//!
//! Since their last common synchronisation, waiter and delayer did things that took one longer than the other. What took the delayer longer, its *delays*, and
//! what it waited itself for others made the waiter wait; the waiting time is divided among them in proportion (Böhme, Geimer, Wolf and Arnold, *Identifying the
//! root causes of wait states in large-scale parallel applications*, International Conference on Parallel Processing 2010).

use std::collections::BTreeMap;

/// Time by region, without waiting, in ticks.
pub type TimeProfile = BTreeMap<u32, i64>;

/// What a wait is blamed on, in ticks. All parts together are the wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DelayCosts {
    /// On delays, by region: short-term costs.
    pub delays: Vec<(u32, i64)>,
    /// On waiting of the delayer.
    pub propagated: i64,
    /// On nothing that is known: the delayer took nothing longer than the waiter. Also what is lost in rounding.
    pub unexplained: i64,
}

/// Blames a wait that lasted `wait` ticks. `delayer` and `waiter` are what the two did since their last common synchronisation, the delayer until the waiter waited
/// no longer, the waiter until it waited; the delayer has `waited` for others meanwhile.
pub fn blame(wait: i64, delayer: &TimeProfile, waiter: &TimeProfile, waited: i64) -> DelayCosts {
    let excess = |(&region, &ticks): (&u32, &i64)| {
        let more = ticks - waiter.get(&region).copied().unwrap_or(0);
        (more > 0).then_some((region, more))
    };
    let delays: Vec<(u32, i64)> = delayer.iter().filter_map(excess).collect();
    let waited = waited.max(0);
    let whole: i128 = delays.iter().map(|&(_, ticks)| i128::from(ticks)).sum::<i128>() + i128::from(waited);
    if whole == 0 {
        return DelayCosts { unexplained: wait, ..DelayCosts::default() };
    }
    // No more than the wait, so it fits.
    let part = |ticks: i64| i64::try_from(i128::from(wait) * i128::from(ticks) / whole).unwrap_or(wait);
    let delays: Vec<(u32, i64)> = delays.into_iter().map(|(region, ticks)| (region, part(ticks))).collect();
    let propagated = part(waited);
    let blamed: i64 = delays.iter().map(|&(_, cost)| cost).sum();
    DelayCosts { delays, propagated, unexplained: wait - blamed - propagated }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_excess_is_blamed_in_proportion() {
        // 30 more in region 1, 10 more in region 2, less in region 3, and the delayer waited 20 itself.
        let delayer = TimeProfile::from([(1, 50), (2, 10), (3, 5)]);
        let waiter = TimeProfile::from([(1, 20), (3, 8)]);
        let costs = blame(30, &delayer, &waiter, 20);
        assert_eq!(costs, DelayCosts { delays: vec![(1, 15), (2, 5)], propagated: 10, unexplained: 0 });
        // Only region 3 took it longer.
        assert_eq!(blame(7, &waiter, &delayer, 0).delays, [(3, 7)]);
        // Nothing did.
        assert_eq!(blame(7, &waiter, &waiter, 0), DelayCosts { unexplained: 7, ..DelayCosts::default() });
        // What is lost in rounding.
        let delayer = TimeProfile::from([(1, 1), (2, 1), (3, 1)]);
        assert_eq!(blame(10, &delayer, &TimeProfile::new(), 0).unexplained, 1);
    }

    proptest! {
        #[test]
        fn all_parts_are_the_wait(
            wait in 0i64..1 << 61, waited in 0i64..1 << 40,
            delayer in prop::collection::btree_map(0u32..6, 0i64..1 << 60, 0..5),
            waiter in prop::collection::btree_map(0u32..6, 0i64..1 << 60, 0..5),
        ) {
            let costs = blame(wait, &delayer, &waiter, waited);
            let blamed: i64 = costs.delays.iter().map(|&(_, cost)| cost).sum();
            prop_assert_eq!(blamed + costs.propagated + costs.unexplained, wait);
            prop_assert!(costs.delays.iter().all(|&(_, cost)| cost >= 0) && costs.propagated >= 0);
            prop_assert!(costs.unexplained >= 0);
        }
    }
}
