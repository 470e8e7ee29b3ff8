//! The page of a report, in a real browser (Chromium) and by size; the same page from a stored report and on any number of ranks.

use crate::common::{alone, fixture, run, with_ranks};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A trace on four nodes that has violations after pre-synchronisation, too.
const FOUR_NODES: [&str; 10] = ["--ranks", "16", "--events", "5k", "--pattern", "mix", "--clock", "ntp", "--seed", "7"];

/// A simulated trace.
fn simulated(directory: &Path, arguments: &[&str]) -> PathBuf {
    let trace = directory.join("trace");
    run(alone().arg("simulate").arg(&trace).args(arguments)).expect(0, "simulate");
    trace
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_stored_report_makes_the_same_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let trace = simulated(directory.path(), &FOUR_NODES);
    let correct = ["--presync", "linear", "--dry-run", "--quiet", "--html"];
    run(alone().args(correct).arg(at("a.html")).arg("--report").arg(at("r.json")).arg(&trace)).expect(0, "correct");
    let again = run(alone().arg("report").arg(at("r.json")).arg("--html").arg(at("b.html"))).expect(0, "report");
    assert!(again.stdout.starts_with("clc-replay "), "{}", again.stdout);
    assert!(read(&at("a.html")) == read(&at("b.html")), "another page from the stored report");

    let check = run(alone().args(["check", "--quiet", "--html"]).arg(at("c.html")).arg(&trace));
    assert_eq!(check.status, 1, "{}", check.stderr);
    assert!(read(&at("c.html")).contains("id=\"clock-plot\""));

    // A name out of a file does not command the terminal, neither in the text nor in an error.
    let evil =
        |text: &str, with: &str| std::fs::write(at("e.json"), read(&at("r.json")).replace(text, with)).expect("a file");
    evil(&trace.to_string_lossy(), "\\u001b[2J");
    let shown = run(alone().arg("report").arg(at("e.json"))).expect(0, "a name");
    assert!(shown.stdout.contains("\u{fffd}[2J") && !shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    evil("\"corrected\"", "\"\\u001b[2J\"");
    let refused = run(alone().arg("report").arg(at("e.json"))).expect(2, "a verdict");
    assert!(refused.stderr.contains("\u{fffd}[2J") && !refused.stderr.contains('\u{1b}'), "{}", refused.stderr);

    // What is no report of this kind.
    run(alone().args(["info", "--quiet", "--report"]).arg(at("i.json")).arg(&trace)).expect(0, "info");
    let refused = run(alone().arg("report").arg(at("i.json"))).expect(2, "an info");
    assert!(refused.stderr.contains("not the report of a correction"), "{}", refused.stderr);
    std::fs::write(at("x.json"), "{").expect("a file");
    run(alone().arg("report").arg(at("x.json"))).expect(2, "no JSON");
}

#[test]
fn the_details_are_the_same_on_any_number_of_ranks() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = simulated(directory.path(), &FOUR_NODES);
    let details = |mut command: Command, name: &str| -> Value {
        let path = directory.path().join(name);
        run(command.args(["--presync", "linear", "--dry-run", "--quiet", "--report"]).arg(&path).arg(&trace))
            .expect(0, name);
        let report: Value = serde_json::from_str(&read(&path)).expect("JSON");
        report["details"].clone()
    };
    let one = details(alone(), "1.json");
    assert!(one["worst"].as_array().is_some_and(|worst| worst.len() > 3), "{}", one["worst"]);
    assert!(one["worst"][0]["pictures"][1]["lanes"][0]["bars"][0]["region"].is_string());
    for ranks in [3, 8] {
        // Not assert_eq: nobody wants to read both.
        assert!(details(with_ranks(ranks), &format!("{ranks}.json")) == one, "other details on {ranks} ranks");
    }
    // The pictures tell what the numbers say.
    for case in one["worst"].as_array().expect("a list") {
        let at = |picture: usize, lane: usize| {
            case["pictures"][picture]["lanes"][lane]["at_seconds"].as_f64().expect("a time")
        };
        let early = at(0, 0) - at(0, 1);
        assert!((early - case["seconds"].as_f64().expect("a time")).abs() < 1e-12, "{case}");
        assert!(at(1, 1) >= at(1, 0) - 1e-15, "{case}");
    }
    // Each way of counting gives the same violations.
    let stage = &one["stages"][1];
    let sum =
        |value: &Value| value.as_array().expect("a list").iter().map(|n| n.as_u64().expect("a count")).sum::<u64>();
    let classes = stage["distances"].as_array().expect("a list");
    let counted: u64 =
        classes.iter().map(|c| c["messages"].as_u64().unwrap_or(0) + c["collective_ends"].as_u64().unwrap_or(0)).sum();
    assert_eq!(sum(&stage["violated"]), counted);
    let messages: u64 = classes.iter().map(|class| class["messages"].as_u64().unwrap_or(0)).sum();
    assert_eq!(sum(&one["pairs"]["stages"][1]["violated"]), messages);
    assert_eq!(stage["operations"][0]["violated"].as_u64(), Some(messages));
}

