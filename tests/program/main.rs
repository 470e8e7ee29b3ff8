//! The program and its library, from outside: everything but what needs a main function or an allocator of its own.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/mutate.rs"]
mod mutate;
#[path = "../mpi_transport/operations.rs"]
mod operations;
#[path = "../otf2_sample/mod.rs"]
mod otf2_sample;
#[path = "../reference/mod.rs"]
mod reference;

mod accelerators;
mod analyze;
mod bad_options;
mod by_hand;
mod clock_offsets;
mod emulated_nodes;
mod examples;
mod export;
mod half_recorded;
mod handles;
mod judges;
mod known_truth;
mod local_transport;
mod many_communicators;
mod missing_records;
mod mpi_runs;
mod native_damage;
mod native_format;
mod node_faults;
mod otf2_damage;
mod otf2_roundtrip;
mod patterns_beyond_messages;
mod presync_choice;
mod presync_faults;
mod presync_models;
mod recorder;
mod reference_selftest;
mod replay_reference;
mod replays_in_a_row;
mod report_page;
mod threads;
mod threads_in_turns;
mod threads_reference;
mod warnings;
mod windows_and_groups;
