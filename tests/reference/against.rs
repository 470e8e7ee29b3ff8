//! The program against the oracle: the same trace through both, in memory but for the archive.

use super::backward::backward;
use super::common::{self, Constants, common};
use super::forward::{Control, forward_of, lamport_advance};
use super::matching::{Rules, matching};
use super::model::{PerLocation, Recorded, Trace, attributes};
use clc_clock::Method;
use clc_engine::comm::local::LocalTransport;
use clc_engine::comm::{ReduceOp, Transport};
use clc_engine::matching::collectives::fences::Fences;
use clc_engine::replay::clock_condition::check_clock_condition;
use clc_engine::replay::correct::correct;
use clc_engine::replay::dataflow;
use clc_engine::replay::program::Program;
use clc_otf2::{ArchiveWriter, CreateOptions};
use clc_replay::pipeline::load::{LoadOptions, load};
use clc_replay::pipeline::open::open;
use clc_replay::report::Warnings;
use clc_trace::progress::Silent;
use clc_trace::workers::Workers;
use clc_trace::{AcceleratorReference, ClockOffset, Error, Event, EventNumber, Fraction, Position, Result, Ticks};
use controlled_logical_clock::latency::MinimumLatency;
use controlled_logical_clock::semantics::CollectiveClass;
use controlled_logical_clock::{Centre, CorrectionForm, Decay, ErrorLimit, Parameters, Slope};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many runs used the canonical replay (blocking operations, one rank per process).
pub(crate) static CANONICAL: AtomicUsize = AtomicUsize::new(0);

/// Writes `trace` as an OTF2 archive into `directory`, which must not exist.
pub(crate) fn write(trace: &Trace, directory: &Path) {
    write_with(trace, directory, |_, _| Vec::new());
}

/// The same with the recorded clock offsets of each process and location.
pub(crate) fn write_with(trace: &Trace, directory: &Path, offsets: impl Fn(usize, usize) -> Vec<ClockOffset>) {
    let definitions = trace.definitions();
    let archive = ArchiveWriter::create(directory, "traces", CreateOptions::default()).unwrap();
    let mut counts = HashMap::new();
    for (p, process) in trace.processes.iter().enumerate() {
        for (l, events) in process.locations.iter().enumerate() {
            let id = trace.location_id(p, l);
            archive.local_definitions(id, &offsets(p, l)).unwrap();
            let mut file = archive.events(id).unwrap();
            for (number, recorded) in events.iter().enumerate() {
                let time = recorded.time as u64;
                // MeasurementOnOff stands for all records that are not interpreted.
                let stream = trace.references.get(&(p, l, number)).map(|&stream| trace.location_id(p, stream));
                let refers =
                    AcceleratorReference { stream, event: trace.event_references.get(&(p, l, number)).copied() };
                match recorded.event {
                    Event::Other => file.raw(time, 11, &[1]).unwrap(),
                    event => file.event_with_references(time, &event, &attributes(), refers).unwrap(),
                }
            }
            counts.insert(id, file.finish().unwrap());
        }
    }
    archive.finish(&definitions, &counts).unwrap();
}

/// What the program makes of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub least_advance: i64,
    /// 1 - γ of the last pass.
    decay: u64,
    /// Corrected time of every event, `[process][location][number]`, of the processes that this rank hosts.
    pub times: PerLocation,
    /// Violations before and after.
    pub violated: (u64, u64),
    canonical: bool,
    /// What this rank received: messages, implied orders, and what of both contradicts the rest, with the communicators that do.
    pub received: [u64; 3],
    /// Instances of collective operations that constrain somebody.
    pub instances: u64,
    /// Locations with timelines of their own, as process and location.
    pub own: Vec<(u32, u32)>,
}

