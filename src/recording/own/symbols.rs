//! Names of functions by their addresses in a process.

use crate::recording::raw::format::MAPS;
use clc_monitor::stacks::symbols::FileSymbols;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A function: the file that it is in, and its address there.
pub(super) type Place = (Arc<str>, u64);

/// Which files were where in the memory of a process.
#[derive(Debug, Default)]
pub(super) struct ModuleMap {
    /// Ranges with the file and the address of its first byte (0 for a program that has fixed addresses).
    ranges: Vec<(Range<u64>, Arc<str>, u64)>,
}

impl ModuleMap {
    /// Those of the process of a rank; none if it has kept none.
    pub(super) fn read(directory: &Path, rank: u32) -> ModuleMap {
        let text = std::fs::read(directory.join(format!("{rank}.{MAPS}"))).unwrap_or_default();
        ModuleMap::parse(&String::from_utf8_lossy(&text), is_fixed)
    }

    fn parse(text: &str, is_fixed: impl Fn(&str) -> bool) -> ModuleMap {
        let mut bases: BTreeMap<&str, u64> = BTreeMap::new();
        let mut ranges = Vec::new();
        for line in text.lines() {
            // start-end permissions offset device inode path
            let mut words = line.splitn(6, ' ');
            let Some((start, end)) = words.next().and_then(|word| word.split_once('-')) else { continue };
            let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
            let (Some(start), Some(end)) = (hexadecimal(start), hexadecimal(end)) else { continue };
            let Some(path) = words.nth(4).map(str::trim_start).filter(|path| path.starts_with('/')) else { continue };
            let base = *bases.entry(path).or_insert_with(|| if is_fixed(path) { 0 } else { start });
            ranges.push((start..end, Arc::from(path), base));
        }
        ModuleMap { ranges }
    }

    /// Where a function is; none if nothing is known of that address.
    pub(super) fn place(&self, address: u64) -> Option<Place> {
        let (_, path, base) = self.ranges.iter().find(|(range, ..)| range.contains(&address))?;
        Some((Arc::clone(path), address.checked_sub(*base)?))
    }
}

/// Whether a file is a program that is linked to fixed addresses (ELF type EXEC).
fn is_fixed(path: &str) -> bool {
    let mut head = [0_u8; 18];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && u16::from_le_bytes([head[16], head[17]]) == 2
}

/// Names of functions. One without a symbol is called by its file and address.
pub(super) fn names(places: &BTreeSet<Place>) -> HashMap<Place, String> {
    named(places, FileSymbols::name)
}

/// Places in the source, file:line; without debug information the names of the functions that they are in.
pub(super) fn source_names(places: &BTreeSet<Place>) -> HashMap<Place, String> {
    named(places, |symbols, address| {
        let source = symbols.functions(address).into_iter().next().and_then(|function| function.source);
        let short = source.and_then(|source| source.rsplit('/').next().map(str::to_owned));
        short.or_else(|| symbols.name(address))
    })
}

fn named(places: &BTreeSet<Place>, name_of: impl Fn(&FileSymbols, u64) -> Option<String>) -> HashMap<Place, String> {
    let mut found = HashMap::new();
    let mut file: Option<(&str, Option<FileSymbols>)> = None;
    for place in places {
        let (path, address) = (place.0.as_ref(), place.1);
        // Places are in the order of their files.
        if file.as_ref().is_none_or(|(known, _)| *known != path) {
            file = Some((path, FileSymbols::open(path)));
        }
        let name =
            file.as_ref().and_then(|(_, symbols)| symbols.as_ref()).and_then(|symbols| name_of(symbols, address));
        let file = path.rsplit('/').next().unwrap_or(path);
        found.insert(place.clone(), name.unwrap_or_else(|| format!("{file}+{address:#x}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_in_the_file() {
        let text = "400000-401000 r--p 00000000 08:01 1   /bin/fixed one\n\
                    7f0000000000-7f0000001000 r--p 00000000 08:01 2  /lib/a.so\n\
                    7f0000001000-7f0000003000 r-xp 00001000 08:01 2  /lib/a.so\n\
                    7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0  [stack]\n\
                    damaged\n";
        let modules = ModuleMap::parse(text, |path| path.contains("fixed"));
        let place = |address| modules.place(address).map(|(path, address)| (path.to_string(), address));
        assert_eq!(place(0x40_0123), Some(("/bin/fixed one".to_owned(), 0x40_0123)));
        assert_eq!(place(0x7f00_0000_1234), Some(("/lib/a.so".to_owned(), 0x1234)));
        assert_eq!(place(0x7f00_0000_3000), None);
        assert_eq!(place(0x7ffe_0000_0010), None);
    }

    #[test]
    fn functions_of_this_program_have_their_names() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let modules = ModuleMap::parse(&text, is_fixed);
        let place = modules.place(is_fixed as fn(&str) -> bool as usize as u64).unwrap();
        let name = names(&BTreeSet::from([place.clone()])).remove(&place).unwrap();
        assert!(name.contains("symbols::is_fixed"), "{name}");
    }

    #[test]
    fn without_a_file_functions_are_called_by_their_addresses() {
        let place: Place = (Arc::from("/no such directory/app"), 0x40);
        assert_eq!(names(&BTreeSet::from([place.clone()]))[&place], "app+0x40");
    }
}
