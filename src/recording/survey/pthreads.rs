//! Which threads of a process were made by `pthread_create`, of which the trace tells who made them: what a first pass finds out ([`crate::recording::events::pthreads`]).

use crate::recording::raw::records::Pthread;
use clc_trace::CommId;
use std::collections::{BTreeMap, BTreeSet};

/// What the first pass finds out about such threads of a process.
#[derive(Debug, Default)]
pub(crate) struct PthreadSurvey {
    /// Numbers of those of which both the creation and the beginning are recorded.
    pub known: BTreeSet<u64>,
    created: BTreeSet<u64>,
    /// By their numbers: their indices.
    begun: BTreeMap<u64, usize>,
}

impl PthreadSurvey {
    /// Takes note of a step of a thread.
    pub(crate) fn add(&mut self, thread: usize, step: &Pthread) {
        match *step {
            Pthread::Create(number) => drop(self.created.insert(number)),
            Pthread::Begin(number, _) => drop(self.begun.insert(number, thread)),
            Pthread::Created(..) | Pthread::End | Pthread::Waited(_) => {}
        }
    }

    /// Nothing more follows. The threads of teams of OpenMP are its own matter, whoever makes them.
    pub(crate) fn end(&mut self, of_openmp: &BTreeSet<usize>) {
        let begun = std::mem::take(&mut self.begun).into_iter();
        let created = std::mem::take(&mut self.created);
        let known = begun.filter(|(number, thread)| created.contains(number) && !of_openmp.contains(thread));
        self.known = known.map(|(number, _)| number).collect();
    }
}

/// The threads that a process made itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessPthreads<'a> {
    /// What is known of them.
    pub survey: &'a PthreadSurvey,
    /// The communicator of all of them, in which each has its number.
    pub contingent: CommId,
}
