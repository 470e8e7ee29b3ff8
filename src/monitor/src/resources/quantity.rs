//! What is measured, its name, its unit, and how fine it is told.

/// Something that sensors measure on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Quantity {
    /// Load average over one minute.
    Load1,
    /// Load average over five minutes.
    Load5,
    /// Load average over fifteen minutes.
    Load15,
    /// Memory of the node.
    MemoryTotal,
    /// Memory that programs could still get.
    MemoryAvailable,
    /// Bytes received by all interfaces but the loopback, per second.
    NetworkIn,
    /// Bytes sent by them, per second.
    NetworkOut,
    /// Bytes read from whole disks, per second.
    DiskRead,
    /// Bytes written to them, per second.
    DiskWritten,
    /// Swap space in use.
    SwapUsed,
    /// Pages swapped in, per second.
    SwapIn,
    /// Pages swapped out, per second.
    SwapOut,
    /// KiB paged in, per second.
    PagedIn,
    /// KiB paged out, per second.
    PagedOut,
    /// Page faults that had to wait for a disk, per second.
    MajorFaults,
    /// Processes and threads that could run.
    Runnable,
    /// Processes that wait for a disk.
    Blocked,
    /// Virtual memory that programs were promised.
    VirtualMemory,
    /// Context switches per second.
    ContextSwitches,
    /// Part of the time that all cores together were busy, 0 to 100.
    CpuUse,
    /// Highest temperature that the kernel knows of.
    Temperature,
}

impl Quantity {
    /// All of them, in the order in which they are told.
    pub const ALL: [Quantity; 21] = [
        Quantity::Load1,
        Quantity::Load5,
        Quantity::Load15,
        Quantity::MemoryTotal,
        Quantity::MemoryAvailable,
        Quantity::NetworkIn,
        Quantity::NetworkOut,
        Quantity::DiskRead,
        Quantity::DiskWritten,
        Quantity::SwapUsed,
        Quantity::SwapIn,
        Quantity::SwapOut,
        Quantity::PagedIn,
        Quantity::PagedOut,
        Quantity::MajorFaults,
        Quantity::Runnable,
        Quantity::Blocked,
        Quantity::VirtualMemory,
        Quantity::ContextSwitches,
        Quantity::CpuUse,
        Quantity::Temperature,
    ];

    /// Name in formulas and tables, unit, and the step in which it is told.
    fn facts(self) -> (&'static str, &'static str, f64) {
        const MIB: f64 = 1_048_576.0;
        const KIB: f64 = 1_024.0;
        match self {
            Quantity::Load1 => ("load1", "", 0.01),
            Quantity::Load5 => ("load5", "", 0.01),
            Quantity::Load15 => ("load15", "", 0.01),
            Quantity::MemoryTotal => ("memory_total", "bytes", MIB),
            Quantity::MemoryAvailable => ("memory", "bytes", MIB),
            Quantity::NetworkIn => ("net_in", "bytes/s", KIB),
            Quantity::NetworkOut => ("net_out", "bytes/s", KIB),
            Quantity::DiskRead => ("disk_read", "bytes/s", KIB),
            Quantity::DiskWritten => ("disk_written", "bytes/s", KIB),
            Quantity::SwapUsed => ("swap", "bytes", MIB),
            Quantity::SwapIn => ("swap_in", "pages/s", 1.0),
            Quantity::SwapOut => ("swap_out", "pages/s", 1.0),
            Quantity::PagedIn => ("paged_in", "KiB/s", 1.0),
            Quantity::PagedOut => ("paged_out", "KiB/s", 1.0),
            Quantity::MajorFaults => ("faults", "1/s", 1.0),
            Quantity::Runnable => ("runnable", "", 1.0),
            Quantity::Blocked => ("blocked", "", 1.0),
            Quantity::VirtualMemory => ("virtual_memory", "bytes", MIB),
            Quantity::ContextSwitches => ("switches", "1/s", 1.0),
            Quantity::CpuUse => ("cpu", "%", 0.5),
            Quantity::Temperature => ("temperature", "C", 0.5),
        }
    }

    /// Its name in tables and formulas.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Its unit, empty for numbers.
    pub fn unit(self) -> &'static str {
        self.facts().1
    }

    /// The step in which it is told.
    pub fn step(self) -> f64 {
        self.facts().2
    }

    /// The quantity with that name.
    pub fn named(name: &str) -> Option<Quantity> {
        Quantity::ALL.into_iter().find(|quantity| quantity.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_stands_at_its_place_and_has_a_name_of_its_own() {
        for (place, quantity) in Quantity::ALL.into_iter().enumerate() {
            assert_eq!(quantity as usize, place);
            assert_eq!(Quantity::named(quantity.name()), Some(quantity));
        }
    }
}
