//! Estimates clocks from a table of messages: one per line, as sender's clock, receiver's clock, time of sending, time of receiving (ns, each by its own clock).
//!
//!     cargo run -p clc-clock --example clocks_of_messages < messages.csv
#![allow(clippy::print_stdout)]

use clc_clock::{ClockMessage, Error, Options, Result, Ticks, estimate};

/// How far each clock is behind global time at the first message, in nanoseconds, and its drift in millionths.
pub(crate) fn offsets(table: &str) -> Result<Vec<(i64, f64)>> {
    let mut messages = Vec::new();
    for (number, line) in (1..).zip(table.lines()) {
        let wrong = |_| Error::new(format!("line {number} is not a message: {line}"));
        let fields: Vec<i64> =
            line.split(',').map(|field| field.trim().parse()).collect::<std::result::Result<_, _>>().map_err(wrong)?;
        let &[from, to, sent, received] = fields.as_slice() else {
            return Err(Error::new(format!("line {number} has {} fields instead of 4", fields.len())));
        };
        messages.push(ClockMessage { from: from as u32, to: to as u32, sent, received });
    }
    let estimated = estimate(&messages, &Options::default())?;
    let first = messages.iter().map(|message| message.sent).min().unwrap_or(0);
    let behind = estimated.clocks.iter().map(|clock| clock.map(Ticks(first)).0 - first);
    Ok(behind.zip(estimated.summary.clocks.iter().map(|clock| clock.drift_ppm)).collect())
}

#[allow(dead_code)] // the tests only want the function
fn main() -> Result<()> {
    let table =
        std::io::read_to_string(std::io::stdin()).map_err(|error| Error::new(format!("standard input: {error}")))?;
    for (clock, (offset, drift)) in offsets(&table)?.into_iter().enumerate() {
        println!("clock {clock}: {offset} ns behind, {drift:.3} ppm");
    }
    Ok(())
}
