//! The first pass over the records of a process: its communicators, which functions it called, when, and how it ended.

pub(super) mod openmp;
pub(super) mod pthreads;

use crate::recording::communicators::{Communicators, Identity, Making, Members};
use crate::recording::polls::JoinedPollsSum;
use crate::recording::raw::RawFile;
use crate::recording::raw::format::calls::{Effect, Function};
use crate::recording::raw::format::{FINISHED, STOPPED};
use crate::recording::raw::merge::Merge;
use crate::recording::raw::records::{Given, Own, RawRecord};
use crate::recording::survey::openmp::OpenMpSurvey;
use crate::recording::survey::pthreads::PthreadSurvey;
use crate::recording::windows::{ProcessWindows, WindowKey};
use clc_trace::{MpiRank, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the first pass finds out about a process.
#[derive(Debug, Default)]
pub(super) struct ProcessSurvey {
    /// The communicators that it was a member of, in the order of their creation.
    pub communicators: Vec<(Identity, Option<Members>)>,
    /// The names that it has given to communicators: the last one of each.
    pub comm_names: BTreeMap<Identity, String>,
    /// The windows that it had a part of, and the names that it has given them.
    pub windows: BTreeMap<WindowKey, String>,
    /// Groups that it has named on windows: global ranks.
    pub groups: BTreeSet<Arc<[MpiRank]>>,
    /// Addresses of functions of the program that it was in.
    pub addresses: BTreeSet<u64>,
    /// Names of regions and markers of the program's own.
    pub own_regions: BTreeSet<Arc<str>>,
    /// Names of its metrics.
    pub metrics: BTreeSet<Arc<str>>,
    /// The functions that it called, by their numbers: how often.
    pub functions: BTreeMap<usize, u64>,
    /// The calls that failed: index of the thread, and which of its calls it was, counted from 1.
    pub failed: BTreeSet<(usize, u64)>,
    /// What its threads did by OpenMP.
    pub openmp: OpenMpSurvey,
    /// The threads that it made itself.
    pub pthreads: PthreadSurvey,
    /// Polls in vain that were joined.
    pub joined: JoinedPollsSum,
    /// Readings of its counter at its first and last event.
    pub span: Option<(u64, u64)>,
    /// How it ended, if not as it should have.
    pub end: Option<String>,
    /// What cannot be read.
    pub damage: Vec<String>,
}

/// A call that has begun, as far as the survey needs it.
struct SurveyedCall {
    function: usize,
    /// Handle and identity of a communicator that it frees.
    freed: Option<(u64, Identity)>,
    /// Handle of a window that it frees.
    freed_window: Option<u64>,
    /// A window that it makes.
    window: Option<WindowKey>,
}

/// Surveys the files of one process, the one of its first thread first.
///
/// # Errors
/// None so far: what is damaged is reported.
pub(super) fn survey(files: &[&RawFile], functions: &[Function<'static>]) -> Result<ProcessSurvey> {
    let Some(first) = files.first() else { return Ok(ProcessSurvey::default()) };
    let header = &first.header;
    let mut reading = Reading {
        survey: ProcessSurvey::default(),
        functions,
        communicators: Communicators::new(header.world, header.own, header.rank),
        windows: ProcessWindows::default(),
        threads: files.iter().map(|_| ReadThread::default()).collect(),
    };
    let mut merge = Merge::new(files, functions);
    merge.each(|thread, time, record| {
        reading.record(thread, time, record);
        Ok(())
    })?;
    let Reading { mut survey, threads, .. } = reading;
    survey.openmp.end();
    survey.pthreads.end(&survey.openmp.threads);
    survey.damage = std::mem::take(&mut merge.damage);
    let within = threads.iter().find_map(|thread| thread.open.as_ref()).and_then(|open| functions.get(open.function));
    // A poll that would have been joined with others is not known before it is over.
    let outside =
        if threads.iter().any(|thread| thread.polls) { "outside of MPI, or in a poll" } else { "outside of MPI" };
    let within = within.map_or_else(|| outside.to_owned(), |function| format!("in MPI_{}", function.name));
    survey.end = match header.state {
        FINISHED => None,
        STOPPED => Some(format!("stopped recording {within}: its files could not be written any more")),
        _ => Some(format!("ended {within}, without MPI_Finalize")),
    };
    Ok(survey)
}

/// What a thread is doing while the records of its process are read.
#[derive(Default)]
struct ReadThread {
    /// A communicator that it makes.
    making: Option<Making>,
    /// The call that it is in.
    open: Option<SurveyedCall>,
    /// How many it has begun.
    calls: u64,
    /// The last thing it did were polls in vain that were joined.
    polls: bool,
}

/// A process while its records are read.
struct Reading<'a> {
    survey: ProcessSurvey,
    functions: &'a [Function<'static>],
    communicators: Communicators,
    windows: ProcessWindows,
    threads: Vec<ReadThread>,
}

