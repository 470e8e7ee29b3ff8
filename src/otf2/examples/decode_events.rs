//! Decodes every event of an archive with all its fields, and prints how many there are of each record, and the sum of their times.
//!
//!     cargo run --release -p clc-otf2 --example decode_events -- TRACE
//!
//! `scripts/bench decoding` compares its time and its output with those of the OTF2 library.
#![allow(clippy::print_stdout)]

use clc_otf2::{Otf2Archive, Result};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

/// A line for each record that occurs, by name, and one for the times, modulo 2^64.
pub(crate) fn decode(trace: &Path) -> Result<Vec<String>> {
    let archive = Otf2Archive::open(trace)?;
    let (definitions, _) = archive.read_definitions()?;
    let (mut counts, mut times) = ([0u64; 256], 0u64);
    let mut names = [""; 256];
    for location in &definitions.locations {
        for event in archive.events(location.id)? {
            let event = event?;
            let number = usize::from(event.record.number());
            counts[number] += 1;
            names[number] = event.record.name();
            times = times.wrapping_add(event.time);
            // Nobody looks at the fields: without this the compiler need not decode them.
            black_box(&event);
        }
    }
    let mut by_name = BTreeMap::new();
    for (name, count) in names.into_iter().zip(counts).filter(|&(_, count)| count > 0) {
        *by_name.entry(name).or_insert(0) += count;
    }
    let records = by_name.into_iter().map(|(name, count)| format!("{name} {count}"));
    Ok(records.chain([format!("times {times}")]).collect())
}

#[allow(dead_code)] // the tests only want the function
fn main() -> Result<()> {
    let trace = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    decode(Path::new(&trace))?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