/// Processes that turned out not to share the clock of their node, and those that do.
#[test]
fn every_clock_has_its_curve() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let trace = simulated(directory.path(), &["--ranks", "8", "--ranks-per-node", "4", "--events", "2k"]);
    let curves = |per_process: &[&str], measurements: &str| -> Vec<String> {
        let perturb = ["--anyway", "--force", "--clock", "offset=100ms,drift=20ppm", "--measurements", measurements];
        run(alone().arg("perturb").arg(&trace).arg(at("wrong")).args(perturb).args(per_process)).expect(0, "perturb");
        let dry = ["--dry-run", "--quiet", "--force", "--report"];
        run(alone().arg(at("wrong")).args(dry).arg(at("r.json")).arg("--html").arg(at("p.html"))).expect(0, "correct");
        let page = read(&at("p.html"));
        assert!(page.contains("<title>wrong: corrected</title>"));
        let report: Value = serde_json::from_str(&read(&at("r.json"))).expect("JSON");
        let curves = report["details"]["clock_error"]["nodes"].as_array().expect("a list");
        curves.iter().map(|c| format!("{} {} {}", c["name"], c["first_process"], c["processes"])).collect()
    };
    for measurements in ["0", "2"] {
        assert_eq!(curves(&[], measurements), ["\"node0\" 0 4", "\"node1\" 4 4"]);
        let own: Vec<String> = (0..8).map(|rank| format!("\"node{}\" {rank} 1", rank / 4)).collect();
        assert_eq!(curves(&["--per-process"], measurements), own);
    }
}

#[test]
fn a_thousand_processes_make_a_page_of_less_than_five_megabytes() {
    let directory = tempfile::tempdir().expect("a directory");
    // Everybody talks to everybody else sooner or later, which is the most that the matrix can hold.
    let arguments =
        ["--ranks", "1024", "--events", "250", "--pattern", "random", "--clock", "ntp", "--ranks-per-node", "4"];
    let trace = simulated(directory.path(), &arguments);
    let page = directory.path().join("page.html");
    run(alone().args(["--presync", "linear", "--dry-run", "--quiet", "--html"]).arg(&page).arg(&trace))
        .expect(0, "correct");
    let size = std::fs::metadata(&page).expect("a page").len();
    println!("{size} bytes");
    assert!(size < 5_000_000, "{size} bytes");
    let text = read(&page);
    assert!(text.contains("Messages by sending and receiving nodes"));
}

/// The browser; the tests need one.
fn chromium() -> String {
    let given = std::env::var("CHROMIUM").ok();
    let candidates = given.into_iter().chain(["chromium", "chromium-browser", "google-chrome"].map(str::to_owned));
    let works = |name: &String| {
        let version = Command::new(name)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    };
    candidates.into_iter().find(works).expect("Chromium; scripts/setup.sh --tests installs it, or set CHROMIUM")
}

