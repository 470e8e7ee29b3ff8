//! The library that makes calls fail (`shim.c`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, compiled once with the wrapper of the MPI library that the program was built with.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let exists = |name: &str| Command::new(name).arg("--version").output().is_ok();
        let wrapper = match std::env::var("MPICC") {
            Ok(given) if !given.is_empty() => given,
            _ => ["mpicc.openmpi", "mpicc"]
                .into_iter()
                .find(|name| exists(name))
                .expect("a compiler of MPI programs")
                .into(),
        };
        // Each MPI library has its own.
        let name = Path::new(&wrapper).file_name().expect("a command").to_string_lossy();
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{name}.so"));
        let made = library.with_extension(format!("{}.so", std::process::id()));
        let mut command = Command::new(wrapper);
        command.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]).arg(&made).arg(source).arg("-ldl");
        crate::common::run(&mut command).expect(0, "compiling the shim");
        std::fs::rename(&made, &library).unwrap();
        library
    })
}
