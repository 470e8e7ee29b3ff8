//! The JSON rendering of every report.

use clc_trace::format::is_command;
use clc_trace::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};

/// What files that this program wrote say about where they come from.
pub(crate) const GENERATOR: &str = "clc-replay";

/// `report` ([`super::Report`], [`super::Info`] or its like) as indented JSON, with a line break at the end. Lists of plain values take one
/// line each, however long: curves and matrices have thousands of them.
/// Its fields are documented in `docs/report.md`.
///
/// # Errors
/// The report cannot be represented, which does not happen for these two types.
pub fn json<T: Serialize>(report: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(report);
    text.map(|text| escaped(join_lists(&signed(text))))
        .map_err(|error| Error::new(format!("cannot write the report as JSON: {error}")))
}

/// Says in a report who wrote it, after its version.
fn signed(text: String) -> String {
    match text.strip_prefix("{\n  \"schema\": ").and_then(|rest| rest.split_once('\n')) {
        Some((version, rest)) => {
            format!("{{\n  \"schema\": {version}\n  \"generator\": \"{GENERATOR}\",\n{rest}")
        }
        None => text,
    }
}

/// JSON that a terminal can show: characters that it would obey, which JSON allows in strings, as escapes, which mean the same.
pub(crate) fn escaped(text: String) -> String {
    let obeyed = |character: char| character != '\n' && is_command(character);
    if !text.contains(obeyed) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if obeyed(character) {
            // None of them needs more than four digits.
            shown += &format!("\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Reads a number; null, which is how JSON has infinity, as infinity.
pub(super) fn number_or_infinity<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Puts lists without objects or lists in them on one line. `text` is what serde_json's pretty printer makes: no line break within a
/// string, one value per line.
fn join_lists(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        let opens_list = line.ends_with('[');
        if opens_list && lines.peek().is_some_and(|next| !next.ends_with('{') && !next.ends_with('[')) {
            for value in lines.by_ref() {
                let value = value.trim_start();
                let end = value == "]" || value == "],";
                joined.push_str(value);
                if end {
                    break;
                }
                if value.ends_with(',') {
                    joined.push(' ');
                }
            }
        }
        joined.push('\n');
    }
    joined
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn lists_of_values_take_one_line() {
        let value =
            json!({"a": [1, null, "x, ]["], "b": [], "c": [{"d": [[1, 2], [3]]}], "e": ["[", "{", "]"], "f": [[], {}]});
        let text = super::json(&value).expect("JSON");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
        assert!(text.contains("\"a\": [1, null, \"x, ][\"],\n"), "{text}");
        assert!(text.contains("\"e\": [\"[\", \"{\", \"]\"],\n"), "{text}");
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let value = json!({"a": "\u{1b}\u{7f}\u{9b}2J\u{202e}gnp.\u{2069} µ\n"});
        let text = super::json(&value).expect("JSON");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
        assert!(text.contains(r"\u001b\u007f\u009b2J\u202egnp.\u2069 µ\n"), "{text}");
    }
}
