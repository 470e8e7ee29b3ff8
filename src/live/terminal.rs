//! `clc-replay watch JOB` on a terminal: the job as it is now, twice a second, until q is pressed.

use clc_monitor::collect::{Collected, twice};
use clc_monitor::diagnose::{Diagnosis, JobVerdict, RankRow, diagnose, duration};
use clc_monitor::jobs::Job;
use clc_monitor::query::AgentReport;
use clc_trace::{Error, Result};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, Wrap};
use std::sync::mpsc;
use std::time::Duration;

/// Between the two snapshots of a look, and between looks. Chosen by hand: shorter asks the agents more often than anybody can read, longer looks as
/// if nothing moved.
const PAUSE: Duration = Duration::from_millis(250);

/// No column of the table of ranks is wider but that of calls: rank, node, state, for. Chosen by hand: names of nodes may be long, with the cluster's name at their end.
const WIDEST: [usize; 4] = [10, 16, 12, 10];
/// The column of calls is this wide at least, and a call takes no more lines. Chosen by hand: with fewer, lists of requests are cut; with more, few ranks fit on the screen.
const LEAST: usize = 20;
const MOST_LINES: usize = 3;

/// Bytes of memory in the unit that is shown.
const GIB: f64 = (1_u64 << 30) as f64;

/// What the table is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Rank,
    Longest,
    State,
    Node,
}

/// What is shown, and how.
pub(super) struct Face {
    job: String,
    seen: Collected,
    found: Diagnosis,
    order: Order,
    /// Only ranks in this state.
    only: Option<String>,
    first: usize,
    nodes: bool,
}

impl Face {
    /// Of a job, as it is now.
    pub(super) fn new(job: &str, seen: Collected, found: Diagnosis) -> Face {
        Face { job: job.to_owned(), seen, found, order: Order::Rank, only: None, first: 0, nodes: false }
    }

    /// What there is to see has changed.
    pub(super) fn update(&mut self, seen: Collected, found: Diagnosis) {
        (self.seen, self.found) = (seen, found);
    }

