//! The page of a watched job: what must be in it, and what must not.

use super::*;
use clc_monitor::diagnose::{CommRow, SilentNode, Snapshot, diagnose};
use clc_monitor::history::Moment;
use clc_monitor::query::{AgentReport, AgentTraffic, PeerAgent, SystemClocks};
use clc_monitor::state::{CommMembership, CoreTime, Life, MpiCall, Operation, Phase, RankState};

/// When the job of these tests began.
const BEGUN: f64 = 1e9;

struct HistoryFixture {
    about: About,
    seen: Collected,
    found: Diagnosis,
    logs: Vec<Log>,
    unread: Vec<String>,
}

impl HistoryFixture {
    fn page(&self) -> String {
        let HistoryFixture { about, seen, found, logs, unread } = self;
        watched_page(&WatchedPage { about, seen, found, logs, unread })
    }
}

fn state(rank: u32, waits: bool) -> RankState {
    let what = Operation { function: "MPI_Barrier".into(), comm: Some(1), peer: -1, tag: 0, sequence: 3 };
    let call = MpiCall {
        function: "MPI_Barrier".into(),
        since: BEGUN + 60.0,
        what: Some(what),
        waits: Vec::new(),
        requests: 0,
        polls: false,
    };
    RankState {
        rank: Some(rank),
        size: Some(4),
        host: format!("n{}", rank / 2),
        process: 100 + rank,
        phase: Phase::Running,
        phase_since: BEGUN,
        life: Life::Runs,
        life_since: None,
        call: waits.then_some(call),
        regions: vec!["solve".into()],
        moves: 7,
        moved: BEGUN + 60.0,
        vain: 0,
        cpu: 1.0,
        unmoved: CoreTime::default(),
        comms: vec![CommMembership {
            comm: 1,
            rank,
            size: 4,
            sequence: if waits { 3 } else { 2 },
            ..CommMembership::default()
        }],
        epochs: Vec::new(),
        lost: 0,
    }
}

/// Two nodes of two ranks for 100 s: 0 to 2 wait from the middle on, 3 computes.
fn job() -> HistoryFixture {
    let log = |number: u32| {
        let moments = (0..100).map(|second| {
            let word = |rank: u32| if second >= 50 && rank != 3 { "waits" } else { "computes" };
            let ranks = [2 * number, 2 * number + 1].map(|rank| (rank, word(rank).to_owned()));
            Moment {
                raw: 0,
                time: BEGUN + f64::from(second),
                ranks: if second % 50 == 0 { ranks.into() } else { Vec::new() },
                nodes: Vec::new(),
                moves: 7,
                resources: [("load1".to_owned(), f64::from(second) / 10.0)].into(),
                clocks: vec![(1 - number, 2e-6, 1e-6)],
            }
        });
        Log { number, host: format!("n{number}"), moments: moments.collect(), damaged: 0 }
    };
    let ranks: Vec<RankState> = (0..4).map(|rank| state(rank, rank != 3)).collect();
    let report = |number: u32| AgentReport {
        number,
        host: format!("n{number}"),
        time: BEGUN + 100.0,
        ranks: ranks.iter().filter(|state| state.rank.is_some_and(|rank| rank / 2 == number)).cloned().collect(),
        members: vec![PeerAgent {
            number: 1 - number,
            host: format!("n{}", 1 - number),
            liveness: if number == 0 { "dead" } else { "alive" }.into(),
            seconds: 5.0,
            clock: None,
        }],
        // Each agent knows those of all nodes.
        data: vec![(format!("n{number}: phase"), "solve".into()), (format!("n{}: phase", 1 - number), "wait".into())],
        resources: Vec::new(),
        traffic: AgentTraffic::default(),
        job: Vec::new(),
        formulas: Vec::new(),
        clocks: SystemClocks::default(),
        remarks: Vec::new(),
    };
    let reports = vec![report(0), report(1)];
    let snapshot = Snapshot { time: BEGUN + 100.0, ranks, ..Snapshot::default() };
    let found = diagnose(None, &snapshot);
    let about = About {
        id: "1".into(),
        name: "run1".into(),
        command: "mpirun -n 4 ./app".into(),
        host: "n0".into(),
        begun: BEGUN,
        interface: None,
        interval: 0.1,
        nodes: None,
        alarm: None,
    };
    HistoryFixture {
        about,
        seen: Collected { snapshot, reports, alive: 2, ..Collected::default() },
        found,
        logs: vec![log(0), log(1)],
        unread: Vec::new(),
    }
}

/// Elements that are open at the end, and ends of elements that are not open.
fn unbalanced(page: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut wrong = Vec::new();
    for tag in page.split('<').skip(1) {
        let name = tag.split(|c: char| c.is_whitespace() || c == '>' || c == '/').find(|name| !name.is_empty());
        let name = name.unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                wrong.push(format!("/{name}"));
            }
        } else if !tag.split('>').next().is_some_and(|inside| inside.ends_with('/'))
            && !["meta", "link", "!DOCTYPE"].contains(&name)
        {
            open.push(name);
        }
    }
    wrong.extend(open.into_iter().map(str::to_owned));
    wrong
}

