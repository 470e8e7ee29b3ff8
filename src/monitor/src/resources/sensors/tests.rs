use super::*;
use crate::gossip::SECOND;

/// A node's tables as files: a short form of what Linux 6 shows.
fn write(root: &Path, file: &str, content: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
    fs::write(path, content).expect("written");
}

fn meminfo() -> String {
    let mut lines = String::from("MemTotal:  8000000 kB\nMemFree:  1000000 kB\nMemAvailable:  5000000 kB\n");
    lines +=
        "Buffers: 1 kB\nCached: 1 kB\nSwapCached: 1 kB\nActive: 1 kB\nInactive: 1 kB\nDirty: 1 kB\nWriteback: 1 kB\n";
    lines += "Mapped: 1 kB\nSlab: 1 kB\nVmallocTotal: 1 kB\nVmallocUsed: 1 kB\nVmallocChunk: 0 kB\n";
    lines + "SwapTotal:  2000 kB\nSwapFree:  500 kB\nCommitted_AS:  3000000 kB\n"
}

fn node(root: &Path, later: u64) {
    write(root, "proc/loadavg", "0.50 1.25 2.00 3/412 9999\n");
    write(root, "proc/meminfo", &meminfo());
    let cpu = |name: &str, user: u64, idle: u64| format!("{name} {user} 0 0 {idle} 0 0 0 0 0 0\n");
    let stat = cpu("cpu ", 100 + later * 150, 900 + later * 50)
        + &cpu("cpu0", 50 + later * 100, 450)
        + &cpu("cpu1", 50 + later * 50, 450 + later * 50)
        + &format!("intr 5 1\nctxt {}\nbtime 1\nprocesses 9\nprocs_running 2\nprocs_blocked 4\n", 1_000 + later * 600);
    write(root, "proc/stat", &stat);
    let vmstat =
        format!("nr_free_pages 7\npgpgin {}\npgpgout 0\npswpin {}\npswpout 8\npgmajfault 3\n", later * 20, later * 4);
    write(root, "proc/vmstat", &vmstat);
    let line = |name: &str, bytes: u64| format!("  {name}: {bytes} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n", bytes * 2);
    let heads = "Inter-|   Receive  |  Transmit\n face |bytes |bytes\n";
    write(root, "proc/net/dev", &(heads.to_owned() + &line("lo", later * 999) + &line("eth0", 10 + later * 4_096)));
    let disk = |name: &str, sectors: u64| format!(" 8 0 {name} 5 0 {sectors} 0 5 0 {} 0 0 0 0\n", sectors * 3);
    write(root, "proc/diskstats", &(disk("sda", later * 100) + &disk("sda1", later * 100) + &disk("loop0", later * 7)));
    write(root, "sys/block/sda/size", "1");
    write(root, "sys/block/loop0/size", "1");
    write(root, "sys/class/thermal/thermal_zone0/temp", "45500\n");
    write(root, "sys/class/hwmon/hwmon0/temp1_input", "61000\n");
    write(root, "sys/class/hwmon/hwmon0/temp2_input", "-128000\n");
}

#[test]
fn every_quantity_is_read_from_the_tables() {
    let root = tempfile::tempdir().expect("a folder");
    node(root.path(), 0);
    let mut sensors = Sensors::new(root.path());
    let first = sensors.read(5 * SECOND);
    assert_eq!(first.get(Quantity::ContextSwitches), None, "no rates yet");
    node(root.path(), 1);
    let reading = sensors.read(7 * SECOND);
    for (quantity, value) in [
        (Quantity::Load1, 0.5),
        (Quantity::Load5, 1.25),
        (Quantity::Load15, 2.0),
        (Quantity::MemoryTotal, 8_000_000.0 * 1_024.0),
        (Quantity::MemoryAvailable, 5_000_000.0 * 1_024.0),
        (Quantity::NetworkIn, 2_048.0),
        (Quantity::NetworkOut, 4_096.0),
        (Quantity::DiskRead, 100.0 * 512.0 / 2.0),
        (Quantity::DiskWritten, 300.0 * 512.0 / 2.0),
        (Quantity::SwapUsed, 1_500.0 * 1_024.0),
        (Quantity::SwapIn, 2.0),
        (Quantity::SwapOut, 0.0),
        (Quantity::PagedIn, 10.0),
        (Quantity::PagedOut, 0.0),
        (Quantity::MajorFaults, 0.0),
        (Quantity::Runnable, 3.0),
        (Quantity::Blocked, 4.0),
        (Quantity::VirtualMemory, 3_000_000.0 * 1_024.0),
        (Quantity::ContextSwitches, 300.0),
        (Quantity::CpuUse, 75.0),
        (Quantity::Temperature, 61.0),
    ] {
        assert_eq!(reading.get(quantity), Some(value), "{quantity:?}");
    }
    assert_eq!(reading.cores, [100.0, 50.0]);
}

#[test]
fn what_is_missing_or_broken_is_not_there() {
    let root = tempfile::tempdir().expect("a folder");
    let mut sensors = Sensors::new(root.path());
    assert_eq!(sensors.read(0), Reading::default());
    for file in ["loadavg", "meminfo", "stat", "vmstat", "net/dev", "diskstats"] {
        for content in ["", "\n\n\n", "cpu\n", "one two\nthree\nfour", "\u{0}\u{0}"] {
            write(root.path(), &format!("proc/{file}"), content);
            sensors.read(SECOND);
        }
    }
}

#[test]
fn this_machine_has_memory_and_processors() {
    let mut sensors = Sensors::new(Path::new("/"));
    sensors.read(0);
    let reading = sensors.read(SECOND);
    assert!(reading.get(Quantity::MemoryTotal).is_some_and(|bytes| bytes > 1e7));
    assert!(!reading.cores.is_empty() && reading.get(Quantity::Load1).is_some());
}
