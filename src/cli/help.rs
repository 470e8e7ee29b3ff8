//! The longer texts of `--help`. It should teach the program to someone who has a trace and five minutes.

pub(super) const ABOUT: &str = "\
Corrects the timestamps of an MPI event trace (OTF2, as Score-P or EZTrace write it).

The clocks of the nodes of a parallel computer disagree, so a trace may show messages that were received before they were sent. clc-replay replays the recorded communication, moves every receive after its send with the controlled logical clock, and smooths the events around it. It writes the same trace with corrected timestamps, changes nothing else, and verifies the result. All commands also accept traces in clc-replay's own format (NAME.clct); `convert` converts between it and OTF2.";

pub(super) const SHORT: &str = "\
Examples:
  clc-replay traces/run1                 correct a trace, write traces/run1-clc
  mpirun -n 64 clc-replay traces/run1    the same, on 64 processes
  clc-replay check traces/run1           only count violations

`--help` describes every option in detail.";

pub(super) const LONG: &str = "\
Examples:
  clc-replay traces/run1
      Correct a trace and write traces/run1-clc. One process can handle a trace with any number of processes.
  mpirun -n 64 clc-replay traces/run1
      The same on 64 processes, with bit-identical results. Best is the number of processes of the application; fewer also work.
  clc-replay --latency same-node=300ns,other-node=1.2us -o fixed traces/run1
      Set minimum message latencies: every receive stays at least this long after its send.
  clc-replay --dry-run --report result.json traces/run1
      Show what a correction would do, without writing anything but the report.
  clc-replay --html report.html traces/run1
      Also write a web page: clock errors, violations, and the worst ones before and after.
  clc-replay check traces/run1-clc
      Count the violations in a trace.
  clc-replay analyze traces/run1
      Waiting times and critical path, before and after the correction.
  clc-replay info traces/run1
      What is in the trace, and how far its clocks drift.
  clc-replay export traces/run1-clc --window 1.2s:1.3s -o window.json
      Export part of a trace for Perfetto, or its violations as CSV.
  clc-replay record -o traces/run1 -- mpirun -n 4 ./app
      Record a trace of an MPI application without changing it.
  clc-replay convert traces/run1 run1.clct
      Convert a trace to the compact native format; every command accepts both formats.
  clc-replay ./check
      Correct a trace in a directory that has the name of a subcommand.

Exit status:
  0  no violations: there were none, or all of them were corrected and the result was verified
  1  violations remain (check: the trace has violations)
  2  an error; no corrected trace was written, unless the message says so
  3  no violations remain in what was checked, but that is less than 90 % of the communication in the trace, or none of it; a corrected trace was still written

Every number of the report is explained in docs/report.md";

pub(super) const CHECK: &str = "\
Counts the violations of the clock condition in a trace, as recorded and after pre-synchronisation. Only the report \
is written.";

pub(super) const CHECK_AFTER: &str = "\
Examples:
  clc-replay check traces/run1
  clc-replay check --latency 1us --report violations.json traces/run1

Exit status:
  0  no violations after pre-synchronisation, which is what a reader of the trace sees
  1  violations
  2  an error
  3  no violations in what was checked, but that is less than 90 % of the communication in the trace, or none of it";

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
Generates a trace of a simulated application on a machine whose clocks are wrong in a known way. The true time of \
every event is stored with it, so that `clc-replay evaluate` can measure how far a correction is from the truth.";

pub(super) const SIMULATE_AFTER: &str = "\
Examples:
  clc-replay simulate out --ranks 64 --events 100k --pattern halo2d --clock walk --seed 7
  clc-replay simulate out --pattern mix --clock 'offset=5ms,drift=20ppm,sine=20us/0.5s;3:jump=1ms@50%'
  clc-replay simulate out --measurements 0 --asymmetry 0.5    no offsets recorded, routes differ by direction

Exit status:
  0  the trace is complete
  2  an error; no trace was written, unless the message says so

All clock models: docs/clocks.md";

pub(super) const PERTURB: &str = "\
Adds known clock errors to a recorded trace whose own clocks are good: one recorded on a single node, or a corrected \
one. Every record is kept and only times change; recorded clock offsets are replaced by measurements of the wrong \
clocks. The original times are stored with the result as the truth, for `clc-replay evaluate`. All threads of a \
process get the same clock, even if theirs differed before.";

pub(super) const PERTURB_AFTER: &str = "\
Examples:
  clc-replay perturb traces/run1 wrong --clock ntp --nodes 4
  clc-replay perturb traces/run1-clc wrong --clock 'offset=1ms,drift=20ppm' --per-process --seed 3

Exit status:
  0  the trace is complete
  2  an error; no trace was written, unless the message says so

All clock models: docs/clocks.md";

pub(super) const EVALUATE: &str = "\
Compares the times of a trace with the true ones, which `simulate`, `perturb` and `record --clock` keep. Reports how far events, message latencies, \
waiting times and local intervals are from the truth, after removing one common offset: as recorded, after \
pre-synchronisation, after the forward replay, and in the corrected trace.

All phases but the last are computed from the original trace, which is expected next to the truth. The forward replay is repeated with the options given here; if the corrected trace was made with different ones (or by another program), that phase is omitted.";

pub(super) const EVALUATE_AFTER: &str = "\
Examples:
  clc-replay simulate out --clock sine && clc-replay out && clc-replay evaluate out-clc --truth out
  clc-replay evaluate out --truth out                       without any correction
  clc-replay evaluate fixed --truth out --plot error.svg    the result of another program, and a picture

Exit status:
  0  the comparison was made, whatever the result
  2  an error";
