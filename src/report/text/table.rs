//! Aligned columns and wrapped lines for a terminal of 80 columns or a mail.

use clc_trace::format::is_command;

/// No line is longer, unless a single word is.
pub(super) const WIDTH: usize = 79;

/// Rows of cells: the first column is aligned to the left, the others to the right.
#[derive(Debug, Default)]
pub(super) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Adds a row; the first one is usually the header.
    pub(super) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows.push(cells.iter().map(|&cell| cell.to_owned()).collect());
    }

    /// Adds a row of any number of cells.
    pub(super) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, each with a line break at its end. Two blanks between columns at least, and a first column of at least
    /// `first` characters, so that tables of one report line up.
    pub(super) fn render(&self, first: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line += &match column {
                    0 => format!("{cell:<0$}", width.max(first)),
                    _ => format!("  {cell:>width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// `label` and then `text`, wrapped between words and indented to the column `indent`.
pub(super) fn labelled(label: &str, text: &str, indent: usize) -> String {
    let mut result = String::new();
    let mut line = format!("{label:<indent$}");
    if label.chars().count() >= indent {
        line.push(' ');
    }
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            result += line.trim_end();
            result.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    result += line.trim_end();
    result.push('\n');
    result
}

/// `name` in at most `length` characters, with two dots in place of its middle if it is longer. Line breaks and
/// other control characters, which a trace may contain anywhere, become blanks.
pub(super) fn shorten(name: &str, length: usize) -> String {
    let characters: Vec<char> = name.chars().map(|c| if is_command(c) { ' ' } else { c }).collect();
    if characters.len() <= length {
        return characters.into_iter().collect();
    }
    let kept = length.saturating_sub(2);
    let tail = kept / 2;
    let (head, _) = characters.split_at(kept - tail);
    let (_, end) = characters.split_at(characters.len() - tail);
    head.iter().chain(&['.', '.']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::default();
        table.row(["", "checked", "raw"]);
        table.row(["messages", "1,234,567", "µ"]);
        assert_eq!(table.render(4), "            checked  raw\nmessages  1,234,567    µ\n");
    }

    #[test]
    fn long_texts_are_wrapped_between_words() {
        let text = labelled("Label", &"word ".repeat(30), 10);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(text.starts_with("Label     word word"));
        assert_eq!(text.lines().count(), 3);
        assert_eq!(text.lines().nth(1).map(|line| line.starts_with("          word")), Some(true));
        assert_eq!(labelled("Label", "", 10), "Label\n");
        assert_eq!(labelled("A long label", "x", 4), "A long label x\n");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("abc", 5), "abc");
        assert_eq!(shorten("abcdefgh", 6), "ab..gh");
        assert_eq!(shorten("äöüäöüäöü", 5), "äö..ü");
        assert_eq!(shorten("a\nb", 5), "a b");
        assert_eq!(shorten("abcdef", 1), "..");
    }
}