/// Uses the chapter on clocks and the matrix as a person would.
const USE: &str = r##"
  const by = (id) => document.getElementById(id), curve = () => document.querySelector("path.curve").getAttribute("d");
  seen.curves = document.querySelectorAll("path.curve").length;
  const click = (id) => by(id).click();
  const first = curve();
  click("zoom-in"); seen.zoomed = curve() !== first;
  click("zoom-all"); seen.restored = curve() === first;
  by("clock-plot").dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
  seen.key = curve() !== first;
  by("clock-plot").dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
  click("part-presync"); seen.parts = curve() !== first; click("part-presync");
  click("part-forward"); click("part-backward");
  const flat = new Set(curve().match(/ [0-9.]+/g)); seen.zero = flat.size === 1;
  click("part-forward"); click("part-backward"); seen.back = curve() === first;
  document.querySelector("input[value=largest]").click(); seen.largest = curve() !== first;
  by("node").value = "1"; by("node").dispatchEvent(new Event("change"));
  seen.faint = document.querySelectorAll("path.curve.faint").length;
  const plot = document.querySelector("#clock-plot svg.plot"), box = plot.getBoundingClientRect();
  const at = (share) => ({ clientX: box.left + share * box.width, clientY: box.top + box.height / 2, pointerId: 1, bubbles: true });
  plot.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
  seen.readout = by("clock-readout").textContent;
  plot.dispatchEvent(new PointerEvent("pointerdown", at(0.3)));
  plot.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
  plot.dispatchEvent(new PointerEvent("pointerup", at(0.6)));
  seen.dragged = by("clock-readout").textContent;
  const matrix = document.querySelector("svg.matrix"), field = matrix.querySelector(".field").getBoundingClientRect();
  const pairs = JSON.parse(by("data").textContent).pairs, step = field.width / pairs.size;
  matrix.dispatchEvent(new PointerEvent("pointermove", {
    clientX: field.left + (pairs.receivers[0] + 0.5) * step, clientY: field.top + (pairs.senders[0] + 0.5) * step, bubbles: true }));
  seen.pair = by("pair-readout").textContent;
"##;

/// Opens everything that is folded, and looks whether the numbers are there.
const READ: &str = r##"
  seen.folded = 0;
  for (const fold of document.querySelectorAll("details")) {
    fold.querySelector("summary").click();
    seen.folded += fold.open ? 0 : 1;
  }
  seen.chapters = [...document.querySelectorAll("main section")].map((e) => e.id);
  seen.pictures = document.querySelectorAll("svg[role=img]").length;
  // No text of a picture lies over another, or outside of it.
  const boxes = (svg) => [...svg.querySelectorAll("text")].filter((e) => e.textContent).map((e) => e.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  seen.overlaps = [];
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const texts = boxes(svg), all = svg.getBoundingClientRect();
    texts.forEach((a, i) => {
      if (a.left < all.left - 1 || a.right > all.right + 1) seen.overlaps.push(svg.getAttribute("aria-label") + ": outside");
      if (texts.slice(i + 1).some((b) => meet(a, b))) seen.overlaps.push(svg.getAttribute("aria-label"));
    });
  }
"##;

/// What holds for each page.
const JUDGE: &str = r##"
  // Nothing is wider than the window; what is, scrolls within its own box.
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  // Everything that can be used has a name, and can be reached.
  seen.nameless = [...document.querySelectorAll("button, input, select, svg[role=img], [role=region], [role=group]")].filter((e) =>
    !(e.getAttribute("aria-label") || e.closest("label")?.textContent.trim() || e.textContent.trim())).length;
  seen.unreachable = [...document.querySelectorAll("button, input, select, a, summary, .scroll")].filter((e) => e.tabIndex < 0).length;
  const levels = [...document.querySelectorAll("h1, h2, h3")].map((e) => Number(e.tagName[1]));
  seen.headings = levels[0] === 1 && levels.filter((l) => l === 1).length === 1 && levels.every((l, i) => !i || l - levels[i - 1] <= 1);
  seen.scopes = [...document.querySelectorAll("th")].filter((e) => !e.scope).length;
  seen.pwned = window.pwned === true;
  seen.errors = window.errors;
"##;

/// Opens the page in the browser, lets a script use it (`USE` or `READ`), and returns what the script saw in `seen`, [`JUDGE`] too, and what
/// the browser said on its console.
fn visit(page: &Path, script: &str, width: u32) -> (Value, Vec<String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let listening = "<script>window.errors = []; addEventListener(\"error\", (event) => window.errors.push(event.message));</script>";
    let leave = "document.documentElement.dataset.seen = JSON.stringify(seen);";
    let script = format!("<script>(() => {{ const seen = {{}}; {script} {JUDGE} {leave} }})();</script>");
    let text =
        read(page).replacen("<head>", &format!("<head>{listening}"), 1).replace("</body>", &format!("{script}</body>"));
    let visited = directory.path().join("visited.html");
    std::fs::write(&visited, text).expect("a file");
    let mut browser = Command::new(chromium());
    browser
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--dump-dom",
        ])
        .args(["--enable-logging=stderr", "--v=0", &format!("--window-size={width},900")])
        .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
        .arg(format!("file://{}", visited.display()))
        .env("HOME", directory.path());
    let finished = run(&mut browser).expect(0, "the browser");
    let said: Vec<String> =
        finished.stderr.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let dom = finished.stdout;
    let seen = dom.split("data-seen=\"").nth(1).and_then(|rest| rest.split('"').next());
    let seen = seen.unwrap_or_else(|| panic!("the page was not used: {said:?}"));
    let seen = seen.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (serde_json::from_str(&seen).expect("what was seen"), said)
}

