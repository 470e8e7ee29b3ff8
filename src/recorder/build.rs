//! Makes the functions that stand in for those of MPI from the table in `calls.txt`.

use std::fmt::Write;
use std::path::Path;

#[allow(dead_code)]
#[path = "../recording/raw/format/mod.rs"]
mod format;

fn main() {
    println!("cargo::rerun-if-changed=calls.txt");
    println!("cargo::rerun-if-changed=../recording/raw/format");
    let table = std::fs::read_to_string("calls.txt").expect("the table of functions");
    let mut code = String::new();
    for (number, function) in format::calls::functions(&table).enumerate() {
        let function = function.unwrap_or_else(|| panic!("calls.txt: function {number} makes no sense"));
        write_function(&mut code, number, &function);
    }
    let directory = std::env::var_os("OUT_DIR").expect("cargo gives a directory");
    let checksum =
        format!("/// Checksum of the table.\npub(crate) const TABLE: u64 = {};\n", format::checksum(table.as_bytes()));
    for (name, code) in [("table.rs", checksum), ("wrappers.rs", code)] {
        std::fs::write(Path::new(&directory).join(name), code).expect("the directory is writable");
    }
}

/// The C function, the one for large counts, and the Fortran ones.
fn write_function(code: &mut String, number: usize, function: &format::calls::Function) {
    let name = function.name;
    let poll = format::POLLS.iter().position(|&(poll, _)| poll == name).map_or(0, |place| place + 1);
    let call = |mode: &str| {
        format!(
            "Call {{ number: {number}, effect: Effect::{:?}, form: Form::{:?}, mode: Mode::{mode}, probe: {}, subject: crate::calls::Subject::{}, flag: {}, notes: {}, poll: {poll}, waits: {} }}",
            function.effect,
            function.form,
            // What of those functions is recorded does not tell whether they have found something.
            matches!(name, "Iprobe" | "Request_get_status" | "Parrived"),
            subject(name),
            flag(function.effect),
            notes(function),
            poll != 0 && name.starts_with("Wait"),
        )
    };
    let mut c = |symbol: &str, mode: &str| {
        writeln!(code, "wrapper!(c {symbol:?}, c{symbol:?}, {}, [{}]);", call(mode), arguments(function.arguments))
            .expect("memory");
    };
    c(&format!("MPI_{name}"), "C");
    if function.large {
        c(&format!("MPI_{name}_c"), "LARGE");
    }
    let Some(count) = function.fortran else { return };
    let lower = format!("mpi_{}", name.to_lowercase());
    // Compilers spell names in four ways; the module mpi_f08 has names of its own, with descriptors of buffers where it can.
    let spellings = [
        (lower.clone(), "FORTRAN"),
        (format!("{lower}_"), "FORTRAN"),
        (format!("{lower}__"), "FORTRAN"),
        (lower.to_uppercase(), "FORTRAN"),
        (format!("{lower}_f08_"), "F08"),
        (format!("{lower}_f08ts_"), "DESCRIPTORS"),
    ];
    for (symbol, mode) in spellings {
        // After the arguments the address where the error code goes, then the lengths of texts.
        let list = arguments(count + 1 + function.texts);
        writeln!(code, "wrapper!(fortran {symbol:?}, c{symbol:?}, {}, {count}, [{list}]);", call(mode))
            .expect("memory");
    }
}

/// What a function of which only the call is recorded is about, for the state file: a variant of `calls::Subject`.
fn subject(name: &str) -> &'static str {
    let of_all = ["_all", "_all_begin", "_all_end", "_ordered", "_ordered_begin", "_ordered_end"];
    match name {
        "Probe" | "Iprobe" => "Envelope",
        "Intercomm_create" => "Leaders",
        "File_open" => "NewFile",
        "File_close" => "OldFile",
        "File_set_view" | "File_set_size" | "File_preallocate" | "File_sync" | "File_seek_shared" => "File",
        _ if name.starts_with("File_") && of_all.iter().any(|end| name.ends_with(end)) => "File",
        _ if name.contains("eighbor_") => "Neighbours",
        _ => "Other",
    }
}

/// The argument of a test that says whether it did anything; 0 for other functions.
fn flag(effect: format::calls::Effect) -> usize {
    use format::calls::Effect::*;
    match effect {
        Test | WinTest => 1,
        Testall | Testsome => 2,
        Testany | Improbe => 3,
        _ => 0,
    }
}

/// What the state file has to learn after a function, by the bits that `calls::notes` names.
fn notes(function: &format::calls::Function) -> String {
    use format::calls::Effect::*;
    let effect = function.effect;
    let noted = [
        ("REQUEST", effect.gives(function.form) == format::calls::Gives::Request),
        ("TEST", matches!(effect, Test | Testall | Testany | Testsome | Improbe | WinTest)),
        ("FREES", matches!(effect, CommFree | WinFree) || function.name == "File_close"),
        ("EPOCH", matches!(effect, WinLock | WinLockAll | WinUnlock | WinUnlockAll | WinComplete | WinWait | WinTest)),
    ];
    let names = noted.into_iter().filter(|&(_, is_so)| is_so).map(|(name, _)| format!("crate::calls::notes::{name}"));
    Some(names.collect::<Vec<_>>().join(" | ")).filter(|list| !list.is_empty()).unwrap_or_else(|| "0".to_owned())
}

fn arguments(count: usize) -> String {
    (0..count).map(|i| format!("a{i}")).collect::<Vec<_>>().join(", ")
}
