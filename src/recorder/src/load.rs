//! How busy the node is: what decides when full buffers are written.
//!
//! The load is f = a * U_cpu + b * U_link: the share of its time that the node's cores work, and the share of their capacity that its network links transfer,
//! over the last tenth of a second.

use std::time::{Duration, Instant};

/// Over at least so much time. Chosen by hand: over less, a share of the processor is noise; over more, a load that begins is noticed later.
const WINDOW: Duration = Duration::from_millis(100);

/// Capacity of a link that tells none, in bytes per second: 10 Gbit/s.
const UNKNOWN_LINK: f64 = 1.25e9;

/// What has been seen of the node.
pub(crate) struct Load {
    weights: (f64, f64),
    limit: f64,
    usage: Usage,
    value: f64,
}

impl Load {
    /// With the weights a and b and the limit below which the load is light.
    pub(crate) fn new([a, b, limit]: [f64; 3]) -> Load {
        Load { weights: (a, b), limit, usage: Usage::new(), value: 1.0 }
    }

    /// Whether the node is lightly loaded.
    pub(crate) fn is_light(&mut self) -> bool {
        if self.usage.since.elapsed() >= WINDOW {
            let [cpu, link] = self.usage.until_now();
            self.value = self.weights.0 * cpu + self.weights.1 * link;
        }
        self.value < self.limit
    }
}

/// What the node has done since it was last looked at.
pub(crate) struct Usage {
    since: Instant,
    /// Jiffies of work and of all cores, bytes of all links, and their capacity in bytes per second.
    seen: (u64, u64, u64, f64),
}

impl Usage {
    /// From now on.
    pub(crate) fn new() -> Usage {
        Usage { since: Instant::now(), seen: look() }
    }

    /// Shares of the time of all cores that was work, and of what the links could have transferred, since it was last looked at: 0 to 1.
    pub(crate) fn until_now(&mut self) -> [f64; 2] {
        let (passed, now) = (self.since.elapsed(), look());
        let share = |part: u64, whole: f64| if whole > 0.0 { (part as f64 / whole).min(1.0) } else { 0.0 };
        let cpu = share(now.0.saturating_sub(self.seen.0), now.1.saturating_sub(self.seen.1) as f64);
        let link = share(now.2.saturating_sub(self.seen.2), now.3 * passed.as_secs_f64());
        (self.since, self.seen) = (Instant::now(), now);
        [cpu, link]
    }
}

fn look() -> (u64, u64, u64, f64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (work, all) = cores(&read("/proc/stat"));
    let (mut bytes, mut capacity) = (0, 0.0);
    for (name, transferred) in links(&read("/proc/net/dev")) {
        // In Mbit/s; links that are down or virtual have none.
        let speed: f64 = read(&format!("/sys/class/net/{name}/speed")).trim().parse().unwrap_or(0.0);
        bytes += transferred;
        capacity += if speed > 0.0 { speed * 1.25e5 } else { UNKNOWN_LINK };
    }
    (work, all, bytes, capacity)
}

/// Jiffies of work, and of all: the first line of `/proc/stat`.
fn cores(stat: &str) -> (u64, u64) {
    let line = stat.lines().next().unwrap_or_default();
    let times: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let all: u64 = times.iter().sum();
    // Idle, and waiting for devices.
    let idle: u64 = times.iter().skip(3).take(2).sum();
    (all - idle, all)
}

/// Names of links and bytes that they have transferred, of `/proc/net/dev`.
fn links(table: &str) -> impl Iterator<Item = (&str, u64)> {
    table.lines().skip(2).filter_map(|line| {
        let (name, rest) = line.trim().split_once(':')?;
        let numbers: Vec<u64> = rest.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (name != "lo").then_some((name, numbers.first()?.max(numbers.get(8)?).to_owned()))
    })
}
