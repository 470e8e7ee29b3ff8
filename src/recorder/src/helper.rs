//! A thread of its own, which writes full buffers when that disturbs least, and keeps anchors, so that a killed process leaves a rate for its counter.

use crate::clock;
use crate::control;
use crate::load::Load;
use crate::monitor;
use crate::samples;
use crate::session::{self, Session};
use crate::stream::Stream;
use crate::threads::spawn;
use crate::waits::TickLength;
use std::time::{Duration, Instant};

/// How often it looks. Chosen by hand: a full buffer waits so long at most before it is written; more often takes time of a core from the program.
const PERIOD: Duration = Duration::from_millis(10);

/// Starts it, and what else goes on beside the program from now on. Without it, threads write their buffers themselves.
pub(crate) fn start(session: &'static Session) {
    let _ = spawn("clc-recorder", move || run(session));
    if let Some(meter) = &session.meter {
        meter.go_on(&session.streams);
        samples::start(meter, &session.directory, session.rank as usize);
    }
}

fn run(session: &'static Session) {
    // Soon after the start, then every second.
    let (mut looks, mut next) = (0_u64, 1);
    // For a process that is killed: once, and again at the end.
    let mut kept = false;
    let mut load = Load::new(session.control.load);
    let (begin, mut passed) = (Instant::now(), 0);
    let mut ticks = TickLength::new();
    while session::recording().is_some() {
        std::thread::sleep(PERIOD);
        looks += 1;
        kept = kept || session.keep_addresses();
        let now = begin.elapsed().as_nanos() as u64;
        session.control.passed(passed, now);
        passed = now;
        ticks.look();
        let signalled = control::signalled();
        if looks % 10 == 1
            && let Some(board) = monitor::board()
        {
            board.anchor();
        }
        let anchor = (looks == next).then(|| {
            next = (2 * looks).min(looks + 100);
            clock::anchor()
        });
        for one in session.streams.all() {
            if session::recording().is_none() {
                return;
            }
            if signalled && one.buffers.is_ring() {
                one.buffers.want_all();
            }
            while one.buffers.is_due() && is_time(session, one, &mut load, &ticks) {
                if one.buffers.write_due().is_err() {
                    session::stop(crate::file::why_not());
                    return;
                }
            }
            if let Some(anchor) = anchor {
                one.buffers.file.anchor(anchor);
            }
        }
    }
}

/// Whether a full buffer is to be written now: the thread waits anyway, the node has time, or the other buffer is nearly full, too.
fn is_time(session: &Session, stream: &Stream, load: &mut Load, ticks: &TickLength) -> bool {
    session.control.at_once || ticks.waits(stream) || stream.buffers.is_urgent() || load.is_light()
}