/// What each visit has to find.
fn judge(seen: &Value, said: &[String]) {
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(seen["errors"], Value::Array(vec![]));
    assert!(seen["overflow"].as_i64().is_some_and(|by| by <= 0), "{}", seen["overflow"]);
    assert_eq!(seen["headings"], Value::Bool(true));
    for what in ["nameless", "unreachable", "scopes"] {
        assert_eq!(seen[what].as_u64(), Some(0), "{what}");
    }
    assert_eq!(seen["pwned"], Value::Bool(false));
}

#[test]
fn the_page_of_an_analysis_works_in_a_browser() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [
        "--ranks",
        "12",
        "--events",
        "3k",
        "--pattern",
        "mix",
        "--clock",
        "sine",
        "--ranks-per-node",
        "4",
        "--seed",
        "3",
    ];
    let trace = simulated(directory.path(), &arguments);
    let stored = directory.path().join("r.json");
    let direct = directory.path().join("direct.html");
    run(alone().arg("analyze").arg(&trace).args(["--quiet", "--report"]).arg(&stored).arg("--html").arg(&direct))
        .expect(0, "analyze");
    let page = directory.path().join("page.html");
    run(alone().arg("report").arg(&stored).args(["--quiet", "--html"]).arg(&page)).expect(0, "report");
    assert!(read(&page) == read(&direct), "the stored report makes another page");

    let evil = "<img src=x onerror=window.pwned=true><script>window.pwned=true</script>";
    let text = read(&stored).replace("\"MPI_", &format!("\"{evil}MPI_"));
    assert!(text.contains(evil));
    std::fs::write(&stored, text).expect("a file");
    run(alone().arg("report").arg(&stored).args(["--quiet", "--html"]).arg(&page)).expect(0, "report");

    for width in [1100, 500] {
        let (seen, said) = visit(&page, READ, width);
        println!("{seen:#}");
        judge(&seen, &said);
        assert_eq!(seen["folded"].as_u64(), Some(0));
        assert_eq!(seen["overlaps"], Value::Array(vec![]));
        let chapters: Vec<&str> =
            seen["chapters"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert_eq!(chapters[..4], ["waits", "execution", "path", "traffic"]);
    }
}

#[test]
fn the_page_works_in_a_browser() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = simulated(directory.path(), &FOUR_NODES);
    let stored = directory.path().join("r.json");
    run(alone().args(["--presync", "linear", "--dry-run", "--quiet", "--report"]).arg(&stored).arg(&trace))
        .expect(0, "correct");
    // Names as a hostile trace might have them, wherever a trace has names.
    let evil = "<img src=x onerror=window.pwned=true><script>window.pwned=true</script>";
    let text = read(&stored).replace("MPI_", &format!("{}MPI_", evil)).replace("\"node0\"", &format!("\"{evil}\""));
    assert!(text.contains(evil));
    std::fs::write(&stored, text).expect("a file");
    let page = directory.path().join("page.html");
    run(alone().arg("report").arg(&stored).args(["--quiet", "--html"]).arg(&page)).expect(0, "report");

    for width in [1100, 500] {
        let (seen, said) = visit(&page, USE, width);
        println!("{seen:#}");
        for what in ["zoomed", "restored", "key", "parts", "zero", "back", "largest"] {
            assert_eq!(seen[what], Value::Bool(true), "{what}");
        }
        assert_eq!((seen["curves"].as_u64(), seen["faint"].as_u64()), (Some(4), Some(3)));
        assert!(seen["readout"].as_str().is_some_and(|text| text.contains(" s: node1")), "{seen}");
        assert!(seen["dragged"].as_str().is_some_and(|text| text.contains(" s to ")), "{seen}");
        assert!(seen["pair"].as_str().is_some_and(|text| text.contains("messages too early")), "{seen}");
        judge(&seen, &said);
    }
}

#[test]
fn a_recorded_trace_has_a_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("page.html");
    let trace = fixture("tracer-collectives-7");
    run(alone().args(["--presync", "linear", "--dry-run", "--quiet", "--html"]).arg(&page).arg(&trace))
        .expect(0, "correct");
    assert!(read(&page).ends_with("</html>\n"));
}
