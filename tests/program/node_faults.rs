//! Nodes that die and networks that are cut, under a job that is watched: agents over live sockets on emulated nodes (`scripts/nodes`). Where the kernel forbids
//! those, the tests say so and do nothing.
#![allow(clippy::print_stdout)] // that it has been skipped, and what was measured

use crate::common::{run, with_recorder};
use crate::emulated_nodes::{build, nodes, possible};
use serde_json::{Value, json};
use std::path::Path;

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
    holds(named, &["node node3 has been silent for ", &format!("where rank {} is", said["rank"][0])]);
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
        holds(half, &["has been silent for ", "2 nodes in all"]);
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
