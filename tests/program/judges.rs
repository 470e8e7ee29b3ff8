//! The independent judges in `tests/tools` are tested themselves, on archives whose answers are known.

use std::path::Path;
use std::process::Command;

/// The interpreter that sees Debian's python3-otf2; another one in the path need not.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn judges_pass_their_own_tests() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/selftest.py");
    let output =
        Command::new(PYTHON).arg(&script).output().expect("python3 starts (scripts/setup.sh --tests installs it)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
