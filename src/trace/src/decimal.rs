//! Decimal numbers as people type them, read exactly.

/// A nonnegative decimal number: `digits / 10^places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// All digits, without the point.
    pub digits: u64,
    /// How many of them follow the point.
    pub places: u32,
}

impl Decimal {
    /// Reads `12`, `0.99999`, `.5`, `1e-5`, `1.5E3`. At most 18 digits and 18 places, so that everything fits.
    ///
    /// # Errors
    /// What is wrong, as a clause for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fail = || format!("`{text}` is not a plain decimal number such as 0.01 or 1e-2");
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().map_err(|_| fail())?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let characters = || whole.bytes().chain(fraction.bytes());
        if characters().next().is_none() || !characters().all(|byte| byte.is_ascii_digit()) {
            return Err(fail());
        }
        let fraction = fraction.trim_end_matches('0');
        let too_long = || format!("`{text}` has more digits than can be read exactly (18)");
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(Decimal { digits: 0, places: 0 });
        }
        let places = i64::try_from(fraction.len()).map_err(|_| too_long())? - i64::from(exponent);
        let zeros = usize::try_from((-places).max(0)).map_err(|_| too_long())?;
        let places = u32::try_from(places.max(0)).map_err(|_| too_long())?;
        if digits.len().saturating_add(zeros) > 18 || places > 18 {
            return Err(too_long());
        }
        let digits = format!("{digits}{}", "0".repeat(zeros)).parse().map_err(|_| fail())?;
        Ok(Decimal { digits, places })
    }

    /// The number as a fraction of two integers, each under 10^18 + 1.
    pub fn ratio(self) -> (u64, u64) {
        (self.digits, 10u64.pow(self.places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> (u64, u64) {
        Decimal::parse(text).expect(text).ratio()
    }

    #[test]
    fn numbers_are_read_exactly() {
        assert_eq!(ratio("12"), (12, 1));
        assert_eq!(ratio("0.99999"), (99_999, 100_000));
        assert_eq!(ratio("1.50"), (15, 10));
        assert_eq!(ratio(".5"), (5, 10));
        assert_eq!(ratio("5."), (5, 1));
        assert_eq!(ratio("1e-5"), (1, 100_000));
        assert_eq!(ratio("1.5E3"), (1500, 1));
        assert_eq!(ratio("0000000000000000000000001"), (1, 1));
        assert_eq!(ratio("0.000"), (0, 1));
        assert_eq!(ratio("0e999999999"), (0, 1));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", ".", "-1", "+1", "1,5", "0x10", "1e", "e5", "inf", "nan", "1 ", "1e99999999999", "1.2.3", "٣"]
        {
            assert!(Decimal::parse(text).is_err(), "{text}");
        }
        for text in ["1234567890123456789", "1e-19", "1e18", "0.0000000000000000001", "1e2147483647", "1e-2147483648"] {
            assert!(Decimal::parse(text).expect_err(text).contains("digits"), "{text}");
        }
    }
}
