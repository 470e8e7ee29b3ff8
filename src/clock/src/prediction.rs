//! Linear prediction: how a signal goes on that swings, from its own past.
//!
//! A value is predicted as a weighted sum of those before it. The weights are those that predict the known values best, forwards and backwards (Burg 1967, *Maximum entropy spectral analysis*):
//! they make an autoregressive model that never grows without bounds, continues sinusoids, and forgets noise.

/// The weights of the values before one, the nearest first, by Burg's method: `order` at most. None of a signal that is zero.
fn burg(signal: &[f64], order: usize) -> Vec<f64> {
    let mut weights: Vec<f64> = Vec::with_capacity(order);
    let (mut forward, mut backward) = (signal.to_vec(), signal.to_vec());
    while weights.len() < order && forward.len() > 1 {
        let (ahead, behind) = (&forward[1..], &backward[..backward.len() - 1]);
        let pairs = || ahead.iter().zip(behind);
        let power: f64 = pairs().map(|(one, other)| one * one + other * other).sum();
        if power <= 0.0 {
            break;
        }
        let reflection = 2.0 * pairs().map(|(one, other)| one * other).sum::<f64>() / power;
        let turned: Vec<f64> = weights.iter().rev().copied().collect();
        weights.iter_mut().zip(turned).for_each(|(weight, other)| *weight -= reflection * other);
        weights.push(reflection);
        (forward, backward) = pairs().map(|(one, other)| (one - reflection * other, other - reflection * one)).unzip();
    }
    weights
}

/// The `count` values that follow a signal, by linear prediction of that order.
pub(crate) fn predict(signal: &[f64], order: usize, count: usize) -> Vec<f64> {
    let weights = burg(signal, order);
    let mut values = signal.to_vec();
    for _ in 0..count {
        let next = weights.iter().zip(values.iter().rev()).map(|(weight, value)| weight * value).sum();
        values.push(next);
    }
    values.split_off(signal.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(at: usize) -> f64 {
        3.0 * (0.4 * at as f64 + 1.0).sin()
    }

    #[test]
    fn a_sinusoid_goes_on() {
        let known: Vec<f64> = (0..60).map(sine).collect();
        let found = predict(&known, 2, 10);
        assert_eq!(found.len(), 10);
        for (ahead, value) in found.iter().enumerate() {
            assert!((value - sine(60 + ahead)).abs() < 0.5, "{ahead}: {value} instead of {}", sine(60 + ahead));
        }
    }

    #[test]
    fn noise_is_forgotten_and_nothing_grows() {
        let noise = |at: usize| ((at * 7919 + 13) % 101) as f64 - 50.0;
        let known: Vec<f64> = (0..500).map(noise).collect();
        assert!(predict(&known, 8, 300)[250..].iter().all(|value| value.abs() < 1.0));
        // A signal that grows: no prediction of it does.
        let growing: Vec<f64> = (0..40).map(|at| 1.3f64.powi(at)).collect();
        let last = growing[39];
        let found = predict(&growing, 4, 1000);
        assert!(found.iter().all(|value| value.abs() < 2.0 * last) && found[999].abs() < last, "{found:?}");
    }

    #[test]
    fn nothing_follows_from_nothing() {
        assert_eq!(predict(&[], 4, 2), [0.0, 0.0]);
        assert_eq!(predict(&[0.0; 9], 4, 2), [0.0, 0.0]);
        assert_eq!(predict(&[5.0], 4, 1), [0.0]);
        assert!(predict(&[1.0, 2.0], 4, 0).is_empty());
    }
}
