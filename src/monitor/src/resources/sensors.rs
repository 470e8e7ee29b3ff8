//! Sensors: the kernel's tables under `/proc` and `/sys`. What a kernel does not have is missing in the reading, no error.

use super::{Quantity, Reading};
use crate::gossip::Time;
use procfs_core::prelude::*;
use procfs_core::{
    CpuTime, DiskStats, ExplicitSystemInfo, KernelStats, LoadAverage, Meminfo, VmStat, net::InterfaceDeviceStatus,
};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a sector in `/proc/diskstats`, whatever the disk has.
const SECTOR: u64 = 512;

/// Counters that only make sense as differences.
#[derive(Debug, Clone, Default)]
struct Counts {
    at: Time,
    values: HashMap<Quantity, u64>,
    /// Busy and all ticks: of all cores together, and of each.
    ticks: Option<(u64, u64)>,
    cores: Vec<(u64, u64)>,
}

/// Reads the tables; rates are over the time since the last reading.
#[derive(Debug)]
pub struct Sensors {
    root: PathBuf,
    last: Option<Counts>,
}

impl Sensors {
    /// Sensors of the node whose `proc` and `sys` are in `root`, which is `/`.
    pub fn new(root: &Path) -> Self {
        Sensors { root: root.to_owned(), last: None }
    }

    /// What there is now. The first reading has no rates.
    pub fn read(&mut self, now: Time) -> Reading {
        let mut reading = Reading::default();
        let mut counts = Counts { at: now, ..Counts::default() };
        self.memory(&mut reading);
        self.processes(&mut reading, &mut counts);
        self.paging(&mut counts);
        self.traffic(&mut counts);
        if let Some(temperature) = self.temperature() {
            reading.set(Quantity::Temperature, temperature);
        }
        if let Some(last) = &self.last {
            counts.rates(last, &mut reading);
        }
        self.last = Some(counts);
        reading
    }

    fn memory(&self, reading: &mut Reading) {
        if let Ok(load) = LoadAverage::from_file(self.root.join("proc/loadavg")) {
            reading.set(Quantity::Load1, f64::from(load.one));
            reading.set(Quantity::Load5, f64::from(load.five));
            reading.set(Quantity::Load15, f64::from(load.fifteen));
            reading.set(Quantity::Runnable, f64::from(load.cur));
        }
        if let Ok(memory) = Meminfo::from_file(self.root.join("proc/meminfo")) {
            reading.set(Quantity::MemoryTotal, memory.mem_total as f64);
            reading.set(Quantity::MemoryAvailable, memory.mem_available.unwrap_or(memory.mem_free) as f64);
            reading.set(Quantity::SwapUsed, memory.swap_total.saturating_sub(memory.swap_free) as f64);
            reading.set(Quantity::VirtualMemory, memory.committed_as as f64);
        }
    }

    fn processes(&self, reading: &mut Reading, counts: &mut Counts) {
        // Only numbers of ticks are used, so what a tick and a page are does not matter.
        let info =
            ExplicitSystemInfo { boot_time_secs: 0, ticks_per_second: 100, page_size: 4_096, is_little_endian: true };
        let Ok(stats) = KernelStats::from_file(self.root.join("proc/stat"), &info) else { return };
        if let Some(blocked) = stats.procs_blocked {
            reading.set(Quantity::Blocked, f64::from(blocked));
        }
        counts.values.insert(Quantity::ContextSwitches, stats.ctxt);
        counts.ticks = Some(ticks(&stats.total));
        counts.cores = stats.cpu_time.iter().map(ticks).collect();
    }

    fn paging(&self, counts: &mut Counts) {
        let Ok(VmStat(table)) = VmStat::from_file(self.root.join("proc/vmstat")) else { return };
        for (name, quantity) in [
            ("pswpin", Quantity::SwapIn),
            ("pswpout", Quantity::SwapOut),
            ("pgpgin", Quantity::PagedIn),
            ("pgpgout", Quantity::PagedOut),
            ("pgmajfault", Quantity::MajorFaults),
        ] {
            if let Some(count) = table.get(name).and_then(|&count| u64::try_from(count).ok()) {
                counts.values.insert(quantity, count);
            }
        }
    }

    fn traffic(&self, counts: &mut Counts) {
        if let Ok(InterfaceDeviceStatus(devices)) = InterfaceDeviceStatus::from_file(self.root.join("proc/net/dev")) {
            let outside = || devices.values().filter(|device| device.name != "lo");
            counts.values.insert(Quantity::NetworkIn, outside().map(|device| device.recv_bytes).sum());
            counts.values.insert(Quantity::NetworkOut, outside().map(|device| device.sent_bytes).sum());
        }
        if let Ok(DiskStats(disks)) = DiskStats::from_file(self.root.join("proc/diskstats")) {
            // Partitions are parts of a disk; only disks have a folder there. Loops and memory are no disks.
            let block = self.root.join("sys/block");
            let whole = |name: &str| !name.starts_with("loop") && !name.starts_with("ram") && block.join(name).exists();
            let disks: Vec<_> = disks.iter().filter(|disk| whole(&disk.name)).collect();
            counts.values.insert(Quantity::DiskRead, disks.iter().map(|disk| disk.sectors_read * SECTOR).sum());
            counts.values.insert(Quantity::DiskWritten, disks.iter().map(|disk| disk.sectors_written * SECTOR).sum());
        }
    }

    /// The highest temperature of all thermal zones and hardware monitors, in degrees Celsius.
    fn temperature(&self) -> Option<f64> {
        let list = |folder: &str| fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let zones = list("sys/class/thermal").map(|zone| zone.path().join("temp"));
        let monitors = list("sys/class/hwmon").flat_map(|monitor| fs::read_dir(monitor.path()).into_iter().flatten());
        let inputs = monitors.flatten().map(|file| file.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("temp") && name.ends_with("_input")
        });
        let degrees = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
        // Sensors that are not connected show nonsense.
        let sane = zones.chain(inputs).filter_map(degrees).filter(|milli| (1..150_000).contains(milli));
        sane.max().map(|milli| milli as f64 / 1_000.0)
    }
}

impl Counts {
    fn rates(&self, last: &Counts, reading: &mut Reading) {
        let seconds = self.at.saturating_sub(last.at) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        for (&quantity, &count) in &self.values {
            // A counter that went back was set to nothing: an interface that is new, say.
            if let Some(rise) = last.values.get(&quantity).and_then(|&before| count.checked_sub(before)) {
                reading.set(quantity, rise as f64 / seconds);
            }
        }
        if let (Some(now), Some(before)) = (self.ticks, last.ticks) {
            reading.set(Quantity::CpuUse, f64::from(busy(now, before)));
        }
        if self.cores.len() == last.cores.len() {
            reading.cores = self.cores.iter().zip(&last.cores).map(|(&now, &before)| busy(now, before)).collect();
        }
    }
}

/// Busy ticks and all ticks. Time of guests is part of the user's.
fn ticks(time: &CpuTime) -> (u64, u64) {
    let waiting = time.idle.saturating_add(time.iowait.unwrap_or(0));
    let others = [time.irq, time.softirq, time.steal].into_iter().flatten().fold(0, u64::saturating_add);
    let busy = time.user.saturating_add(time.nice).saturating_add(time.system).saturating_add(others);
    (busy, busy.saturating_add(waiting))
}

/// Per cent of the time between that was busy.
fn busy(now: (u64, u64), before: (u64, u64)) -> f32 {
    let (busy, all) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    if all == 0 { 0.0 } else { (100.0 * busy as f64 / all as f64).min(100.0) as f32 }
}

#[cfg(test)]
mod tests;
