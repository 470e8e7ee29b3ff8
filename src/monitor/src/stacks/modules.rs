//! Which files are where in the memory of a process, and its stacks by their tables.
//!
//! The tables for unwinding (`.eh_frame`) are read from the memory of the process, where they belong to what runs there even if the file has been replaced.

use super::DEPTH;
use super::memory::{ProcessMemory, ThreadSnapshot};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use gimli::{BaseAddresses, EhFrameHdr, NativeEndian, Pointer};
use object::elf::{FileHeader64, PT_GNU_EH_FRAME, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use std::cell::OnceCell;
use std::ops::{Deref, Range};

/// What is said if a stack goes on.
pub(super) const DEEPER: &str = "and more";
/// So much of a file is looked at for the headers of its segments.
const HEADERS: usize = 4096;
/// A frame pointer that is not known: nothing is there, so a stack ends at who needs it, and it is said that it goes on.
const UNKNOWN: u64 = 1;
/// The largest table that is read. Chosen by hand: larger than tables of real programs; a limit for damaged ones.
const TABLE: usize = 256 << 20;
/// The beginning of the index of a table, which says where that is.
const INDEX: usize = 64;

/// An address in the code of a process, and in which file that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeAddress {
    /// The file; empty if it is none.
    pub file: String,
    /// There is such a file, and it has not been replaced.
    pub has_file: bool,
    /// The address in that file.
    pub address: u64,
    /// One within the instruction that the frame is in: that before the address to which it returns.
    pub looked_up: u64,
}

/// A range of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    offset: u64,
    executable: bool,
    path: String,
}

/// A program, a library or what the kernel puts beside them.
#[derive(Debug)]
struct LoadedModule {
    range: Range<u64>,
    /// What addresses in memory are above those in the file.
    bias: u64,
    path: String,
}

/// What is in the memory of a process.
pub(super) struct ProcessModules {
    mappings: Vec<Mapping>,
    known: Vec<LoadedModule>,
    unwinder: UnwinderX86_64<UnwindTable>,
}

fn parse(line: &str) -> Option<Mapping> {
    // start-end permissions offset device inode path
    let mut words = line.splitn(6, ' ');
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
    let (start, end) = words.next()?.split_once('-')?;
    let executable = words.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = hexadecimal(words.next()?)?;
    let path = words.nth(2).unwrap_or_default().trim_start().to_owned();
    Some(Mapping { range: hexadecimal(start)?..hexadecimal(end)?, offset, executable, path })
}

/// Segments of a file that is loaded: its range and the bias, and the tables for unwinding, if there are any.
struct Segments {
    range: Range<u64>,
    bias: u64,
    table: Option<Range<u64>>,
    /// The end of the segment that the table is in.
    table_limit: u64,
}

/// Looks at the file whose first bytes are at this address.
fn segments(start: u64, memory: &ProcessMemory) -> Option<Segments> {
    let head = memory.read(start, HEADERS).ok()?;
    let header = FileHeader64::<object::Endianness>::parse(&*head).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.program_headers(endian, &*head).ok()?;
    let loaded = || headers.iter().filter(|header| header.p_type(endian) == PT_LOAD);
    let first = loaded().find(|header| header.p_offset(endian) == 0)?;
    let bias = start.wrapping_sub(first.p_vaddr(endian));
    let in_memory = |from: u64, length: u64| {
        let begin = from.wrapping_add(bias);
        Some(begin..begin.checked_add(length)?)
    };
    let ranges: Vec<Range<u64>> =
        loaded().filter_map(|header| in_memory(header.p_vaddr(endian), header.p_memsz(endian))).collect();
    let range = ranges.iter().map(|range| range.start).min()?..ranges.iter().map(|range| range.end).max()?;
    let table = headers.iter().find(|header| header.p_type(endian) == PT_GNU_EH_FRAME);
    let table = table.and_then(|header| in_memory(header.p_vaddr(endian), header.p_memsz(endian)));
    let of_table = table.as_ref().and_then(|table| ranges.iter().find(|range| range.contains(&table.start)));
    let table_limit = of_table.map_or(0, |range| range.end);
    Some(Segments { range, bias, table, table_limit })
}

/// A part of the memory of a process, which is read when it is needed.
#[derive(Default)]
struct UnwindTable {
    memory: ProcessMemory,
    range: Range<u64>,
    read: OnceCell<Vec<u8>>,
}

impl Deref for UnwindTable {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.read.get_or_init(|| {
            let length = usize::try_from(self.range.end.saturating_sub(self.range.start)).unwrap_or(0);
            self.memory.read(self.range.start, length.min(TABLE)).unwrap_or_default()
        })
    }
}

