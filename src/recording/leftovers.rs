//! What the recorder leaves for the program to read.

use std::path::{Path, PathBuf};

/// Removes a directory with raw files; only what the recorder has put there.
pub(crate) fn remove(raw: &Path) {
    const ENDS: [&str; 7] = ["raw", "maps", "buffer", "clock", "clocks", "samples", "log"];
    let ours = |path: &PathBuf| {
        path.extension().is_some_and(|extension| ENDS.iter().any(|ours| extension == *ours))
            || path.file_name().is_some_and(|name| name == "settings.json")
    };
    let entries = raw.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(ours) {
        let _ = std::fs::remove_file(path);
    }
    // Whatever else is in it stays, and the directory with it.
    let _ = std::fs::remove_dir(raw);
}
