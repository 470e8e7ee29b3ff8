//! Names of MPI functions by their numbers.

use std::sync::LazyLock;

#[allow(dead_code)]
#[path = "../../../recording/raw/format/mod.rs"]
mod format;

/// The recorder's table of functions.
const TABLE: &str = include_str!("../../../recorder/calls.txt");

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    format::calls::functions(TABLE)
        .map(|found| found.map_or_else(|| "MPI".into(), |f| format!("MPI_{}", f.name)))
        .collect()
});

/// Checksum of the table, by which a state file names it.
pub fn table() -> u64 {
    static CHECKSUM: LazyLock<u64> = LazyLock::new(|| format::checksum(TABLE.as_bytes()));
    *CHECKSUM
}

/// Name of a function, by its number plus 1.
pub(crate) fn function_name(number: u64) -> String {
    let name = usize::try_from(number).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.cloned().unwrap_or_else(|| format!("MPI function {number}"))
}
