//! Classes of distances: how far a receive is too early.

/// 1, 2 and 5 times the powers of ten from a nanosecond to 500 s; one more class lies beyond.
pub fn bounds() -> [f64; 36] {
    std::array::from_fn(|class| [1.0, 2.0, 5.0][class % 3] * 10f64.powi(class as i32 / 3 - 9))
}

/// Number of classes.
pub const CLASSES: usize = 37;

/// The class of `seconds`: that of the first bound that is not exceeded.
pub fn class(bounds: &[f64; 36], seconds: f64) -> usize {
    // The bounds are no binary fractions: a whole number of ticks that is equal to one must count as equal.
    bounds.partition_point(|bound| bound * (1.0 + 1e-12) < seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_their_class() {
        let bounds = bounds();
        assert_eq!(bounds.len() + 1, CLASSES);
        for (index, bound) in bounds.into_iter().enumerate() {
            assert_eq!(class(&bounds, bound), index);
            assert_eq!(class(&bounds, bound * 1.0001), index + 1);
        }
        // 3 ticks of a microsecond, and 5 of a nanosecond.
        assert_eq!(class(&bounds, 3.0 / 1e6), 11);
        assert_eq!(class(&bounds, 5.0 / 1e9), 2);
        assert_eq!(class(&bounds, 1e9), CLASSES - 1);
    }
}