#[test]
fn everything_is_on_the_page() {
    let page = job().page();
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    for id in ["states", "ranks", "communicators", "nodes", "resources", "clocks", "log"] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    let parts = [
        "<title>run1: still</title>",
        "rank 3 is missing in MPI_Barrier, operation 3",
        "started on n0 at 2001-09-09T01:46:40Z",
        "<span class=\"blamed\">3</span>",
        "<td>3 of 4</td><td>rank 3</td>",
        "n1 dead for 5.0 s",
        "phase = solve",
        "How far clocks are ahead of that of n0, as measured there",
        "200 moments of 2 agents",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("phase = wait"), "the data of other nodes");
    for address in ["http:", "https:", "//cdn", "@import", "url(h", " src=", "<script"] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn states_are_where_they_were() {
    let page = job().page();
    let lines = page.split("<figure>").nth(2).expect("the picture of each rank");
    let number = |rect: &str, name: &str| -> f64 {
        let (_, rest) = rect.split_once(&format!(" {name}=\"")).expect("an attribute");
        rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
    };
    // From 92 to 884: rank 0 computes in the first half, waits in the second; rank 3 computes.
    let rects: Vec<&str> = lines.split("<rect ").skip(1).collect();
    assert_eq!(rects.len(), 7, "{lines}");
    let first = |rect: &str| (rect.split('"').nth(1).map(str::to_owned), number(rect, "x"), number(rect, "width"));
    let (word, x, width) = first(rects[0]);
    assert!(word.as_deref() == Some("w0") && x == 92.0 && (width - 396.0).abs() < 10.0, "{x} {width}");
    let (word, x, width) = first(rects[1]);
    assert!(word.as_deref() == Some("w1") && (x + width - 884.0).abs() < 0.2, "{x} {width}");
    let (word, x, width) = first(rects[6]);
    assert!(word.as_deref() == Some("w0") && x == 92.0 && (width - 792.0).abs() < 0.2, "{x} {width}");
}

#[test]
fn a_node_that_is_silent_is_not_drawn_on() {
    let mut job = job();
    job.logs[1].moments.truncate(20);
    job.seen.reports.truncate(1);
    job.seen.snapshot.silent.push(SilentNode { host: "n1".into(), since: BEGUN + 20.0, ranks: vec![2, 3] });
    job.found = diagnose(None, &job.seen.snapshot);
    let page = job.page();
    assert!(page.contains("silent for 80.0 s") && page.contains("<title>run1: failed</title>"));
    let lines = page.split("<figure>").nth(2).expect("the picture of each rank");
    let last = lines.split("<rect ").last().expect("rank 3");
    let width: f64 =
        last.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse().ok()).expect("width");
    // 20 of 99 s, and a little patience.
    assert!((160.0..200.0).contains(&width), "{width}");
}

#[test]
fn what_a_job_says_is_never_markup() {
    let hostile = "<script>alert('\"&1\")</script>";
    let mut job = job();
    job.about.name = hostile.into();
    job.about.command = hostile.into();
    job.about.host = hostile.into();
    job.found.sentence = hostile.into();
    job.unread.push(hostile.into());
    for row in &mut job.found.rows {
        (row.host, row.call, row.region, row.state) = (hostile.into(), hostile.into(), hostile.into(), hostile.into());
    }
    let behind = vec![3];
    let (name, function) = (hostile.to_owned(), hostile.to_owned());
    job.found.comms.push(CommRow { comm: 9, name, sequence: 1, function, waiting: 1, size: 4, behind });
    for report in &mut job.seen.reports {
        report.host = hostile.into();
        report.data[0] = (format!("{hostile}: {hostile}"), hostile.into());
        report.members[0].host = hostile.into();
        report.members[0].liveness = hostile.into();
    }
    for log in &mut job.logs {
        (log.host, log.damaged) = (hostile.into(), 1);
        log.moments[0].ranks[0].1 = hostile.into();
    }
    let page = job.page();
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    assert_eq!(unbalanced(&page), Vec::<String>::new());
}

#[test]
fn odd_logs_do_no_harm() {
    let mut job = job();
    job.logs[0].moments.iter_mut().for_each(|moment| moment.time = 1e300);
    job.logs[1].moments[5].time = -1e300;
    job.logs[1].moments[6].resources.insert("load1".into(), f64::NAN);
    job.logs[1].moments[7].clocks[0].1 = f64::INFINITY;
    job.about.begun = f64::NAN;
    assert_eq!(unbalanced(&job.page()), Vec::<String>::new());
    job.logs.iter_mut().for_each(|log| log.moments.truncate(1));
    assert!(unbalanced(&job.page()).is_empty());
    job.logs.clear();
    let page = job.page();
    assert!(page.contains("have logged only one moment") && !page.contains("id=\"clocks\""));
    let empty = HistoryFixture { found: diagnose(None, &Snapshot::default()), seen: Collected::default(), ..job };
    assert!(empty.page().contains("No agent is known."));
}

#[test]
fn large_jobs_make_no_large_page() {
    let mut job = job();
    let ranks: Vec<(u32, String)> =
        (0..20_000).map(|rank| (rank, if rank % 7 == 0 { "waits" } else { "tests" }.to_owned())).collect();
    job.logs[0].moments[0].ranks = ranks;
    let logs: Vec<Log> =
        (0..200).map(|number| Log { number, host: format!("m{number}"), ..job.logs[1].clone() }).collect();
    job.logs.extend(logs);
    let page = job.page();
    assert!(page.contains("96 of 20,000 ranks") && page.contains("median of 202 nodes"), "{}", page.len());
    assert!(page.len() < 2_000_000, "{}", page.len());
}
