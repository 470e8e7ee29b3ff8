//! Sensors of the user's own: files of the node with a number in them, read once a second. In a thread of their own, for a file system may take its time.

use super::{AgentState, CHECK, lock};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A number is no longer. Chosen by hand: any sensor's number is shorter; a limit for files that never end.
const LONGEST: u64 = 64;

/// Reads what is set for all, again and again.
pub(super) fn read_on(shared: &Arc<AgentState>) {
    let shared = Arc::clone(shared);
    // Without it, there are no data of sensors.
    let _ = std::thread::Builder::new().name("files".into()).spawn(move || {
        loop {
            std::thread::sleep(CHECK);
            let slow = Arc::clone(&lock(&shared.heard).slow);
            for (name, path) in &slow.sensors {
                if let Some(value) = number_in(Path::new(path)) {
                    // If there is no room, it is not told.
                    shared.put(name, &value.to_string());
                }
            }
        }
    });
}

/// The number that a file begins with; none of what is no plain file.
fn number_in(path: &Path) -> Option<f64> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().next()?.parse::<f64>().ok().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("energy");
        for (text, value) in [("12.5 uJ\n", Some(12.5)), (" 7", Some(7.0)), ("", None), ("no 1", None), ("inf", None)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(number_in(&path), value, "{text:?}");
        }
        assert_eq!(number_in(directory.path()), None);
        assert_eq!(number_in(Path::new("/dev/zero")), None);
    }
}
