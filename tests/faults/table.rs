//! The table of the matrix in the documentation.

use crate::case::Case;
use libtest_mimic::Failed;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

const BEGIN: &str = "<!-- cases: made by tests/faults, UPDATE_DOCS=1 cargo test --test faults table -->\n";
const END: &str = "<!-- end of cases -->\n";

/// The table of these cases.
pub(crate) fn of(cases: &[Arc<Case>]) -> String {
    let mut text =
        format!("{} cases, {} runs of the matrix.\n", cases.len(), cases.iter().map(|c| c.ranks.len()).sum::<usize>());
    let mut group = "";
    for case in cases {
        if case.group != group {
            group = case.group;
            let _ = write!(
                text,
                "\n### {group}\n\n| case | what is wrong | outcome | ranks |\n| --- | --- | --- | --- |\n"
            );
        }
        let ranks: Vec<String> = case.ranks.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "| {} | {} | {} | {} |", case.name, case.fault, case.outcome.text(), ranks.join(", "));
    }
    text
}

/// Fails unless the documentation has just this table.
pub(crate) fn compare(table: &str) -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reliability.md");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let places = text.find(BEGIN).zip(text.find(END));
    let Some((begin, end)) = places else { return Err("docs/reliability.md has no place for the table".into()) };
    let begin = begin + BEGIN.len();
    if &text[begin..end] == table {
        return Ok(());
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let new = format!("{}{table}{}", &text[..begin], &text[end..]);
        return std::fs::write(&path, new).map_err(|error| error.to_string().into());
    }
    Err("the table in docs/reliability.md is not that of the cases: UPDATE_DOCS=1 cargo test --test faults table"
        .into())
}
