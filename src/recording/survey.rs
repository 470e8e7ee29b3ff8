//! The first pass over the records of a process: its communicators, which functions it called, when, and how it ended.

use super::communicators::{Communicators, Identity, Making, Members};
use super::format::{Effect, FINISHED, Function, STOPPED};
use super::merge::Merge;
use super::raw::RawFile;
use super::records::{Given, Record};
use crate::trace::Result;
use std::collections::BTreeSet;

/// What the first pass finds out about a process.
#[derive(Debug, Default)]
pub struct Survey {
    /// The communicators that it was a member of, in the order of their creation.
    pub communicators: Vec<(Identity, Option<Members>)>,
    /// The functions that it called: their numbers.
    pub functions: BTreeSet<usize>,
    /// Readings of its counter at its first and last event.
    pub span: Option<(u64, u64)>,
    /// How it ended, if not as it should have.
    pub end: Option<String>,
    /// What cannot be read.
    pub damage: Vec<String>,
}

/// A call that has begun: its function, and the handle and the identity of a communicator that it frees.
type Open = (usize, Option<(u64, Identity)>);

/// Surveys the files of one process, the one of its first thread first.
///
/// # Errors
/// None so far: what is damaged is reported.
pub fn survey(files: &[&RawFile], functions: &[Function<'static>]) -> Result<Survey> {
    let mut survey = Survey::default();
    let Some(first) = files.first() else { return Ok(survey) };
    let header = &first.header;
    let mut communicators = Communicators::new(header.world, header.own, header.rank);
    let mut making: Vec<Option<Making>> = vec![None; files.len()];
    let mut open: Vec<Option<Open>> = vec![None; files.len()];
    let mut merge = Merge::new(files, functions);
    merge.each(|thread, time, record| {
        let (Some(making), Some(open)) = (making.get_mut(thread), open.get_mut(thread)) else { return Ok(()) };
        let (begin, _) = survey.span.unwrap_or((time, time));
        survey.span = Some((begin, time));
        match record {
            Record::Enter(function, _, given) => {
                survey.functions.insert(function);
                let effect = functions.get(function).map_or(Effect::Region, |function| function.effect);
                let mut freed = None;
                match (effect, given) {
                    (Effect::CommFree, Given::Comm(handle)) => {
                        freed = communicators.get(handle).map(|known| (handle, known.identity.clone()));
                    }
                    (effect, Given::Comm(handle)) if makes(effect) => {
                        *making = Some(communicators.begin(effect, handle));
                    }
                    _ => {}
                }
                *open = Some((function, freed));
            }
            Record::Leave(..) => {
                if let Some((_, Some((handle, identity)))) = open.take() {
                    communicators.remove(handle, &identity);
                }
            }
            Record::Failed(_) => *open = None,
            Record::Comm(new) => {
                if let Some(making) = making {
                    survey.communicators.extend(communicators.add(making, new));
                }
            }
        }
        Ok(())
    })?;
    survey.damage = std::mem::take(&mut merge.damage);
    let within = open.iter().flatten().next().and_then(|(function, _)| functions.get(*function));
    let within = within.map_or_else(|| "outside of MPI".to_owned(), |function| format!("in MPI_{}", function.name));
    survey.end = match header.state {
        FINISHED => None,
        STOPPED => Some(format!("stopped recording {within}: there was no more room")),
        _ => Some(format!("ended {within}, without MPI_Finalize")),
    };
    Ok(survey)
}

/// Whether a function makes a communicator.
pub fn makes(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::CommCreate
            | Effect::CommIdup
            | Effect::CommCreateGroup
            | Effect::IntercommCreate
            | Effect::IntercommMerge
    )
}
