//! The two largest contributions to a maximum, so that every member can leave out its own.

/// The result of a maximum over several contributors that still knows what it would be without any one of them.
///
/// A process never constrains itself: the end of an N-to-N operation on member *i* must not come before the largest begin
/// of the *others*. One reduction serves all members when it carries the largest value, who gave it, and the
/// largest value that anybody else gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MaxExcluding {
    /// The largest contribution, `i64::MIN` if there is none.
    pub max: i64,
    /// Who gave the largest contribution; of several, the one with the lowest number.
    pub holder: i64,
    /// The largest contribution of anybody but `holder`, `i64::MIN` if there is none.
    pub second: i64,
}

impl MaxExcluding {
    /// No contribution at all: the neutral element of [`MaxExcluding::merge`].
    pub(crate) const NONE: MaxExcluding = MaxExcluding { max: i64::MIN, holder: i64::MAX, second: i64::MIN };

    /// The contribution `value` of contributor `holder`.
    pub fn one(value: i64, holder: i64) -> MaxExcluding {
        MaxExcluding { max: value, holder, second: i64::MIN }
    }

    /// Both sets of contributions together. Associative and commutative, so that any reduction tree gives the same
    /// result. A contributor may occur on both sides.
    #[must_use]
    pub(crate) fn merge(self, other: MaxExcluding) -> MaxExcluding {
        let (winner, loser) =
            if (other.max, self.holder) > (self.max, other.holder) { (other, self) } else { (self, other) };
        MaxExcluding {
            max: winner.max,
            holder: winner.holder,
            second: winner.second.max(loser.excluding(winner.holder)),
        }
    }

    /// The largest contribution of anybody but `contributor`, `i64::MIN` if there is none.
    pub fn excluding(self, contributor: i64) -> i64 {
        if contributor == self.holder { self.second } else { self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few distinct values and contributors, so that ties and repetitions are common.
    fn contributions() -> impl Strategy<Value = Vec<(i64, i64)>> {
        let value = prop_oneof![4 => -3_i64..3, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
        proptest::collection::vec((value, 0_i64..6), 0..12)
    }

    fn largest<'a>(contributions: impl Iterator<Item = &'a (i64, i64)>) -> i64 {
        contributions.map(|c| c.0).max().unwrap_or(i64::MIN)
    }

    proptest! {
        #[test]
        fn any_order_and_any_tree_equal_brute_force(
            (ordered, shuffled, cut) in contributions()
                .prop_flat_map(|c| (Just(c.clone()), Just(c.clone()).prop_shuffle(), 0..=c.len())),
        ) {
            let fold = |part: &[(i64, i64)]| {
                part.iter().fold(MaxExcluding::NONE, |sum, &(value, holder)| sum.merge(MaxExcluding::one(value, holder)))
            };
            let result = fold(&shuffled[..cut]).merge(fold(&shuffled[cut..]));
            prop_assert_eq!(result, fold(&ordered));
            prop_assert_eq!(result, fold(&shuffled[cut..]).merge(fold(&shuffled[..cut])));
            prop_assert_eq!(result.max, largest(ordered.iter()));
            for contributor in 0..7 {
                let others = largest(ordered.iter().filter(|c| c.1 != contributor));
                prop_assert_eq!(result.excluding(contributor), others, "without {}", contributor);
            }
            if let Some(holder) = ordered.iter().filter(|c| c.0 == result.max).map(|c| c.1).min() {
                prop_assert_eq!(result.holder, holder);
            }
        }
    }

    #[test]
    fn nothing_is_neutral() {
        let one = MaxExcluding::one(i64::MIN, 4);
        assert_eq!(one.merge(MaxExcluding::NONE), one);
        assert_eq!(MaxExcluding::NONE.merge(one), one);
    }
}