fn run(
    transport: &mut dyn Transport,
    path: &Path,
    trace: &Trace,
    parameters: &Parameters,
    rules: &Rules,
) -> Result<Outcome> {
    let opened = open(transport, path)?;
    let options = LoadOptions {
        presync: Method::Linear,
        latency: parameters.latency,
        alltoallv: rules.vector_all_to_all,
        handles: rules.handles,
        fences: rules.fences,
        separation: parameters.minimum_separation,
    };
    let loaded = load(transport, &opened, &options, &Silent, &mut Warnings::default())?;
    // Threads change nothing, however many there are.
    let workers = Workers::new(NonZero::new(3).unwrap());
    let before = check_clock_condition(transport, workers, &loaded.program, &loaded.program.times())?;
    rehearsal(transport, &loaded.program)?;
    let earliest = loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
    let (passes, result) = correct(transport, workers, &loaded.program, parameters, earliest, &Silent, &mut |_| {})?;
    let decay = passes.passes.last().map_or(0, |pass| pass.decay.bits());
    let after = check_clock_condition(transport, workers, &loaded.program, &result.times(&loaded.program))?;
    let hosted = opened.placement.hosted_by(transport.rank());
    let mut times: PerLocation =
        hosted.clone().map(|process| vec![Vec::new(); trace.processes[process].locations.len()]).collect();
    // Locations of a process may have timelines of their own.
    for ((ids, correction), own) in loaded.program.locations.iter().zip(&result.corrections).zip(&loaded.locations) {
        for ((place, id), own) in (0..).zip(ids).zip(own) {
            // Events of one time may be in layers.
            let layer = |number: EventNumber, recorded: u64| {
                let last = own.ties.iter().rfind(|tie| tie.number <= number);
                last.filter(|tie| tie.recorded == recorded).map_or(0, |tie| tie.layer)
            };
            for process in hosted.clone() {
                for (l, events) in trace.processes[process].locations.iter().enumerate() {
                    if trace.location_id(process, l) == *id {
                        let map = |(number, recorded): (usize, &Recorded)| {
                            let (time, number) = (Ticks(recorded.time), EventNumber::after(number as u64));
                            let layer = layer(number, recorded.time as u64);
                            correction.map(Position { time, location: place, number }.in_layer(layer)).0
                        };
                        times[process - hosted.start][l] = events.iter().enumerate().map(map).collect();
                    }
                }
            }
        }
    }
    let counts = &loaded.program.messages.counts;
    let operations = loaded.program.collectives.counts.contradicted.len() as u64;
    Ok(Outcome {
        least_advance: passes.least_advance.0,
        times,
        violated: (before.violated(), after.violated()),
        canonical: passes.groups.is_some(),
        decay,
        received: [counts.matched, counts.implied, counts.contradicted.values().sum::<u64>() + operations],
        instances: loaded.program.collectives.counts.by_op.values().map(|counts| counts.matched).sum(),
        own: loaded.own.iter().map(|own| (own.of.0, own.location)).collect(),
    })
}

/// A rehearsal that gets through has the largest advance of the plain Lamport clock, but with prefix operations.
fn rehearsal(transport: &mut dyn Transport, program: &Program) -> Result<()> {
    let mut instances = program.collectives.comms.iter().flat_map(|comm| &comm.instances);
    let mut prefix = [i64::from(instances.any(|instance| instance.class == CollectiveClass::Prefix))];
    transport.all_reduce(ReduceOp::Max, &mut prefix)?;
    if let Some(advance) = dataflow::rehearse(transport, program)?.filter(|_| prefix[0] == 0) {
        assert_eq!(advance, dataflow::replay(transport, program, dataflow::LAMPORT)?.largest_advance);
    }
    Ok(())
}

