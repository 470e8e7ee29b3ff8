//! Numbers as people read them: thousands separators, units that fit. And text that is safe to print.

use std::ffi::OsStr;

/// The sum of counts that may come from a stored report, which may say anything: at most the largest number there is.
pub fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// `-1234567` as `-1,234,567`.
pub fn signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(&number.unsigned_abs().to_string()))
}

/// A number and its noun: `1 node`, `2,000 nodes`, `2 processes`.
pub fn plural(number: u64, noun: &str) -> String {
    let ending = match (number, noun.ends_with('s')) {
        (1, _) => "",
        (_, false) => "s",
        (_, true) => "es",
    };
    format!("{} {noun}{ending}", count(number))
}

/// A duration of `seconds` in the unit that fits, three significant digits: `1.20 us`, `35.0 s`. From 1000 s on in whole seconds.
pub fn duration(seconds: f64) -> String {
    let magnitude = seconds.abs();
    if seconds == 0.0 || !seconds.is_finite() {
        return format!("{seconds:.0} s");
    }
    // A value that rounds to 1000 of a unit is shown as 1 of the next.
    let units = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| magnitude < 999.5 * unit && magnitude >= 0.0).unwrap_or((1.0, "s"));
    let value = seconds / unit;
    if value.abs() >= 999.5 {
        return format!("{} {name}", signed(value.round() as i64));
    }
    format!("{} {name}", three_digits(value))
}

/// A rate with an SI prefix: `12.3 M events/s`.
pub fn rate(per_second: f64, unit: &str) -> String {
    let prefixes = [(1.0, ""), (1e3, "k "), (1e6, "M "), (1e9, "G ")];
    let fits = prefixes.into_iter().find(|(scale, _)| per_second < 999.5 * scale);
    let (scale, prefix) = fits.unwrap_or((1e9, "G "));
    format!("{} {prefix}{unit}", three_digits(per_second / scale))
}

/// A size with a binary prefix: `12.3 MiB`.
pub fn bytes(size: u64) -> String {
    let prefixes = [(1u64 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB")];
    if size < 1000 {
        return format!("{size} B");
    }
    let size = size as f64;
    let fits = prefixes.into_iter().find(|&(scale, _)| size < 999.5 * scale as f64);
    let (scale, name) = fits.unwrap_or((1 << 40, "TiB"));
    format!("{} {name}", three_digits(size / scale as f64))
}

/// A percentage with up to three significant digits.
pub fn percent(value: f64) -> String {
    if value == 0.0 {
        "0 %".into()
    } else if value.abs() < 0.001 {
        "<0.001 %".into()
    } else if value.abs() >= 1e6 {
        ">1,000,000 %".into()
    } else if value.abs() >= 999.5 {
        format!("{} %", signed(value.round() as i64))
    } else {
        format!("{} %", three_digits(value))
    }
}

/// A path, or an argument, as text from which its bytes can be told: those that are no UTF-8 as `\xff`.
pub fn os_text(text: impl AsRef<OsStr>) -> String {
    let mut shown = String::new();
    for chunk in text.as_ref().as_encoded_bytes().utf8_chunks() {
        shown.push_str(chunk.valid());
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown
}

/// Whether a character is no text, but something that a terminal or a browser obeys: a control character, or one that changes the direction of
/// the text around it.
pub fn is_command(character: char) -> bool {
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// Text for a terminal. Names come out of files: what a terminal would obey instead of showing it, except for line breaks and tabs,
/// becomes U+FFFD.
pub fn printable(text: &str) -> String {
    let shown = |character: char| character == '\n' || character == '\t' || !is_command(character);
    text.chars().map(|character| if shown(character) { character } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Three significant digits, at least: 1.23, 12.3, 123.
fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 || m == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn bytes_of_a_path_can_be_told() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(os_text("läuft/1"), "läuft/1");
        assert_eq!(os_text(OsStr::from_bytes(b"a\xff\xc3/\xc3\xa4")), "a\\xff\\xc3/ä");
    }

    #[test]
    fn thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!([-1234, i64::MIN].map(signed), ["-1,234", "-9,223,372,036,854,775,808"]);
        assert_eq!([plural(1, "node"), plural(2, "node"), plural(0, "pass")], ["1 node", "2 nodes", "0 passes"]);
    }

    #[test]
    fn durations() {
        let cases = [
            (0.0, "0 s"),
            (1e-12, "0.001 ns"),
            (3e-7, "300 ns"),
            (1.2e-6, "1.20 us"),
            (9.996e-7, "1.00 us"),
            (-0.0125, "-12.5 ms"),
            (0.25, "250 ms"),
            (35.04, "35.0 s"),
            (12_345.6, "12,346 s"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn terminals_are_not_commanded() {
        assert_eq!(
            printable("a\u{1b}[2J\r\u{9b}b\tc\n\u{7f}\0 µ\u{202e}gnp.\u{2067}\u{61c}"),
            "a\u{fffd}[2J\u{fffd}\u{fffd}b\tc\n\u{fffd}\u{fffd} µ\u{fffd}gnp.\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn rates_sizes_and_percentages() {
        assert_eq!(rate(12_340_000.0, "events/s"), "12.3 M events/s");
        assert_eq!(rate(0.0, "events/s"), "0.00 events/s");
        assert_eq!(rate(5e12, "events/s"), "5000 G events/s");
        assert_eq!([0, 999, 1000, 1 << 20, 123 << 20].map(bytes), ["0 B", "999 B", "0.977 KiB", "1.00 MiB", "123 MiB"]);
        let percents = [0.0, 1e-5, 0.01, 0.5, 1.0, 12.34, 100.0, 1900.0, f64::INFINITY].map(percent);
        let texts = ["0 %", "<0.001 %", "0.010 %", "0.500 %", "1.00 %", "12.3 %", "100 %", "1,900 %", ">1,000,000 %"];
        assert_eq!(percents, texts);
    }
}
