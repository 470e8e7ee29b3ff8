//! What lies beside a trace: the truth, and stored reports. Any contents are understood, or refused in one line.

use super::Choices;
use super::bench::{Bench, proper};
use super::seal::seal;
use serde_json::Value;
use std::cell::OnceCell;

/// A trace with a truth, its correction, and stored reports.
struct Scene {
    bench: Bench,
    reports: [Value; 2],
}

thread_local! {
    static SCENE: OnceCell<Scene> = const { OnceCell::new() };
}

const TRUTH: &str = "made/truth/1.truth";
const REPORT: &str = "report.json";

impl Scene {
    fn new() -> Scene {
        let bench = Bench::new();
        bench.run(&["perturb", "@otf2", "@made", "--anyway"]).unwrap();
        bench.run(&["@made", "-o", "@corrected"]).unwrap();
        let report = |command: &[&str]| {
            let arguments = [command, &["@made", "--report", "@report.json"]].concat();
            serde_json::from_str(&bench.report(&arguments)).unwrap()
        };
        let reports = [report(&["check"]), report(&["--dry-run"])];
        Scene { bench, reports }
    }

    fn attempt(&self, name: &str, contents: &[u8], arguments: &[&str]) -> Result<(), String> {
        let before = self.bench.names();
        let outcome = self.bench.with_contents(name, contents, || self.bench.run(arguments))?;
        if self.bench.names() != before {
            return Err(format!("something was left behind: {:?}", self.bench.names()));
        }
        proper(&outcome)
    }
}

/// What takes the place of a value in a report.
fn replacement(choices: &mut Choices<'_>, old: &Value) -> Value {
    let integers = [0, 1, -1, 255, 1 << 32, i64::MAX, i64::MIN];
    let floats = [0.5, -1e-9, 1e-300, 1e9, 1e300, -1.7e308];
    match choices.below(10) {
        0 => Value::Null,
        1 => Value::from(integers[choices.below(integers.len())]),
        2 => Value::from(u64::MAX),
        3 => Value::from(floats[choices.below(floats.len())]),
        4 => Value::from("<&\"'\n\u{0}\u{202e}"),
        5 => Value::from(""),
        6 => Value::Array(Vec::new()),
        7 => Value::Bool(choices.below(2) == 1),
        // Lists of another length than those that belong to them.
        8 => match old {
            Value::Array(list) => list.iter().skip(1).cloned().collect(),
            other => other.clone(),
        },
        _ => match old {
            Value::Array(list) => list.iter().chain(list).cloned().collect(),
            other => other.clone(),
        },
    }
}

/// Follows choices down to a value.
fn place<'a>(choices: &mut Choices<'_>, mut value: &'a mut Value) -> &'a mut Value {
    loop {
        let inner = match &*value {
            Value::Array(list) => list.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        // Rarely, the list or the object itself.
        let next = choices.below(256);
        if inner == 0 || next >= 240 {
            return value;
        }
        value = match value {
            Value::Array(list) => &mut list[next % inner],
            Value::Object(fields) => fields.values_mut().nth(next % inner).expect("one of them"),
            _ => unreachable!("it has no parts"),
        };
    }
}

/// The target. The first byte says which file and how the others are used: as its contents, or as changes to a report.
pub(crate) fn target(input: &[u8]) -> Result<(), String> {
    let mut choices = Choices(input);
    let what = choices.below(7);
    SCENE.with(|cell| {
        let scene = cell.get_or_init(Scene::new);
        let judged = if what % 2 == 0 { "@made" } else { "@corrected" };
        match what {
            0..4 => {
                let mut contents = choices.0.to_vec();
                if what >= 2 {
                    seal(&mut contents);
                }
                scene.attempt(TRUTH, &contents, &["evaluate", judged, "--truth", "@made"])
            }
            4 => scene.attempt(REPORT, choices.0, &["report", "@report.json"]),
            _ => {
                let mut report = scene.reports[what - 5].clone();
                for _ in 0..64 {
                    if choices.is_empty() {
                        break;
                    }
                    let place = place(&mut choices, &mut report);
                    *place = replacement(&mut choices, place);
                }
                scene.attempt(REPORT, report.to_string().as_bytes(), &["report", "@report.json"])
            }
        }
    })
}

/// The recorded truth in each way of use, small reports, and reports without changes.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    SCENE.with(|cell| {
        let scene = cell.get_or_init(Scene::new);
        let truth = std::fs::read(scene.bench.path(TRUTH)).unwrap();
        let mut seeds: Vec<Vec<u8>> = (0..4).map(|what| [&[what], &truth[..]].concat()).collect();
        for report in &scene.reports {
            // Without the data of the pictures it is short enough to be changed byte by byte.
            let mut short = report.clone();
            short["details"] = Value::Null;
            seeds.push([&[4], short.to_string().as_bytes()].concat());
        }
        seeds.extend([vec![5], vec![6], vec![5, 1, 0, 3, 1], vec![6, 9, 9, 9, 9, 9]]);
        seeds
    })
}
