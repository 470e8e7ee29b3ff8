//! Sorting lists that are nearly in order.

/// How many places elements are moved on average at most; otherwise the list is sorted as any other.
const NEAR: usize = 8;

/// As `sort_by_key`, fast where few elements are in the wrong place, and not far from the right one: requests that complete in another order than they began.
pub(crate) fn sort_nearly_sorted<T: Copy, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let mut left = list.len().saturating_mul(NEAR);
    for next in 1..list.len() {
        let (element, mut place) = (list[next], next);
        while place > 0 && key(&list[place - 1]) > key(&element) {
            list[place] = list[place - 1];
            place -= 1;
        }
        list[place] = element;
        match left.checked_sub(next - place) {
            Some(rest) => left = rest,
            // Equal ones are in their order still.
            None => return list.sort_by_key(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_any_other(keys in prop::collection::vec(0u32..60, 0..200), far in any::<bool>()) {
            // Nearly in order, or not at all.
            let key = |(place, key): (u32, u32)| if far { key } else { place + key % 5 };
            let mut list: Vec<(u32, u32)> = (0..).zip(keys).map(|(place, own)| (key((place, own)), place)).collect();
            let mut expected = list.clone();
            expected.sort_by_key(|&(key, _)| key);
            sort_nearly_sorted(&mut list, |&(key, _)| key);
            prop_assert_eq!(list, expected);
        }
    }
}
