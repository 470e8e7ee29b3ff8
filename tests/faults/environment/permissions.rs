//! Missing permissions.

use super::*;

pub(super) fn permissions() -> Vec<Case> {
    vec![
        special(
            "read_only_directory",
            "the directory above the output is read-only",
            REFUSED,
            |_| {},
            |s, ranks| {
                set_mode(s.directory(), 0o555);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                set_mode(s.directory(), 0o755);
                refused_cleanly(s, ranks, &finished, &["cannot write the output there", "Permission denied"]);
                assert!(!finished.stderr.contains(".out.part-"), "a name that nobody has asked for: {finished:?}");
            },
        ),
        special(
            "read_only_directory_of_report",
            "the directory above the report is read-only",
            "status 2, one line, nothing left",
            |s| s.options(&["--report", "closed/r.json"]),
            |s, ranks| {
                let closed = s.directory().join("closed");
                std::fs::create_dir(&closed).unwrap();
                set_mode(&closed, 0o555);
                open_to_all(s);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                refused_cleanly(s, ranks, &finished, &["closed/r.json: cannot write: Permission denied (os error 13)"]);
            },
        ),
        special(
            "events_unreadable",
            "no permission to read one event file",
            REFUSED,
            |_| {},
            |s, ranks| {
                open_to_all(s);
                set_mode(&s.copy.events(2), 0o000);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                set_mode(&s.copy.events(2), 0o644);
                refused_cleanly(s, ranks, &finished, &["2.evt: location 2: ", "Permission denied"]);
            },
        ),
        special(
            "definitions_unreadable",
            "no permission to read the definitions",
            REFUSED,
            |_| {},
            |s, ranks| {
                open_to_all(s);
                set_mode(&s.copy.definitions(), 0o000);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                set_mode(&s.copy.definitions(), 0o644);
                refused_cleanly(s, ranks, &finished, &["traces.def: ", "Permission denied"]);
            },
        ),
        corrected("trace_read_only", "a read-only trace", |s| {
            for path in tree(&s.copy.trace).into_keys().filter(|path| !s.copy.trace.join(path).is_dir()) {
                set_mode(&s.copy.trace.join(path), 0o444);
            }
        }),
    ]
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn open_to_all(scene: &Scene) {
    set_mode(scene.directory(), 0o777);
}

/// The command as a user without rights, if the tests run as root, who may do everything.
#[allow(unsafe_code)]
fn as_nobody(scene: &Scene, mut command: Command) -> Command {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    // SAFETY: no arguments, never fails.
    if unsafe { libc::geteuid() } == 0 {
        // MPI libraries want to write something.
        let home = scene.go_on_file().with_file_name("home");
        std::fs::create_dir_all(&home).unwrap();
        set_mode(home.parent().unwrap(), 0o755);
        set_mode(&home, 0o777);
        command.env("HOME", &home).env("TMPDIR", &home).uid(NOBODY).gid(NOBODY);
    }
    command
}
