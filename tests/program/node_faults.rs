//! Nodes that die and networks that are cut, under a job that is watched: agents over live sockets on emulated nodes (`scripts/nodes`). Where the kernel forbids
//! those, the tests say so and do nothing.
#![allow(clippy::print_stdout)] // that it has been skipped, and what was measured

use crate::common::{run, with_recorder};
use crate::emulated_nodes::{build, nodes, possible};
use clc_monitor::clocks::log::{self, ClockLogEntry, Name};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `node_faults.py` says of four nodes.
fn faults(what: &str, directory: &Path, more: &[&Path]) -> Value {
    let mut command = nodes(4);
    command.arg("--").arg("/usr/bin/python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/node_faults.py"));
    command.arg(what).arg(with_recorder()).arg(directory).args(more);
    let said = run(&mut command).expect(0, what);
    serde_json::from_str(&said.stdout).expect("JSON")
}

#[track_caller]
fn holds(said: &Value, parts: &[&str]) {
    let sentence = said["sentence"].as_str().expect("a sentence");
    assert!(parts.iter().all(|part| sentence.contains(part)), "{sentence}");
}

#[test]
fn a_node_that_dies_is_named() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let app = build("mpicc.openmpi", "hangs", directory.path());
    let said = faults("dead", directory.path(), &[&app]);
    let named = &said["named"];
    holds(named, &[&format!("node node3 (rank {}) has been silent for ", said["rank"][0])]);
    assert_eq!((&named["verdict"], &named["status"]), (&json!("failed"), &json!(3)), "{named}");
    assert_eq!(named["ranks_to_blame"], said["rank"], "{named}");
    // The three that are left agree on it, and on nobody else.
    for (host, known) in named["known"].as_object().expect("agents") {
        let others = known.as_object().expect("members").iter();
        let wrong: Vec<_> = others.filter(|(other, state)| *state != "alive" && *other != "node3").collect();
        assert!(wrong.is_empty() && host != "node3", "{host}: {known}");
    }
    let after = named["after"].as_f64().expect("a time");
    println!("a dead node was named after {after:.2} s");
    // Agents need 1.7 s, who asks hardly more; the machine may be busy.
    assert!(after < 5.0, "{after} s");
}

#[test]
fn halves_of_a_cut_network_find_each_other_again() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = faults("cut", directory.path(), &[]);
    // Meanwhile each half says so of the other one, and not of itself.
    let parts = [("here", ["node1", "node2"], ["node3", "node4"]), ("there", ["node3", "node4"], ["node1", "node2"])];
    for (where_, own, others) in parts {
        let half = &said[where_];
        holds(half, &["has been silent for ", "2 silent nodes in all"]);
        assert!(others.iter().any(|node| half["sentence"].as_str().is_some_and(|said| said.contains(node))), "{half}");
        assert_eq!((&half["verdict"], &half["status"]), (&json!("failed"), &json!(3)), "{half}");
        assert_eq!(
            half["known"].as_object().map(|known| known.keys().cloned().collect()),
            Some(own.map(String::from).to_vec())
        );
        assert!(
            own.iter().all(|one| own.iter().all(|other| one == other || half["known"][one][other] == "alive")),
            "{half}"
        );
    }
    println!(
        "the halves called each other dead within {} s, and had found each other {} s after the cut was healed",
        said["here"]["after"], said["healed"]["after"]
    );
    let later = said["later"].as_array().expect("what was said later");
    assert!(later.len() > 3, "{later:?}");
    for moment in later {
        assert!(
            moment["verdict"] != "failed" && moment["known"].as_object().is_some_and(|known| known.len() == 4),
            "{moment}"
        );
        let states = moment["known"].as_object().into_iter().flatten().flat_map(|(_, known)| known.as_object());
        assert!(states.flatten().all(|(_, state)| state != "dead"), "{moment}");
    }
}

