//! Unfinished outputs of runs that could not clean up: their names say whose they are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of an unfinished output begins like this: `.NAME.part-HOST-PROCESS-`.
pub(super) fn prefix(output: &OsStr) -> OsString {
    let mut name = common_prefix(output);
    name.push(format!("{}-{}-", host(), std::process::id()));
    name
}

/// Most bytes of the name of an output in that of an unfinished one, which must not be longer than any name may be.
const LONGEST: usize = 160;

fn common_prefix(output: &OsStr) -> OsString {
    let bytes = output.as_bytes();
    let mut end = bytes.len().min(LONGEST);
    // Not within a character of UTF-8.
    while end < bytes.len() && bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) && end > 0 {
        end -= 1;
    }
    let mut name = OsString::from(".");
    name.push(OsStr::from_bytes(bytes.get(..end).unwrap_or(bytes)));
    name.push(".part-");
    name
}

/// The name of this computer as part of a file name; empty if it is unknown.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let usable = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    name.trim().chars().map(usable).take(40).collect()
}

/// Looks for unfinished outputs of the same name in `parent`. Those of processes of this computer that have ended are removed. Returns
/// what the user should know.
pub(super) fn sweep(parent: &Path, output: &OsStr) -> Vec<String> {
    let start = common_prefix(output);
    let (Some(start), Ok(entries)) = (start.to_str(), std::fs::read_dir(parent)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(start))
        .collect();
    names.sort();
    names.iter().map(|name| sweep_one(&parent.join(name), &name[start.len()..])).collect()
}

fn sweep_one(path: &Path, owner: &str) -> String {
    let (shown, here) = (path.display(), host());
    let mut parts = owner.split('-');
    let process = match (parts.next(), parts.next().and_then(|process| process.parse::<u32>().ok())) {
        (Some(host), Some(process)) if host == here && !host.is_empty() => process,
        (Some(host), Some(_)) => {
            return format!("{shown} is the unfinished output of a run on {host}; if that has ended, remove it");
        }
        _ => {
            return format!("{shown} is the unfinished output of another run; if that has ended, remove it");
        }
    };
    if is_running(process) {
        return format!("process {process} appears to be writing the same output, in {shown}");
    }
    match if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) } {
        Ok(()) => format!("removed the unfinished output of a run that was killed, {shown}"),
        Err(error) => format!("cannot remove the unfinished output of a run that was killed, {shown}: {error}"),
    }
}

/// Whether a process of this computer runs, as far as one can see.
fn is_running(process: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(line) => !has_ended(&line),
        Err(_) => !Path::new("/proc/self").exists() || Path::new("/proc").join(process.to_string()).exists(),
    }
}

/// Flag of a process of Linux that is about to end: nothing of the program runs any more (`PF_EXITING`).
const EXITING: u32 = 4;

/// Whether a line of `/proc/PROCESS/stat` is that of a process that has ended, which its parent may not have noticed.
fn has_ended(line: &str) -> bool {
    // The name, in parentheses, can contain anything. Then come the state, five numbers and the flags.
    let mut fields = line.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let state = fields.next().unwrap_or_default();
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u32>().ok()).unwrap_or(0);
    state.starts_with(['Z', 'X']) || flags & EXITING != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ending_writes_nothing() {
        for (line, ended) in [
            ("17 (clc-replay) S 1 17 17 0 -1 4194304 500 0", false),
            ("17 (a) Z b) R 1 17 17 0 -1 4194560 500 0", false),
            ("17 (clc-replay) R 1 17 17 0 -1 4194308 500 0", true),
            ("17 (clc-replay) Z 1 17 17 0 -1 4194560 0 0", true),
            ("17 (clc-replay) D", false),
        ] {
            assert_eq!(has_ended(line), ended, "{line}");
        }
        assert!(is_running(std::process::id()));
    }

    #[test]
    fn long_names_are_shortened_between_characters() {
        for (name, kept) in [("n".repeat(255), 160), ("ä".repeat(127), 160), (format!("x{}", "ä".repeat(127)), 159)] {
            let prefix = prefix(OsStr::new(&name)).into_string().expect("text");
            assert!(prefix.starts_with(&format!(".{}.part-", &name[..kept])), "{prefix}");
            assert!(prefix.len() < 235, "{prefix}");
            let directory = tempfile::tempdir().unwrap();
            let dead = format!(".{}.part-{}-4294967295-abc", &name[..kept], host());
            std::fs::write(directory.path().join(&dead), "").unwrap();
            assert!(sweep(directory.path(), OsStr::new(&name))[0].contains("removed the unfinished output"));
        }
    }

    #[test]
    fn only_what_nobody_writes_any_more_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        // No process has a number that large.
        let dead = format!(".out.part-{}-4294967295-abc", host());
        let own = format!("{}abc", prefix(OsStr::new("out")).to_str().unwrap());
        let names = [dead.as_str(), own.as_str(), ".out.part-_elsewhere-1-abc", ".out.part-abc", ".other.part-x-1-a"];
        for name in names {
            std::fs::create_dir(directory.path().join(name)).unwrap();
            std::fs::write(directory.path().join(name).join("file"), "").unwrap();
        }
        let said = sweep(directory.path(), OsStr::new("out"));
        let left = names.map(|name| directory.path().join(name).exists());
        assert_eq!(left, [false, true, true, true, true]);
        assert_eq!(said.len(), 4, "{said:?}");
        for (name, text) in [
            (names[0], "removed the unfinished output"),
            (names[1], "appears to be writing the same output"),
            (names[2], "of a run on _elsewhere"),
            (names[3], "of another run"),
        ] {
            assert!(said.iter().any(|line| line.contains(name) && line.contains(text)), "{said:?}");
        }
    }
}