/// The tables for unwinding a file; none if it has none that can be read. Then frame pointers are followed.
fn sections(segments: &Segments, memory: &ProcessMemory) -> ExplicitModuleSectionInfo<UnwindTable> {
    let Some(table) = segments.table.as_ref() else { return ExplicitModuleSectionInfo::default() };
    let Some(begin) = begin_of_frames(table, memory) else { return ExplicitModuleSectionInfo::default() };
    // Its length is not told; it ends by itself, at the latest where the segment ends.
    let frames = begin..segments.table_limit;
    let in_file = |range: &Range<u64>| range.start.wrapping_sub(segments.bias)..range.end.wrapping_sub(segments.bias);
    let read = |range: &Range<u64>| UnwindTable { memory: *memory, range: range.clone(), read: OnceCell::new() };
    ExplicitModuleSectionInfo {
        eh_frame_hdr_svma: Some(in_file(table)),
        eh_frame_hdr: Some(read(table)),
        eh_frame_svma: Some(in_file(&frames)),
        eh_frame: Some(read(&frames)),
        ..ExplicitModuleSectionInfo::default()
    }
}

/// Where the table is that this index is of.
fn begin_of_frames(index: &Range<u64>, memory: &ProcessMemory) -> Option<u64> {
    let head = memory.read(index.start, INDEX).ok()?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(index.start);
    match EhFrameHdr::new(&head, NativeEndian).parse(&bases, 8).ok()?.eh_frame_ptr() {
        Pointer::Direct(begin) => Some(begin),
        Pointer::Indirect(_) => None,
    }
}

impl ProcessModules {
    /// From the text of `/proc/PID/maps`.
    pub(super) fn read(maps: &str, memory: &ProcessMemory) -> ProcessModules {
        let mappings: Vec<Mapping> = maps.lines().filter_map(parse).collect();
        let mut modules = ProcessModules { known: Vec::new(), unwinder: UnwinderX86_64::new(), mappings: Vec::new() };
        for mapping in mappings.iter().filter(|mapping| mapping.offset == 0) {
            let named = mapping.path.starts_with('/') || mapping.path == "[vdso]";
            let code = mappings.iter().any(|other| other.executable && other.path == mapping.path);
            let known = modules.known.iter().any(|known| known.range.contains(&mapping.range.start));
            if !named || !code || known {
                continue;
            }
            let Some(segments) = segments(mapping.range.start, memory) else { continue };
            let info = sections(&segments, memory);
            let range = segments.range.clone();
            modules.unwinder.add_module(Module::new(mapping.path.clone(), range.clone(), segments.bias, info));
            modules.known.push(LoadedModule { range, bias: segments.bias, path: mapping.path.clone() });
        }
        modules.mappings = mappings;
        modules
    }

    /// Where the range of memory that an address is in ends.
    pub(super) fn end_of_mapping(&self, address: u64) -> Option<u64> {
        // A stack may have grown since.
        self.mappings.iter().map(|mapping| mapping.range.end).find(|&end| end > address)
    }

    fn place(&self, address: u64, looked_up: u64) -> CodeAddress {
        let Some(known) = self.known.iter().find(|known| known.range.contains(&looked_up)) else {
            return CodeAddress { file: String::new(), has_file: false, address, looked_up };
        };
        let replaced = known.path.strip_suffix(" (deleted)");
        CodeAddress {
            file: replaced.unwrap_or(&known.path).to_owned(),
            has_file: replaced.is_none() && known.path.starts_with('/'),
            address: address.wrapping_sub(known.bias),
            looked_up: looked_up.wrapping_sub(known.bias),
        }
    }

    /// The functions that a thread is in, from the inside, and why there are no more, if that is not the end.
    pub(super) fn unwind(
        &self,
        snapshot: &ThreadSnapshot,
        memory: &ProcessMemory,
    ) -> (Vec<CodeAddress>, Option<String>) {
        // What was not copied is that of the outer functions, which has not changed if the thread is still in them.
        let mut read = |address| snapshot.copy.word(address).or_else(|| memory.word(address)).ok_or(());
        let registers = UnwindRegsX86_64::new(snapshot.code, snapshot.stack, snapshot.frame.unwrap_or(UNKNOWN));
        let mut cache = CacheX86_64::<_>::new();
        let mut frames = self.unwinder.iter_frames(snapshot.code, registers, &mut cache, &mut read);
        let mut places = Vec::new();
        loop {
            match frames.next() {
                Ok(Some(_)) if places.len() == DEPTH => return (places, Some(DEEPER.to_owned())),
                Ok(Some(frame @ FrameAddress::InstructionPointer(address))) => {
                    places.push(self.place(address, frame.address_for_lookup()));
                }
                Ok(Some(frame @ FrameAddress::ReturnAddress(address))) => {
                    places.push(self.place(address.into(), frame.address_for_lookup()));
                }
                Ok(None) => return (places, None),
                Err(_) => return (places, Some("the caller cannot be determined".to_owned())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f0000001000-7f0000003000 r-xp 00001000 08:01 2  /lib/a b.so";
        let mapping = parse(line).unwrap();
        assert_eq!(
            (mapping.range, mapping.offset, mapping.executable),
            (0x7f00_0000_1000..0x7f00_0000_3000, 0x1000, true)
        );
        assert_eq!(mapping.path, "/lib/a b.so");
        assert_eq!(parse("7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0 ").unwrap().path, "");
        assert_eq!(parse("damaged"), None);
    }
}
