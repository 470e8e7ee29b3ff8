//! Unit tests of parts of the recorder. Its library has the names of MPI's functions, so that no test can be linked with all of it.

#![allow(unsafe_code, reason = "the recorder needs it")]
#![allow(dead_code, reason = "the recorder uses the rest")]

#[path = "../src/recorder/src/clock.rs"]
mod clock;
#[path = "../src/recorder/src/exchange.rs"]
mod exchange;
#[path = "../src/recording/format.rs"]
mod format;
#[path = "../src/recorder/src/line.rs"]
mod line;
