//! Names of functions by their addresses in files.

use addr2line::Loader;
use std::borrow::Cow;
use std::collections::HashMap;

/// A program or a library with its symbols and debug information.
pub struct FileSymbols(Loader);

/// A function, and where its source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFunction {
    /// Its name.
    pub name: String,
    /// File and line, if there is debug information.
    pub source: Option<String>,
}

impl FileSymbols {
    /// Of a file; none if it cannot be read.
    pub fn open(path: &str) -> Option<FileSymbols> {
        Loader::new(path).ok().map(FileSymbols)
    }

    /// The symbol at an address, or what the debug information calls the function there.
    pub fn name(&self, address: u64) -> Option<String> {
        self.symbol(address).or_else(|| self.frames(address).pop().map(|function| function.name))
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let symbol = self.0.find_symbol(address)?;
        Some(addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned())
    }

    /// What the debug information says: the function, after those that have been inlined into it there.
    fn frames(&self, address: u64) -> Vec<ResolvedFunction> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address) else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|function| function.demangle().ok().map(Cow::into_owned));
            let source = frame.location.and_then(|place| Some(format!("{}:{}", place.file?, place.line?)));
            found.extend(name.map(|name| ResolvedFunction { name, source }));
        }
        found
    }

    /// The function at an address, after those that have been inlined into it there; none if there is neither symbol nor debug information.
    pub fn functions(&self, address: u64) -> Vec<ResolvedFunction> {
        let mut found = self.frames(address);
        if let Some(name) = self.symbol(address) {
            match found.last_mut() {
                Some(last) => last.name = name,
                None => found.push(ResolvedFunction { name, source: None }),
            }
        }
        found
    }
}

/// Those of several files, as long as they are needed.
#[derive(Default)]
pub(crate) struct Symbols(HashMap<String, Option<FileSymbols>>);

impl Symbols {
    /// See [`FileSymbols::functions`].
    pub(crate) fn functions(&mut self, path: &str, address: u64) -> Vec<ResolvedFunction> {
        let file = self.0.entry(path.to_owned()).or_insert_with(|| FileSymbols::open(path));
        file.as_ref().map(|file| file.functions(address)).unwrap_or_default()
    }
}