impl Reading<'_> {
    fn record(&mut self, number: usize, time: u64, record: RawRecord) {
        let Some(thread) = self.threads.get_mut(number) else { return };
        let survey = &mut self.survey;
        let (begin, _) = survey.span.unwrap_or((time, time));
        survey.span = Some((begin, time));
        thread.polls = matches!(record, RawRecord::PollsEnd(_));
        match record {
            RawRecord::Enter(function, _, given) => self.enter(number, function, given),
            RawRecord::Leave(..) => {
                if let Some(SurveyedCall { freed, freed_window, .. }) = thread.open.take() {
                    if let Some((handle, identity)) = freed {
                        self.communicators.remove(handle, &identity);
                    }
                    freed_window.and_then(|handle| self.windows.remove(handle));
                }
            }
            RawRecord::Window(handle) => {
                if let Some(key) = thread.open.as_mut().and_then(|open| open.window.take()) {
                    survey.windows.entry(key.clone()).or_default();
                    self.windows.add(handle, key, false);
                }
            }
            RawRecord::CommName(handle, name) => {
                if let Some(known) = self.communicators.get(handle) {
                    survey.comm_names.insert(Arc::clone(&known.identity), name);
                }
            }
            RawRecord::WindowName(handle, name) => {
                if let Some(window) = self.windows.get_mut(handle) {
                    survey.windows.insert(window.key.clone(), name);
                }
            }
            RawRecord::Own(_, own) => match own {
                Own::Function(address) | Own::FunctionEnd(address) => survey.addresses.extend([address]),
                Own::Region(name) | Own::RegionEnd(name) | Own::Marker(name) => survey.own_regions.extend([name]),
                Own::Metric(name, _) => survey.metrics.extend([name]),
            },
            RawRecord::OpenMp(_, step) => survey.openmp.add(number, &step),
            RawRecord::Pthread(_, step) => survey.pthreads.add(number, &step),
            RawRecord::Polls(_, polls) => survey.joined.add(&JoinedPollsSum::of(&polls)),
            RawRecord::PollsEnd(_) => {}
            RawRecord::Failed(_) => {
                thread.open = None;
                survey.failed.insert((number, thread.calls));
            }
            RawRecord::Comm(new) => {
                if let Some(making) = &mut thread.making {
                    survey.communicators.extend(self.communicators.add(making, new));
                }
            }
        }
    }

    /// A call begins.
    fn enter(&mut self, thread: usize, function: usize, given: Given) {
        let Some(thread) = self.threads.get_mut(thread) else { return };
        let communicators = &mut self.communicators;
        *self.survey.functions.entry(function).or_default() += 1;
        thread.calls += 1;
        let effect = self.functions.get(function).map_or(Effect::Region, |function| function.effect);
        let mut begun = SurveyedCall { function, freed: None, freed_window: None, window: None };
        match (effect, given) {
            (Effect::CommFree, Given::Comm(handle)) => {
                begun.freed = communicators.get(handle).map(|known| (handle, known.identity.clone()));
            }
            (Effect::WinCreate | Effect::WinAllocate, Given::Comm(handle)) => {
                begun.window = self.windows.begin(communicators.get(handle).map(|known| Arc::clone(&known.identity)));
            }
            (Effect::WinFree, Given::Window(handle, ..)) => begun.freed_window = Some(handle),
            (_, Given::Epoch(_, group)) => {
                self.survey.groups.insert(Arc::from(group));
            }
            (effect, Given::Comm(handle)) if makes(effect) => {
                thread.making = Some(communicators.begin(effect, handle, 0));
            }
            (effect, Given::Group(handle, tag)) => {
                thread.making = Some(communicators.begin(effect, handle, tag));
            }
            _ => {}
        }
        thread.open = Some(begun);
    }
}

/// Whether a function makes a communicator.
pub(super) fn makes(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::CommCreate
            | Effect::CommIdup
            | Effect::CommCreateGroup
            | Effect::IntercommCreate
            | Effect::IntercommMerge
    )
}
