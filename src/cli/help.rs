//! The longer texts of `--help`. It should teach the program to someone who has a trace and five minutes.

pub(super) const ABOUT: &str = "\
Corrects the timestamps of an MPI event trace (OTF2, as Score-P or EZTrace write it).

The clocks of the nodes of a parallel computer disagree, so a trace may show messages that were received before they \
were sent. clc-replay replays the recorded communication, moves every receive after its send by the controlled logical \
clock, and smooths the events around it. It writes the same trace with corrected timestamps and nothing else changed, \
and checks the result.";

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
  clc-replay check traces/run1-clc
      Count violations in any trace.
  clc-replay info traces/run1
      What is in the trace, and how far its clocks drift.
  clc-replay ./check
      Correct a trace in a directory that is named like a subcommand.

Exit status:
  0  no violations: there were none, or all are corrected, and the result has been verified
  1  violations remain (check: the trace has violations)
  2  an error; no corrected trace was written

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
  2  an error";

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
