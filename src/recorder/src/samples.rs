//! Synchronous sampling: at agreed times, the first process of each node notes how busy the node is.
//!
//! The agreed times are multiples of the period by the *global time*, which is `CLOCK_MONOTONIC_RAW` of the node of rank 0. Each leader of a node asks its partner
//! for it, again and again, by messages of the kernel (`endpoint`), and so on to rank 0: without MPI, and without the program. A thread of its own
//! sleeps until the next agreed time; a sample that it takes too late is not written. Whether the clocks agreed as well as was thought is seen after the run, when
//! their offsets are known: samples that were not at their time are left out then.

use crate::clock;
use crate::endpoint::Client;
use crate::format::sampled::{MAGIC, SUFFIX};
use crate::global_time::{self, raw};
use crate::load::Usage;
use crate::offsets::Meter;
use crate::session;
use crate::threads;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a partner is asked for the global time, and if it does not know it yet. Chosen by hand: more often costs messages, less often lets the
/// global time drift by what clocks do meanwhile.
const FOLLOW: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(20);
/// It is looked at least so often whether the recording has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Begins to sample, if that is wanted, and to follow the global time.
pub(crate) fn start(meter: &Meter, directory: &Path, rank: usize) {
    let wanted = std::env::var("CLC_RECORDER_SAMPLE").unwrap_or_default();
    let Some((period, bound)) = wanted.split_once(':') else { return };
    let (Ok(period), Ok(bound)) = (period.parse::<u64>(), bound.parse::<u64>()) else { return };
    let partner = meter.another_client();
    global_time::begin(rank == 0);
    // Who knows no way to the global time cannot take part.
    let sampler = meter.first_of_node && period > 0 && (rank == 0 || partner.is_some());
    let file = if sampler { create(directory, rank, period, bound) } else { None };
    if file.is_some() || partner.is_some() {
        let _ = threads::spawn("clc-samples", move || run(partner.as_ref(), file, period, bound));
    }
}

fn create(directory: &Path, rank: usize, period: u64, bound: u64) -> Option<File> {
    let path = directory.join(format!("{rank}.{SUFFIX}"));
    let mut file = OpenOptions::new().append(true).create_new(true).open(path).ok()?;
    let bytes = [MAGIC, period.to_le_bytes(), bound.to_le_bytes()].concat();
    file.write_all(&bytes).ok().map(|()| file)
}

fn run(partner: Option<&Client>, mut file: Option<File>, period: u64, bound: u64) {
    let mut usage = Usage::new();
    let mut asked: Option<Instant> = None;
    while session::recording().is_some() {
        if let Some(partner) = partner.filter(|_| asked.is_none_or(|at| at.elapsed() >= FOLLOW)) {
            if let Some(ahead) = partner.ahead() {
                global_time::follow(ahead);
            }
            if !global_time::is_known() {
                std::thread::sleep(RETRY);
                continue;
            }
            asked = Some(Instant::now());
        }
        let Some(open) = &mut file else {
            std::thread::sleep(LOOK);
            continue;
        };
        let turn = global_time::now() / period + 1;
        let at = global_time::here(turn.wrapping_mul(period));
        sleep_until(at);
        if raw().saturating_sub(at) > bound || session::recording().is_none() {
            continue;
        }
        let counter = clock::before();
        let [cpu, link] = usage.until_now();
        let bytes = [turn, counter, cpu.to_bits(), link.to_bits()].map(u64::to_le_bytes).concat();
        if open.write_all(&bytes).is_err() {
            file = None;
        }
    }
}

/// Until `CLOCK_MONOTONIC_RAW` is so late, or the recording ends.
fn sleep_until(at: u64) {
    loop {
        let left = at.saturating_sub(raw());
        if left == 0 || session::recording().is_none() {
            return;
        }
        std::thread::sleep(Duration::from_nanos(left).min(LOOK));
    }
}