    /// A key was pressed; returns whether to go on.
    pub(super) fn key(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('r') => self.order = Order::Rank,
            KeyCode::Char('l') => self.order = Order::Longest,
            KeyCode::Char('s') => self.order = Order::State,
            KeyCode::Char('n') => self.order = Order::Node,
            KeyCode::Char('f') => self.only = self.next_filter(),
            KeyCode::Tab => self.nodes = !self.nodes,
            KeyCode::Down => self.first += 1,
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first += 20,
            KeyCode::PageUp => self.first = self.first.saturating_sub(20),
            KeyCode::Home => self.first = 0,
            _ => {}
        }
        true
    }

    /// States that there are, in the order of the alphabet, and how many ranks are in each.
    fn states(&self) -> Vec<(String, usize)> {
        let mut states = std::collections::BTreeMap::new();
        self.found.rows.iter().for_each(|row| *states.entry(row.state.clone()).or_insert(0) += 1);
        states.into_iter().collect()
    }

    fn next_filter(&self) -> Option<String> {
        let mut states = self.states().into_iter().map(|(state, _)| state);
        match &self.only {
            None => states.next(),
            Some(now) => states.find(|state| state > now),
        }
    }

    fn rows(&self) -> Vec<&RankRow> {
        let shown = |row: &&RankRow| self.only.as_ref().is_none_or(|only| *only == row.state);
        let mut rows: Vec<&RankRow> = self.found.rows.iter().filter(shown).collect();
        match self.order {
            Order::Rank => {}
            Order::Longest => rows.sort_by(|one, other| other.seconds.total_cmp(&one.seconds)),
            Order::State => rows.sort_by(|one, other| one.state.cmp(&other.state)),
            Order::Node => rows.sort_by(|one, other| one.host.cmp(&other.host)),
        }
        rows
    }

    /// Draws all of it.
    pub(super) fn draw(&self, frame: &mut Frame) {
        let comms = self.found.comms.len().min(4) as u16;
        let colour = match self.found.verdict {
            JobVerdict::Moves | JobVerdict::Finished => Color::Green,
            JobVerdict::Still => Color::Yellow,
            JobVerdict::Failed | JobVerdict::Unknown => Color::Red,
        };
        let said =
            Paragraph::new(self.found.sentence.as_str()).wrap(Wrap { trim: true }).style(Style::new().fg(colour));
        // As long as it is, up to half of the screen.
        let most = usize::from(frame.area().height / 2).saturating_sub(1).max(3);
        let lines = said.line_count(frame.area().width).clamp(3, most) as u16;
        let parts = [
            Constraint::Length(1),
            Constraint::Length(lines + 1),
            Constraint::Min(3),
            Constraint::Length(if comms > 0 { comms + 1 } else { 0 }),
            Constraint::Length(1),
        ];
        let [head, sentence, table, below, keys] = Layout::vertical(parts).areas(frame.area());
        let states: Vec<String> = self.states().iter().map(|(state, count)| format!("{count} {state}")).collect();
        let nodes = self.seen.reports.len();
        let head_text =
            format!("{}: {nodes} {}, {}", self.job, if nodes == 1 { "node" } else { "nodes" }, states.join(", "));
        frame.render_widget(Paragraph::new(head_text).style(Style::new().add_modifier(Modifier::BOLD)), head);
        frame.render_widget(said.block(Block::new().borders(Borders::BOTTOM)), sentence);
        if self.nodes {
            self.draw_nodes(frame, table)
        } else {
            self.draw_ranks(frame, table)
        }
        let lines: Vec<Line> = self
            .found
            .comms
            .iter()
            .take(comms as usize)
            .map(|comm| {
                let (operation, waiting, size) = (&comm.function, comm.waiting, comm.size);
                Line::from(format!(
                    "{}: {operation} {}, {waiting} of {size} wait, behind: {}",
                    comm.name,
                    comm.sequence,
                    comm.behind()
                ))
            })
            .collect();
        frame.render_widget(Paragraph::new(lines).block(Block::new().borders(Borders::TOP)), below);
        let only = self.only.as_deref().unwrap_or("all");
        let help = format!("q quit  sort: rank longest state node  f shows: {only}  Tab nodes  arrows");
        frame.render_widget(Paragraph::new(help).style(Style::new().add_modifier(Modifier::DIM)), keys);
    }

    fn draw_ranks(&self, frame: &mut Frame, area: Rect) {
        let rows = self.rows();
        // The last ones stay in sight.
        let first = self.first.min(rows.len().saturating_sub(1));
        let cells = |row: &RankRow| [row.name(), row.host.clone(), row.state.clone(), duration(row.seconds)];
        let head = ["rank", "node", "state", "for"];
        // As wide as what is in them, of all ranks, so that nothing moves when they scroll; the rest is for the call.
        let mut widths = head.map(str::len);
        for row in &rows {
            for ((width, most), cell) in widths.iter_mut().zip(WIDEST).zip(cells(row)) {
                *width = cell.chars().count().min(most).max(*width);
            }
        }
        let spaces = widths.len();
        let left = usize::from(area.width).saturating_sub(widths.iter().sum::<usize>() + spaces).max(LEAST);
        let lines = rows[first..].iter().map(|row| {
            let region = if row.region.is_empty() { String::new() } else { format!(" [{}]", row.region) };
            let style = match row.state.as_str() {
                _ if row.rank.is_some_and(|rank| self.found.ranks.contains(&rank)) => Style::new().fg(Color::Red),
                "computes" => Style::new().fg(Color::Green),
                _ => Style::new(),
            };
            let call = wrapped(format!("{}{region}", row.call).trim(), left);
            let height = call.len() as u16;
            let cells = cells(row).into_iter().chain([call.join("\n")]);
            Row::new(cells).height(height).style(style)
        });
        let columns = widths.iter().map(|width| Constraint::Length(*width as u16));
        let columns = columns.chain([Constraint::Min(LEAST as u16)]);
        let head =
            Row::new(head.into_iter().chain(["call, region"])).style(Style::new().add_modifier(Modifier::UNDERLINED));
        frame.render_widget(Table::new(lines, columns).header(head), area);
    }

    fn draw_nodes(&self, frame: &mut Frame, area: Rect) {
        let mut cells: Vec<Row> = self
            .seen
            .reports
            .iter()
            .map(|report| {
                // As it sees itself among those that it compares.
                let own = report.clocks.distances.iter().find(|distance| distance.0 == report.number);
                let clock = own.map_or_else(
                    || "-".to_owned(),
                    |(_, distance, error)| format!("{:+.1} ± {:.1} us", distance * 1e6, error * 1e6),
                );
                let data = report.own_data();
                let ranks = report.ranks.len().to_string();
                Row::new([
                    report.host.clone(),
                    ranks,
                    clock,
                    report.traffic.forged.to_string(),
                    resources(report),
                    data.join(", "),
                ])
            })
            .collect();
        cells.extend(self.seen.snapshot.silent.iter().map(|node| {
            let ago = duration(self.seen.snapshot.time - node.since);
            Row::new([node.host.clone(), node.ranks.len().to_string(), format!("silent for {ago}")])
                .style(Style::new().fg(Color::Red))
        }));
        let widths = [
            Constraint::Length(12),
            Constraint::Length(5),
            Constraint::Length(20),
            Constraint::Length(6),
            Constraint::Length(15),
            Constraint::Min(10),
        ];
        let head = Row::new(["node", "ranks", "clock", "forged", "load, memory", "data"])
            .style(Style::new().add_modifier(Modifier::UNDERLINED));
        frame.render_widget(Table::new(cells, widths).header(head), area);
    }
}