/// `tests/apps/bad_node.c`, to be preloaded into agents.
fn bad_node(directory: &Path) -> PathBuf {
    let library = directory.join("bad_node.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apps/bad_node.c");
    run(Command::new("cc").args(["-O1", "-shared", "-fPIC", source, "-ldl", "-o"]).arg(&library))
        .expect(0, "a compiled library");
    library
}

/// What packets from each node to each other one have taken by the clocks of both: in the order in which they were sent, in nanoseconds.
fn travel_times(agents: &Path) -> HashMap<[String; 2], Vec<i64>> {
    let mut sent: HashMap<Name, (String, u64)> = HashMap::new();
    let mut came: Vec<(Name, String, u64)> = Vec::new();
    for path in agents.read_dir().expect("agents").flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != log::EXTENSION) {
            continue;
        }
        let about = std::fs::read_to_string(path.with_extension("json")).expect("an agent");
        let about: Value = serde_json::from_str(&about).expect("JSON");
        let host = about["host"].as_str().expect("a host");
        for entry in log::read(&path).expect("a clock log") {
            match entry {
                ClockLogEntry::Sent(name, time) => drop(sent.insert(name, (host.to_owned(), time))),
                ClockLogEntry::Came(name, time) => came.push((name, host.to_owned(), time)),
                ClockLogEntry::Rank(_) => {}
            }
        }
    }
    let mut ways: HashMap<[String; 2], Vec<(u64, i64)>> = HashMap::new();
    for (name, to, time) in came {
        if let Some((from, sent)) = sent.get(&name) {
            ways.entry([from.clone(), to]).or_default().push((*sent, time.wrapping_sub(*sent) as i64));
        }
    }
    let in_order = |mut times: Vec<(u64, i64)>| {
        times.sort_unstable();
        times.into_iter().map(|(_, took)| took).collect()
    };
    ways.into_iter().map(|(way, times)| (way, in_order(times))).collect()
}

/// What all agents say of clocks, and no more: node, clock, and that it was set forward by 20 ms.
#[track_caller]
fn say_that_both_were_set(said: &Value, both: [[&str; 2]; 2]) {
    let agents = said["remarks"].as_object().expect("agents");
    assert_eq!(agents.len(), 4, "{said}");
    let mut told: [Vec<f64>; 2] = [vec![], vec![]];
    for (host, words) in agents {
        let words = words.as_array().expect("remarks");
        let mut named: Vec<_> = words.iter().map(|word| [&word[0], &word[1]]).collect();
        named.sort_by_key(|[node, _]| node.as_str());
        assert_eq!(named, both, "{host}: {said}");
        for word in words {
            let by = word[2].as_str().and_then(|word| word.strip_prefix("jumped forward by ")?.strip_suffix(" ms"));
            let by: f64 = by.and_then(|by| by.parse().ok()).unwrap_or_else(|| panic!("{host}: {said}"));
            // The machine may be busy, and this test is not alone on it: the round trips of one agent may then take as long as that.
            assert!((by - 20.0).abs() < 15.0, "{host}: {said}");
            told[usize::from(word[0] == both[1][0])].push(by);
        }
    }
    for by in &mut told {
        by.sort_unstable_by(f64::total_cmp);
        assert!(by[1] > 18.0 && by[2] < 22.0, "most agents know it better: {by:?}");
    }
    for [node, clock] in both {
        let line = format!("the {clock} of {node} jumped forward by ");
        assert!(said["text"].as_str().is_some_and(|text| text.contains(&line)), "{said}");
    }
}

/// Packets to and from `changed` take 20 ms more and less in the log from some time on, all others do not. The raw clocks of emulated nodes are apart.
#[track_caller]
fn follows(ways: HashMap<[String; 2], Vec<i64>>, changed: &str) {
    for ([from, to], times) in ways {
        let quickest = |part: &[i64]| part.iter().copied().min().expect("packets");
        let (before, after) = (quickest(&times[..20]), quickest(&times[times.len() - 10..]));
        let expected = i64::from(to == changed) - i64::from(from == changed);
        let times_20_ms = (after - before) as f64 / 20e6;
        assert!((times_20_ms - expected as f64).abs() < 0.1, "{from} to {to}: {before} ns, then {after} ns");
        // None seems to have come before it was sent.
        let least = quickest(&times) - before.min(after);
        assert!(least > -1_000_000, "{from} to {to}: {least} ns");
    }
}