/// Runs the program on `ranks` threads and puts the processes together again.
pub(crate) fn on_ranks(
    ranks: usize,
    path: &Path,
    trace: &Trace,
    parameters: &Parameters,
    rules: &Rules,
) -> Result<Outcome> {
    let outcomes: Vec<Result<Outcome>> = std::thread::scope(|scope| {
        let threads: Vec<_> = LocalTransport::world(ranks)
            .into_iter()
            .map(|mut transport| scope.spawn(move || run(&mut transport, path, trace, parameters, rules)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // A failure is everybody's.
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    assert!(failed == 0 || failed == ranks, "{failed} of {ranks} ranks failed");
    let outcomes: Vec<Outcome> = outcomes.into_iter().collect::<Result<_>>()?;
    let mut outcomes = outcomes.into_iter();
    let mut whole = outcomes.next().unwrap();
    for part in outcomes {
        assert_eq!(
            (part.least_advance, part.violated, part.canonical, part.decay, &part.own),
            (whole.least_advance, whole.violated, whole.canonical, whole.decay, &whole.own)
        );
        whole.times.extend(part.times);
        whole.instances += part.instances;
        whole.received.iter_mut().zip(part.received).for_each(|(sum, part)| *sum += part);
    }
    Ok(whole)
}

/// Parameters of one case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    pub decay: u64,
    pub slope: u64,
    pub delta: i64,
    pub same_node: i64,
    pub other_node: i64,
    pub alltoallv: bool,
    /// The publication's form, or the common time by the mean or median.
    pub form: CorrectionForm,
    pub median: bool,
    /// Which fences synchronise.
    pub fences: Fences,
    /// Whether making communicators does.
    pub handles: bool,
}

/// Both have to come to the same times on any number of `ranks`, or both find that the trace contradicts itself. Returns whether there were
/// times to compare.
pub(crate) fn compare(trace: &Trace, choice: Choice, ranks: &[usize]) -> std::result::Result<bool, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(trace, &path);
    let rules = Rules {
        same_node: choice.same_node,
        other_node: choice.other_node,
        vector_all_to_all: choice.alltoallv,
        fences: choice.fences,
        handles: choice.handles,
    };
    let parameters = Parameters {
        latency: MinimumLatency { same_node: Ticks(choice.same_node), other_node: Ticks(choice.other_node) },
        decay: Decay::from_units(choice.decay).unwrap(),
        slope: Slope::from_ratio(choice.slope, Fraction::ONE.bits()).unwrap(),
        minimum_separation: Ticks(choice.delta),
        max_passes: 1,
        form: choice.form,
        centre: if choice.median { Centre::Median } else { Centre::Mean },
        ..Parameters::default()
    };

    let times = trace.times();
    let control = Control { decay: choice.decay as i64, delta: choice.delta };
    // Fences that are only taken for barriers are none in a trace that contradicts itself otherwise.
    let contradicts = |rules: &Rules| forward_of(trace, &matching(trace, rules).dependencies, control).is_err();
    let oracle_rules = match rules.fences {
        Fences::Auto if contradicts(&rules) => Rules { fences: Fences::Operations, ..rules },
        _ => rules,
    };
    let matching = matching(trace, &oracle_rules);
    let dependencies = &matching.dependencies;
    let Ok(oracle) = forward_of(trace, dependencies, control) else {
        for &ranks in ranks {
            match on_ranks(ranks, &path, trace, &parameters, &rules) {
                Err(Error { message, .. }) if message.contains("is contradictory") => {}
                // Or it lies in what was inferred where records are missing, or in an order of threads that only clocks tell: the program takes that back, the oracle does not.
                Ok(outcome) if outcome.received[2] > 0 && outcome.violated.1 == 0 => {}
                other => return Err(format!("a trace that contradicts itself, on {ranks} ranks: {other:?}")),
            }
        }
        return Ok(false);
    };
    let least_advance = lamport_advance(&times, dependencies).unwrap();
    let constants = |most, max_error| Constants {
        control,
        slope: choice.slope as i64,
        passes: common::Passes { most, max_error },
        median: choice.median,
    };
    let expected = trace.split(&match choice.form {
        CorrectionForm::Paper => backward(&times, dependencies, &oracle, choice.slope as i64).corrected,
        CorrectionForm::Common => common(trace, &matching, constants(1, 3 << 39)).0,
    });

    for &ranks in ranks {
        let outcome = on_ranks(ranks, &path, trace, &parameters, &rules).map_err(|error| format!("{error}"))?;
        CANONICAL.fetch_add(usize::from(outcome.canonical), Ordering::Relaxed);
        let what = format!("on {ranks} ranks (canonical: {})", outcome.canonical);
        if outcome.least_advance != least_advance {
            return Err(format!("D0 {what}: {}, expected {least_advance}", outcome.least_advance));
        }
        if outcome.times != expected {
            return Err(format!("times {what}: {:?}, expected {expected:?}", outcome.times));
        }
        if outcome.violated.1 != 0 {
            return Err(format!("{} violations {what}", outcome.violated.1));
        }
    }

    // Several passes: the first is replayed with the plain Lamport clock, the others without.
    let parameters = Parameters { max_passes: 3, max_error: ErrorLimit::from_ratio(1, 1).unwrap(), ..parameters };
    let mut expected = BTreeMap::new();
    for &ranks in ranks {
        let outcome = on_ranks(ranks, &path, trace, &parameters, &rules).map_err(|error| format!("{error}"))?;
        let expected = expected.entry(outcome.decay).or_insert_with(|| {
            if choice.form == CorrectionForm::Common {
                let (times, decay) = common(trace, &matching, constants(3, 1 << 40));
                assert!(least_advance == 0 || decay as u64 == outcome.decay, "{decay} is not {}", outcome.decay);
                return trace.split(&times);
            }
            let control = Control { decay: outcome.decay as i64, ..control };
            let oracle = forward_of(trace, dependencies, control).unwrap();
            trace.split(&backward(&times, dependencies, &oracle, choice.slope as i64).corrected)
        });
        if outcome.times != *expected {
            return Err(format!(
                "times after several passes on {ranks} ranks: {:?}, expected {expected:?}",
                outcome.times
            ));
        }
    }
    if expected.len() != 1 {
        return Err(format!("the last pass depends on the number of ranks: {:?}", expected.keys()));
    }
    Ok(true)
}