/// A text in lines of this width, broken between words; what is beyond [`MOST_LINES`] is left out.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let Some(line) = lines.last_mut() else { break };
            let used = line.chars().count();
            let space = usize::from(used > 0);
            if used + space + word.len() > width && used > 0 {
                lines.push(String::new());
                continue;
            }
            // One that is longer than a line is broken anywhere.
            let rest = word.split_off(word.len().min(width.max(1)));
            line.extend(std::iter::repeat_n(' ', space).chain(word));
            word = rest;
        }
    }
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        if let Some(last) = lines.last_mut() {
            let kept: String = last.chars().take(width.saturating_sub(1)).collect();
            *last = format!("{kept}…");
        }
    }
    lines
}

/// Load and available memory of a node.
fn resources(report: &AgentReport) -> String {
    let value = |name: &str| report.resources.iter().find(|(known, _, _)| known == name).map(|(_, value, _)| *value);
    let load = value("load1").map_or_else(|| "-".to_owned(), |load| format!("{load:.2}"));
    let memory = value("memory").map_or_else(|| "-".to_owned(), |bytes| format!("{:.1} GiB", bytes / GIB));
    format!("{load}, {memory}")
}

/// Shows a job until the user has seen enough; returns what was seen last.
///
/// # Errors
/// The terminal refuses.
pub(crate) fn show(job: &Job) -> Result<Diagnosis> {
    let look = |job: &Job| {
        let (first, second) = twice(job, PAUSE);
        let found = diagnose(Some(&first.snapshot), &second.snapshot);
        (second, found)
    };
    let (seen, found) = look(job);
    let mut face = Face::new(&job.about.name, seen, found);
    // Agents are asked by a thread: keys do not wait for a node that is silent.
    let (tell, told) = mpsc::sync_channel(1);
    let asked = job.clone();
    std::thread::spawn(move || while tell.send(look(&asked)).is_ok() {});
    let failed = |error: std::io::Error| Error::new(format!("cannot use the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut shown = || -> std::io::Result<()> {
        loop {
            if let Ok((seen, found)) = told.try_recv() {
                face.update(seen, found);
            }
            terminal.draw(|frame| face.draw(frame))?;
            if !event::poll(Duration::from_millis(100))? {
                continue;
            }
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupted || !face.key(key.code) {
                    return Ok(());
                }
            }
        }
    };
    let ended = shown();
    ratatui::restore();
    ended.map_err(failed)?;
    Ok(face.found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_monitor::diagnose::CommRow;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn face() -> Face {
        let row = |rank: u32| RankRow {
            rank: Some(rank),
            host: format!("n{}", rank / 2),
            process: 100 + rank,
            state: if rank == 3 { "computes" } else { "waits" }.to_owned(),
            seconds: 42.0 + f64::from(rank),
            call: if rank == 3 { String::new() } else { "MPI_Barrier, operation 17 of MPI_COMM_WORLD".to_owned() },
            region: if rank == 3 { "solve".to_owned() } else { String::new() },
            moves: 7,
        };
        let sentence = "no progress for 42.0 s: rank 3 is missing in MPI_Barrier, operation 17 of MPI_COMM_WORLD, where ranks 0-2 have waited for 42.0 s; it computes in region solve";
        let comm = CommRow {
            comm: 1,
            name: "MPI_COMM_WORLD".into(),
            sequence: 17,
            function: "MPI_Barrier".into(),
            waiting: 3,
            size: 4,
            behind: vec![3],
        };
        let found = Diagnosis {
            unmonitored: Vec::new(),
            verdict: JobVerdict::Still,
            sentence: sentence.to_owned(),
            quiet: 42.0,
            ranks: vec![3],
            starved: Vec::new(),
            rows: (0..4).map(row).collect(),
            comms: vec![comm],
        };
        Face::new("run1", Collected::default(), found)
    }

    fn drawn(face: &Face) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 20)).unwrap();
        terminal.draw(|frame| face.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..20).map(line).collect()
    }

    #[test]
    fn eighty_columns_are_enough() {
        let mut face = face();
        let lines = drawn(&face);
        assert_eq!(lines[0], "run1: 0 nodes, 1 computes, 3 waits");
        let said = lines[1..4].join(" ");
        assert!(
            said.contains("rank 3 is missing in MPI_Barrier, operation 17") && said.contains("in region solve"),
            "{said}"
        );
        assert_eq!(lines[5], "rank node state    for    call, region");
        assert_eq!(lines[6], "0    n0   waits    42.0 s MPI_Barrier, operation 17 of MPI_COMM_WORLD");
        assert_eq!(lines[9], "3    n1   computes 45.0 s [solve]");
        assert!(
            lines.iter().any(|line| line == "MPI_COMM_WORLD: MPI_Barrier 17, 3 of 4 wait, behind: rank 3"),
            "{lines:#?}"
        );
        assert!(lines[19].starts_with("q quit") && lines[19].ends_with("arrows"), "{}", lines[19]);
        // Sorted by how long, filtered by state, scrolled.
        face.key(KeyCode::Char('l'));
        assert!(drawn(&face)[6].starts_with("3 "));
        face.key(KeyCode::Char('f'));
        assert!(drawn(&face)[6].starts_with("3 ") && drawn(&face)[7].is_empty());
        face.key(KeyCode::Char('f'));
        assert!(drawn(&face)[6].starts_with("2 ") && drawn(&face)[19].contains("shows: waits"));
        face.key(KeyCode::Down);
        assert!(drawn(&face)[6].starts_with("1 "));
        face.key(KeyCode::PageDown);
        assert!(drawn(&face)[6].starts_with("0 ") && drawn(&face)[7].is_empty());
        face.key(KeyCode::Tab);
        assert!(drawn(&face)[5].starts_with("node         ranks"));
        assert!(face.key(KeyCode::Char('x')) && !face.key(KeyCode::Char('q')));
    }

    #[test]
    fn a_long_call_is_told_in_full() {
        let mut face = face();
        let call =
            "MPI_Waitall, 4 requests: receives from ranks 12, 13 (tag 7), sends to ranks 12, 13 (tag 7) of solver.halo";
        face.found.rows[1].call = call.to_owned();
        face.found.rows[1].region = "exchange".to_owned();
        face.found.rows[1].host = "a-node-with-a-long-name.of.some.cluster".to_owned();
        let lines = drawn(&face);
        let at = lines.iter().position(|line| line.starts_with("1 ")).expect("its row");
        let column = lines[at].find("MPI_Waitall").expect("its call");
        let told: Vec<&str> = (at..at + 3).map(|line| lines[line][column..].trim()).collect();
        assert_eq!(told.join(" "), format!("{call} [exchange]"));
        assert!(lines[at].starts_with("1    a-node-with-a-lo waits "), "{lines:#?}");
        assert!(lines[at + 3].starts_with("2 ") && lines[at + 3][column..].starts_with("MPI_Barrier"), "{lines:#?}");
        // One that does not end takes three lines.
        face.found.rows[1].call = "requests ".repeat(99);
        let lines = drawn(&face);
        assert!(lines[at + 2].ends_with('…') && lines[at + 3].starts_with("2 "), "{lines:#?}");
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("abcdefgh ij", 5), ["abcde", "fgh", "ij"]);
    }

    #[test]
    fn a_long_sentence_is_not_cut_while_there_is_room() {
        let mut face = face();
        let wait =
            |rank: u32| format!("rank {rank} in MPI_Recv from rank {} (tag 7, communicator \"solver\")", rank + 1);
        let waits: Vec<String> = (0..8).map(wait).collect();
        face.found.sentence = format!("no progress for 42.0 s: {}, and 2 more", waits.join(", "));
        let lines = drawn(&face);
        let said = lines.iter().position(|line| line.ends_with("and 2 more")).expect("the end of the sentence");
        assert!((4..=9).contains(&said), "{lines:#?}");
        assert_eq!(lines[said + 2], "rank node state    for    call, region");
        assert!(lines[said + 6].starts_with("3 ") && lines[19].starts_with("q quit"), "{lines:#?}");
        // Half of the screen is for the ranks, however long it is.
        face.found.sentence = face.found.sentence.repeat(9);
        let lines = drawn(&face);
        assert_eq!(lines[11], "rank node state    for    call, region");
        assert!(lines[15].starts_with("3 ") && lines[19].starts_with("q quit"), "{lines:#?}");
    }
}
