//! The two largest contributions to a maximum.

/// The two largest contributions and who gave the largest: enough for every member to know the maximum over the *others*, since
/// a process never constrains itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Top2 {
    /// The largest value; [`i64::MIN`] if there is none.
    pub max: i64,
    /// Who gave it; the lowest rank if several did.
    pub holder: i64,
    /// The largest value of all others; [`i64::MIN`] if there is none.
    pub second: i64,
}

impl Top2 {
    /// No contribution.
    pub const NONE: Top2 = Top2 { max: i64::MIN, holder: i64::MAX, second: i64::MIN };

    /// One contribution.
    pub fn one(value: i64, holder: i64) -> Top2 {
        Top2 { max: value, holder, second: i64::MIN }
    }

    /// Both together; associative and commutative for contributions of different holders.
    pub fn merge(self, other: Top2) -> Top2 {
        let (winner, loser) =
            if (self.max, -self.holder) >= (other.max, -other.holder) { (self, other) } else { (other, self) };
        Top2 { second: winner.second.max(loser.max), ..winner }
    }

    /// The largest contribution of all but `member`; [`i64::MIN`] if there is none.
    pub fn excluding(&self, member: i64) -> i64 {
        if self.holder == member { self.second } else { self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn everybody_learns_the_maximum_of_the_others(values in prop::collection::vec(-5i64..5, 1..8), cut in 0usize..8) {
            let one = |(holder, &value): (usize, &i64)| Top2::one(value, holder as i64);
            let forward = values.iter().enumerate().map(one).fold(Top2::NONE, Top2::merge);
            let cut = cut.min(values.len());
            let left = values.iter().enumerate().take(cut).map(one).fold(Top2::NONE, Top2::merge);
            let right = values.iter().enumerate().skip(cut).map(one).fold(Top2::NONE, Top2::merge);
            prop_assert_eq!(right.merge(left), forward);
            for member in 0..values.len() {
                let others = values.iter().enumerate().filter(|(i, _)| *i != member).map(|(_, &v)| v).max();
                prop_assert_eq!(forward.excluding(member as i64), others.unwrap_or(i64::MIN));
            }
        }
    }
}
