//! Peak memory of this process.

/// The largest amount of memory that this process has had resident so far, in bytes (VmHWM of `/proc/self/status`);
/// zero where the system does not tell.
pub fn peak_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|status| peak_of(&status)).unwrap_or(0)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_linux_is_read() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n"), Some(12_345 * 1024));
        assert_eq!(peak_of("Name:\tx\n"), None);
        assert_eq!(peak_of("VmHWM: many kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_a_peak() {
        assert!(peak_bytes() > 100_000);
    }
}
