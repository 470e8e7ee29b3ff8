//! Small pieces of HTML.

use clc_trace::format;

/// Text as HTML shows it, also within attributes in double quotes. Control characters, which HTML forbids, and those that turn text around become `�`.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            character if format::is_command(character) => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A duration with the sign for micro.
pub(super) fn duration(seconds: f64) -> String {
    format::duration(seconds).replace(" us", " µs")
}

/// A table: `head` and `rows` are HTML; the first cell of each row is its header. All other cells are numbers, to the right.
pub(super) fn table(caption: &str, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
        escape(caption)
    );
    for cell in head {
        html += &format!("<th scope=\"col\">{cell}</th>");
    }
    html += "</tr></thead><tbody>\n";
    for row in rows {
        html += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            html += &match column {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// Labels and values, both HTML.
pub(super) fn facts(list: &[(&str, String)]) -> String {
    let items = list.iter().map(|(label, value)| format!("<div><dt>{label}</dt><dd>{value}</dd></div>"));
    format!("<dl class=\"facts\">{}</dl>\n", items.collect::<String>())
}

/// A picture with its caption; `svg` scrolls sideways where it does not fit.
pub(super) fn figure(caption: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{svg}</div></figure>\n",
        escape(caption),
        escape(caption)
    )
}

/// What can be folded away.
pub(super) fn fold(title: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>\n{body}</details>\n", escape(title))
}
