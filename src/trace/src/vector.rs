//! Vector instructions of the processor at hand: programs are built for any of its kind, and look which one it is.
#![allow(unsafe_code)]

/// Does `work` with the widest instructions that are worth it. What is to profit has to be inlined into it (`#[inline(always)]`, `work` as well). Results are the same
/// to the last bit: multiplications and additions are never made into one.
#[inline]
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these instructions.
            return unsafe { avx2(work) };
        }
    }
    work()
}

/// How many of `times`, which ascend or descend, come before the first that is not `within` something; for [`widest`].
#[inline(always)]
pub(crate) fn leading(times: &[i64], within: impl Fn(i64) -> bool) -> usize {
    // So many at once: they are counted without a branch.
    const BATCH: usize = 32;
    let mut count = 0;
    for some in times.chunks(BATCH) {
        // No chain of iterators: it may end up as a function of its own, without these instructions.
        let mut here = 0;
        for &time in some {
            here += usize::from(within(time));
        }
        count += here;
        if here < some.len() {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn leading_times_are_those_before_the_first_that_is_not_within(count in 0i64..100, end in -5i64..110) {
            let times: Vec<i64> = (0..count).collect();
            let expected = times.iter().take_while(|&&time| time < end).count();
            prop_assert_eq!(leading(&times, |time| time < end), expected);
        }
    }
}
