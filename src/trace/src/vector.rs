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