/// Each node sends another one packets that only tell of clocks, every 10 ms, beside those that all pairs have: around a ring, in the order in which agents have come.
#[track_caller]
fn are_dense_to_the_next_node(ways: &HashMap<[String; 2], Vec<i64>>) {
    let mut next: Vec<&str> = Vec::new();
    for host in ["node1", "node2", "node3", "node4"] {
        let own = ways.iter().filter(|([from, _], _)| from == host);
        let mut counts: Vec<(usize, &str)> = own.map(|([_, to], times)| (times.len(), to.as_str())).collect();
        counts.sort_unstable();
        let [_, second, most] = counts[..] else { panic!("{host}: {counts:?}") };
        assert!(most.0 > 3 * second.0, "{host}: {counts:?}");
        next.push(most.1);
    }
    next.sort_unstable();
    assert_eq!(next, ["node1", "node2", "node3", "node4"]);
}

/// The raw clock of node2 and the system time of node3 are set forward at once: each is named for what it is, though both change what one is ahead of the other. By the
/// logs, packets of node2 take 20 ms more or less from then on, those of node3 what they took before.
#[test]
fn a_raw_clock_that_jumps_and_a_system_time_that_is_set_are_named_and_the_clock_log_shows_the_raw_clock() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = faults("clocks", directory.path(), &[&bad_node(directory.path())]);
    let before = said["before"].as_object().expect("agents");
    assert!(before.values().all(|words| *words == json!([])), "{said}");
    println!("both clocks were named after {} s", said["after"]);
    say_that_both_were_set(&said, [["node2", "raw clock"], ["node3", "system time"]]);
    let ways = travel_times(&directory.path().join("run.monitor/agents"));
    assert_eq!(ways.len(), 12, "{:?}", ways.keys());
    are_dense_to_the_next_node(&ways);
    follows(ways, "node2");
}

/// The raw clock of node2 gains a thousandth from some time on, the system time of node3 stands still: all agents name both, and no other clock but one of them at most, for what they are. (Packets are stamped by the system time: the agent of node3 may
/// take what runs away for a jump.)
#[test]
fn a_clock_that_runs_away_and_one_that_stands_still_are_named_by_all_nodes() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = faults("running", directory.path(), &[&bad_node(directory.path())]);
    let before = said["before"].as_object().expect("agents");
    assert!(before.values().all(|words| *words == json!([])), "{said}");
    println!("both clocks were named after {} s", said["after"]);
    let agents = said["remarks"].as_object().expect("agents");
    assert_eq!(agents.len(), 4, "{said}");
    let mut right = 0;
    for (host, words) in agents {
        let mut words: Vec<[&str; 3]> = words.as_array().expect("remarks").iter().map(words_of).collect();
        words.sort_unstable();
        for clock in [["node2", "raw clock"], ["node3", "system time"]] {
            assert!(words.iter().any(|word| word[..2] == clock), "{host}: {said}");
        }
        let [["node2", "raw clock", rate], ["node3", "system time", "stands still"]] = words[..] else { continue };
        let rate = rate.strip_prefix("runs away: +").and_then(|rate| rate.strip_suffix(" us per second"));
        // The first times may be those of round trips that took long.
        right += usize::from(
            rate.and_then(|rate| rate.parse::<f64>().ok()).is_some_and(|rate| (rate - 1000.0).abs() < 500.0),
        );
    }
    assert!(right >= 3, "{said}");
    for line in ["the raw clock of node2 runs away: +", "the system time of node3 stands still"] {
        assert!(said["text"].as_str().is_some_and(|text| text.contains(line)), "{said}");
    }
}

/// Node, clock, and what is wrong with it.
fn words_of(remark: &Value) -> [&str; 3] {
    [0, 1, 2].map(|place| remark[place].as_str().expect("words"))
}
