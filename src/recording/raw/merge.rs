//! The records of all threads of a process, in the order of time.
//!
//! A request that one thread has made can be completed by another one: who interprets requests has to see both in their order. A communicator or window is there when the call that makes it
//! ends: before, another thread may have freed the one that had its handle.

use crate::recording::raw::RawFile;
use crate::recording::raw::format::calls::Function;
use crate::recording::raw::reader::RawRecords;
use crate::recording::raw::records::RawRecord;
use clc_trace::Result;
use std::collections::VecDeque;

/// The files of one process.
#[derive(Debug)]
pub(crate) struct Merge<'a> {
    threads: Vec<Thread<'a>>,
    /// For each file the index of its thread: a ring is a second file of a thread.
    indices: Vec<usize>,
    /// Why records are missing, if files are damaged.
    pub damage: Vec<String>,
}

#[derive(Debug)]
struct Thread<'a> {
    records: RawRecords<'a>,
    /// The next records, all at one time: that of the last one, to whose call those before it belong.
    next: VecDeque<RawRecord>,
    time: u64,
    /// There are no more records.
    is_over: bool,
}

impl<'a> Merge<'a> {
    /// Of the files of one process, which all have the same counter.
    pub(crate) fn new(files: &[&'a RawFile], functions: &'a [Function<'static>]) -> Merge<'a> {
        let threads = files
            .iter()
            .map(|file| Thread {
                records: RawRecords::of(file, functions),
                next: VecDeque::new(),
                time: 0,
                is_over: false,
            })
            .collect::<Vec<_>>();
        let mut indices: Vec<usize> = Vec::new();
        for (place, file) in files.iter().enumerate() {
            let again =
                place > 0 && files.get(place - 1).is_some_and(|before| before.header.thread == file.header.thread);
            let next = indices.last().map_or(0, |last| last + usize::from(!again));
            indices.push(next);
        }
        let mut merge = Merge { threads, indices, damage: Vec::new() };
        (0..files.len()).for_each(|index| merge.advance(index));
        merge
    }

    /// Reads on, to the next record that has a time.
    fn advance(&mut self, index: usize) {
        let Some(thread) = self.threads.get_mut(index) else { return };
        while !thread.is_over && thread.next.back().is_none_or(|last| last.time().is_none()) {
            // What follows a damaged record cannot be read.
            let record = thread.records.next().unwrap_or_else(|error| {
                self.damage.push(format!("{error}; the rest of that file is missing"));
                None
            });
            thread.is_over = record.is_none();
            if let Some(record) = record {
                thread.time = record.time().unwrap_or(thread.time);
                thread.next.push_back(record);
            }
        }
    }

    /// The next record with the index of its thread and its time.
    pub(crate) fn next(&mut self) -> Option<(usize, u64, RawRecord)> {
        let earliest = self.threads.iter().enumerate().filter(|(_, thread)| !thread.next.is_empty());
        let (index, time) = earliest.map(|(index, thread)| (index, thread.time)).min_by_key(|&(_, time)| time)?;
        let thread = self.threads.get_mut(index)?;
        let record = thread.next.pop_front()?;
        if thread.next.is_empty() {
            self.advance(index);
        }
        Some((*self.indices.get(index)?, time, record))
    }

    /// Hands every record to `act`, until it fails.
    ///
    /// # Errors
    /// Those of `act`.
    pub(crate) fn each(&mut self, mut act: impl FnMut(usize, u64, RawRecord) -> Result<()>) -> Result<()> {
        while let Some((index, time, record)) = self.next() {
            act(index, time, record)?;
        }
        Ok(())
    }
}
