//! On which address an agent listens: only on one that was asked for.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr};

/// Variables with the number of processes on this node and in the whole job: Open MPI, hydra, Slurm (numbers of nodes).
const NUMBERS: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("MPI_LOCALNRANKS", "PMI_SIZE"),
    ("SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"),
];

/// The address of the interface with this name or address. If none is wanted, that of the loopback interface if the job has one node, else that of the first
/// interface that is up.
///
/// # Errors
/// There is no such interface.
pub(super) fn address(wanted: Option<&str>) -> Result<IpAddr> {
    let interfaces = interfaces()?;
    let found = match wanted {
        Some("lo" | "loopback") => return Ok(Ipv4Addr::LOCALHOST.into()),
        Some(wanted) => interfaces
            .iter()
            .find(|(name, address, _)| name == wanted || Ok(*address) == wanted.parse() || is_in(*address, wanted)),
        None if has_one_node() => return Ok(Ipv4Addr::LOCALHOST.into()),
        None => interfaces.iter().find(|(_, _, loopback)| !loopback),
    };
    found.map(|&(_, address, _)| address.into()).ok_or_else(|| {
        let wanted = wanted.unwrap_or("that is up");
        Error::new(ErrorKind::AddrNotAvailable, format!("this node has no network interface {wanted}"))
    })
}

/// Whether an address is in a network such as `10.1.0.0/16`.
fn is_in(address: Ipv4Addr, network: &str) -> bool {
    let Some((base, bits)) = network.split_once('/') else { return false };
    let (Ok(base), Ok(bits @ 0..=32)) = (base.parse::<Ipv4Addr>(), bits.parse::<u32>()) else { return false };
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    u32::from(base) & mask == u32::from(address) & mask
}

/// Whether all processes of the job are on this node, as far as the launcher says so.
fn has_one_node() -> bool {
    let number = |name: &str| std::env::var(name).ok()?.trim().parse::<u64>().ok();
    NUMBERS.iter().any(|(here, all)| number(here).is_some_and(|here| number(all) == Some(here)))
}

/// Name and address of each interface that is up, and whether it is a loopback.
fn interfaces() -> Result<Vec<(String, Ipv4Addr, bool)>> {
    let mut found = Vec::new();
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the list is freed below; each entry, its name and its address are valid until then, and an address of this family has this type.
    unsafe {
        if libc::getifaddrs(&mut list) != 0 {
            return Err(Error::last_os_error());
        }
        let mut next = list;
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let flags = entry.ifa_flags as i32;
            if flags & libc::IFF_UP == 0 || entry.ifa_addr.is_null() {
                continue;
            }
            if i32::from((*entry.ifa_addr).sa_family) == libc::AF_INET {
                let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                let address = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                let name = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
                found.push((name, address, flags & libc::IFF_LOOPBACK != 0));
            }
        }
        libc::freeifaddrs(list);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_found_by_name_address_and_network() {
        let local: IpAddr = Ipv4Addr::LOCALHOST.into();
        for wanted in ["lo", "loopback", "127.0.0.1", "127.0.0.0/8"] {
            assert_eq!(address(Some(wanted)).unwrap(), local, "{wanted}");
        }
        for wanted in ["no-such-one", "203.0.113.1", "203.0.113.0/24", "127.0.0.0/33", ""] {
            assert!(address(Some(wanted)).is_err(), "{wanted}");
        }
        assert!(is_in([10, 1, 2, 3].into(), "10.0.0.0/8") && !is_in([11, 1, 2, 3].into(), "10.0.0.0/8"));
        assert!(is_in([10, 1, 2, 3].into(), "0.0.0.0/0"));
    }
}
