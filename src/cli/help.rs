//! The longer texts of `--help`. It should teach the program to someone who has a trace and five minutes.

pub(super) const ABOUT: &str = "\
Corrects the timestamps of an MPI event trace (OTF2, as Score-P or EZTrace write it).

The clocks of the nodes of a parallel computer disagree, so a trace may show messages that were received before they \
were sent. clc-replay replays the recorded communication, moves every receive after its send by the controlled logical \
clock, and smooths the events around it. It writes the same trace with corrected timestamps and nothing else changed, \
and checks the result. Wherever a trace is given, it may also be one in clc-replay's own format (NAME.clct), which `convert` \
makes from OTF2 and back.";

pub(super) const SHORT: &str = "\
Examples:
  clc-replay traces/run1                 correct a trace, write traces/run1-clc
  mpirun -n 64 clc-replay traces/run1    the same, on 64 processes
  clc-replay check traces/run1           only count violations

`--help` says more about every option.";

pub(super) const LONG: &str = "\
Examples:
  clc-replay traces/run1
      Correct a trace, write traces/run1-clc. One process can handle a trace of any number of processes.
  mpirun -n 64 clc-replay traces/run1
      The same on 64 processes, bit for bit. As many as the application had are best; fewer will do.
  clc-replay --latency same-node=300ns,other-node=1.2us -o fixed traces/run1
      Nothing travels faster than the network: receives keep these distances to their sends.
  clc-replay --dry-run --report result.json traces/run1
      See what would be done, write nothing but the report.
  clc-replay --html report.html traces/run1
      Also make a page to look at: clock errors, violations, the worst ones before and after.
  clc-replay check traces/run1-clc
      Count violations in any trace.
  clc-replay analyze traces/run1
      Waiting times and critical path, before and after the correction.
  clc-replay info traces/run1
      What is in the trace, and how far its clocks drift.
  clc-replay export traces/run1-clc --window 1.2s:1.3s -o window.json
      A part of a trace for Perfetto; violations as CSV, too.
  clc-replay record -o traces/run1 -- mpirun -n 4 ./app
      Record a trace of an MPI application, as it is.
  clc-replay convert traces/run1 run1.clct
      The trace in the program's own compact format; every command takes both.
  clc-replay ./check
      Correct a trace in a directory that is named like a subcommand.

Exit status:
  0  no violations: there were none, or all are corrected, and the result has been verified
  1  violations remain (check: the trace has violations)
  2  an error; no corrected trace was written, unless the line says so
  3  no violation is left in what was checked, but that is less than 90 % of the communication in the trace,
     or nothing; a corrected trace was written all the same

Read on: docs/report.md explains every number of the report.";

pub(super) const CHECK: &str = "\
Counts the violations of the clock condition in a trace, as recorded and after pre-synchronisation. Writes nothing \
but the report.";

pub(super) const CHECK_AFTER: &str = "\
Examples:
  clc-replay check traces/run1
  clc-replay check --latency 1us --report violations.json traces/run1

Exit status:
  0  no violations after pre-synchronisation, which is what a reader of the trace sees
  1  violations
  2  an error
  3  no violation in what was checked, but that is less than 90 % of the communication in the trace, or nothing";

pub(super) const INFO: &str = "\
Describes a trace: processes, nodes, communicators, events by kind, and the clock offsets that the measurement system \
recorded, with their drift.";

pub(super) const INFO_AFTER: &str = "\
Examples:
  clc-replay info traces/run1
  clc-replay info --all --report info.json traces/run1

Exit status:
  0  the trace could be read
  2  an error";

pub(super) const SIMULATE: &str = "\
Makes a trace of a simulated application on a machine whose clocks are wrong in a known way. The true time of every event \
is kept beside it, so that `clc-replay evaluate` can tell how far any correction is from the truth.";

pub(super) const SIMULATE_AFTER: &str = "\
Examples:
  clc-replay simulate out --ranks 64 --events 100k --pattern halo2d --clock walk --seed 7
  clc-replay simulate out --pattern mix --clock 'offset=5ms,drift=20ppm,sine=20us/0.5s;3:jump=1ms@50%'
  clc-replay simulate out --measurements 0 --asymmetry 0.5    no offsets recorded, routes differ by direction

Exit status:
  0  the trace is complete
  2  an error; no trace was written, unless the line says so

Read on: docs/clocks.md has all clock models.";

pub(super) const PERTURB: &str = "\
Adds known clock errors to a recorded trace whose own clocks are good: one node's, or a corrected one. Every record is kept, \
only times change; recorded clock offsets are replaced by measurements of the wrong clocks. The original times are kept beside \
the result as the truth, for `clc-replay evaluate`.";

pub(super) const PERTURB_AFTER: &str = "\
Examples:
  clc-replay perturb traces/run1 wrong --clock ntp --nodes 4
  clc-replay perturb traces/run1-clc wrong --clock 'offset=1ms,drift=20ppm' --per-process --seed 3

Exit status:
  0  the trace is complete
  2  an error; no trace was written, unless the line says so

Read on: docs/clocks.md has all clock models.";

pub(super) const EVALUATE: &str = "\
Compares the times of a trace with the true ones: those of a simulated or perturbed trace. Tells how far events, message \
latencies, waiting times and local intervals are from the truth, after removing one common offset, as recorded, after \
pre-synchronisation, after the forward replay, and in the corrected trace.

The phases before the last are computed from the trace that was corrected, which is looked for where the truth lies. The \
forward replay is computed again with the options given here; if the corrected trace was made with others (or by another \
program), that phase is left out.";

pub(super) const EVALUATE_AFTER: &str = "\
Examples:
  clc-replay simulate out --clock sine && clc-replay out && clc-replay evaluate out-clc --truth out
  clc-replay evaluate out --truth out                       without any correction
  clc-replay evaluate fixed --truth out --plot error.svg    the result of another program, and a picture

Exit status:
  0  the comparison was made, whatever it says
  2  an error";
