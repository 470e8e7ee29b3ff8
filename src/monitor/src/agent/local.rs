//! The processes of the job on this node.

use super::ends::ProcessEnds;
use crate::stacks::StackRequest;
use crate::state::{Life, RankState, StateFile, layout};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// For so long after a directory was changed, another change may have the same time: file systems note the time of a tick of the kernel, 10 ms at most. Chosen by hand: longer looks at it once
/// or twice more for nothing.
const TICK: Duration = Duration::from_millis(50);

/// The processes of the job on this node, by their state files.
pub(super) struct Local {
    directory: PathBuf,
    /// When the directory was changed as of the last look at what is in it; none if it has to be looked at again.
    changed: Option<SystemTime>,
    host: String,
    files: BTreeMap<u32, StateFile>,
    ends: ProcessEnds,
    /// What was last seen of each.
    seen: BTreeMap<u32, RankState>,
}

impl Local {
    /// Of the state files in a directory, which need not be there yet.
    pub(super) fn new(directory: &Path, host: &str) -> Local {
        Local {
            directory: directory.to_owned(),
            changed: None,
            host: host.to_owned(),
            files: BTreeMap::new(),
            ends: ProcessEnds::start(),
            seen: BTreeMap::new(),
        }
    }

    /// Looks for new processes.
    fn look_for_new(&mut self) {
        let changed = self.directory.metadata().and_then(|about| about.modified()).ok();
        if changed.is_some() && changed == self.changed {
            return;
        }
        // One that comes now may leave the time as it is.
        let settled = changed.filter(|changed| changed.elapsed().is_ok_and(|age| age > TICK));
        let mut complete = true;
        let entries = self.directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| path.extension().is_some_and(|extension| extension == layout::EXTENSION)) {
            let process = path.file_stem().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0);
            if self.files.contains_key(&process) {
                continue;
            }
            match StateFile::open(&path, &self.host) {
                Ok(file) => {
                    self.ends.watch(process);
                    self.files.insert(process, file);
                }
                // One that is not complete yet comes later.
                Err(_) => complete = false,
            }
        }
        self.changed = settled.filter(|_| complete);
    }

    /// Looks for new processes, and at those that are known.
    pub(super) fn look(&mut self) {
        self.look_for_new();
        for (process, file) in &mut self.files {
            file.ended(self.ends.of(*process));
            if let Ok(state) = file.pulse() {
                self.seen.insert(*process, state);
            }
        }
    }

    /// Number of processes that were seen.
    pub(super) fn count(&self) -> usize {
        self.seen.len()
    }

    /// Number of those that live.
    pub(super) fn alive(&self) -> usize {
        self.seen.values().filter(|state| state.life != Life::Gone).count()
    }

    /// When the last call of MPI ended here that has done something: seconds since 1970.
    pub(super) fn quiet(&self) -> f64 {
        self.seen.values().map(|state| state.moved.max(state.phase_since)).fold(0.0, f64::max)
    }

    /// Ranks that are here.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.seen.values().filter_map(|state| state.rank).collect();
        ranks.sort_unstable();
        ranks
    }

    /// The processes of these ranks, as far as they are here.
    pub(super) fn processes(&self, ranks: &[u32]) -> Vec<StackRequest> {
        let known = self.seen.iter().filter_map(|(process, state)| Some((state.rank?, self.files.get(process)?)));
        let wanted = known.filter(|(rank, _)| ranks.contains(rank));
        wanted.map(|(rank, file)| StackRequest { rank, process: file.process(), started: file.started() }).collect()
    }

    /// What all of them do, without their communicators.
    pub(super) fn glance(&mut self) -> Vec<RankState> {
        self.files.values_mut().filter_map(|file| file.glance().ok()).collect()
    }

    /// What all of them do, with their places in some communicators.
    pub(super) fn states(&mut self, comms: &BTreeSet<u64>) -> Vec<RankState> {
        self.look();
        self.files.values_mut().filter_map(|file| file.look(comms).ok()).collect()
    }

    /// Removes the state files.
    pub(super) fn remove(&self) {
        for file in self.files.values() {
            let _ = std::fs::remove_file(file.path());
        }
        let _ = std::fs::remove_file(self.directory.join("agent"));
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_looked_at_again_only_if_something_may_have_come() {
        let directory = tempfile::tempdir().unwrap();
        let mut local = Local::new(directory.path(), "n0");
        local.look();
        assert_eq!(local.changed, None, "it has only just been made");
        std::thread::sleep(2 * TICK);
        local.look();
        assert!(local.changed.is_some());
        // Not complete: it may be later, which the time of the directory does not show.
        std::fs::write(directory.path().join("7.state"), b"").unwrap();
        std::thread::sleep(2 * TICK);
        local.look();
        assert_eq!((local.changed, local.count()), (None, 0));
        std::fs::remove_dir_all(directory.path()).unwrap();
        local.look();
        assert_eq!(local.changed, None);
    }
}
