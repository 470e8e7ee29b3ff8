//! The report as a page for a browser: one file, nothing is loaded from anywhere else.
//!
//! Tables and most pictures are made here and need no script; the curves of the clocks are drawn by the script in the page
//! (`page.js`), from the same data. Everything that comes from a trace goes through [`element::escape`]. Chapters are
//! [`Chapter`]s; those of an analysis come first.

mod analysis;
mod changes;
mod clocks;
mod element;
mod evaluation_plot;
mod matrix;
mod plot;
mod run;
mod summary;
mod violations;
mod watched;
mod worst;

pub use evaluation_plot::evaluation_plot;
pub(crate) use watched::{WatchedPage, watched_page};

use super::{GENERATOR, Report};
use clc_trace::{Error, Result};
use element::escape;

/// One chapter of the page.
struct Chapter {
    /// Its anchor.
    id: &'static str,
    /// Its title, plain text.
    title: &'static str,
    /// Its contents, HTML.
    body: String,
}

/// `report` as a complete HTML document. The same report gives the same bytes.
///
/// # Errors
/// The data of the script cannot be represented, which does not happen for this type.
pub fn html(report: &Report) -> Result<String> {
    let chapters: Vec<Chapter> = analysis::chapters(report)
        .into_iter()
        .map(Some)
        .chain([
            Some(Chapter { id: "violations", title: "Violations", body: violations::body(report) }),
            clocks::body(report).map(|body| Chapter { id: "clocks", title: "Clock error over time", body }),
            matrix::body(report).map(|body| Chapter { id: "pairs", title: "Messages by sender and receiver", body }),
            worst::body(report).map(|body| Chapter { id: "worst", title: "The worst violations", body }),
            changes::body(report).map(|body| Chapter { id: "changes", title: "What the correction changed", body }),
            Some(Chapter { id: "run", title: "The run", body: run::body(report) }),
        ])
        .flatten()
        .filter(|chapter| !chapter.body.is_empty())
        .collect();
    let script = format!(
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{js}</script>\n",
        data = data(report)?,
        js = include_str!("page.js"),
    );
    Ok(document(&Page {
        title: &format!("{}: {}", report.trace.title(), summary::word(report)),
        styles: &[],
        header: &summary::header(report),
        chapters: &chapters,
        footer: &format!(
            "clc-replay {}. The same numbers for scripts: <code>--report</code>.",
            escape(&report.program.version)
        ),
        version: &report.program.version,
        script: &script,
    }))
}

/// What a page consists of.
struct Page<'a> {
    /// Plain text.
    title: &'a str,
    /// Besides those of all pages.
    styles: &'a [&'a str],
    /// What is above the chapters, HTML.
    header: &'a str,
    chapters: &'a [Chapter],
    /// HTML.
    footer: &'a str,
    /// Of the program, plain text.
    version: &'a str,
    /// Elements at its end, HTML.
    script: &'a str,
}

/// The complete document.
fn document(page: &Page) -> String {
    let chapters = page.chapters;
    let contents: String =
        chapters.iter().map(|c| format!("<li><a href=\"#{}\">{}</a></li>", c.id, escape(c.title))).collect();
    let bodies: String = chapters
        .iter()
        .map(|c| {
            format!(
                "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n",
                c.id,
                escape(c.title),
                c.body
            )
        })
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"generator\" content=\"{GENERATOR} {version}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{css}{styles}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the report</a>\n{header}\
         <nav aria-label=\"Contents\"><ul>{contents}</ul></nav>\n<main id=\"main\">\n{bodies}</main>\n\
         <footer><p>{footer}</p></footer>\n{script}</body>\n</html>\n",
        title = escape(page.title),
        css = include_str!("page.css"),
        styles = page.styles.concat(),
        header = page.header,
        version = escape(page.version),
        footer = page.footer,
        script = page.script,
    )
}

/// What the script needs, as JSON that cannot end its element.
fn data(report: &Report) -> Result<String> {
    let details = report.details.as_ref();
    let value = serde_json::json!({
        "resolution": report.trace.timer_resolution,
        "clock_error": details.map(|details| &details.clock_error),
        "pairs": details.map(|details| &details.pairs),
    });
    let text = serde_json::to_string(&value)
        .map_err(|error| Error::new(format!("cannot write the data of the page as JSON: {error}")))?;
    Ok(crate::report::escaped(text)
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests;
