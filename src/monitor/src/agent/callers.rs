//! Who is connected to an agent to ask it something.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that are open at the same time. Chosen by hand: each is a thread; with fewer, somebody with the key waits behind those who say
/// nothing.
const MOST: usize = 16;
/// The same with those that are just being closed to make room. Chosen by hand: bounds the threads where many connect faster than others are shut
/// down.
const LIMIT: usize = 4 * MOST;

/// The connections of an agent. Whoever connects and does not ask makes room for others: it might be somebody who has no key.
#[derive(Default)]
pub(super) struct Callers {
    known: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    next: u64,
    open: usize,
    /// Those from which no valid question has come yet, the oldest first.
    silent: BTreeMap<u64, TcpStream>,
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in and gives its number; none if all that are open are being answered.
    pub(super) fn admit(&self, stream: &TcpStream) -> Option<u64> {
        let mut known = self.lock();
        if known.open >= MOST {
            let (_, silent) = known.silent.pop_first()?;
            let _ = silent.shutdown(Shutdown::Both);
        }
        if known.open >= LIMIT {
            return None;
        }
        let number = known.next;
        let copy = stream.try_clone().ok()?;
        known.silent.insert(number, copy);
        (known.next, known.open) = (number + 1, known.open + 1);
        Some(number)
    }

    /// Its question has come.
    pub(super) fn has_asked(&self, number: u64) {
        self.lock().silent.remove(&number);
    }

    /// It is closed.
    pub(super) fn is_closed(&self, number: u64) {
        let mut known = self.lock();
        known.silent.remove(&number);
        known.open = known.open.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Question, answer, ask};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const KEY: [u8; 32] = [7; 32];

    /// Answers each question with itself after so long.
    fn serve(after: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let callers = Arc::new(Callers::default());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(number) = callers.admit(&stream) else { continue };
                let callers = Arc::clone(&callers);
                std::thread::spawn(move || {
                    let _ = answer(stream, &KEY, |question| {
                        callers.has_asked(number);
                        std::thread::sleep(after);
                        serde_json::to_vec(&question).expect("JSON")
                    });
                    callers.is_closed(number);
                });
            }
        });
        address
    }

    #[test]
    fn those_who_connect_and_say_nothing_do_not_keep_others_out() {
        let address = serve(Duration::ZERO);
        let _idle: Vec<TcpStream> = (0..3 * MOST).map(|_| TcpStream::connect(address).expect("open")).collect();
        let (question, begun) = (Question::Put("phase".into(), "solve".into()), Instant::now());
        let answer: Question = ask(address, &KEY, &question, Duration::from_secs(10)).expect("an answer");
        assert_eq!(answer, question);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[test]
    fn those_who_are_being_answered_are_not_sent_away() {
        let address = serve(Duration::from_millis(700));
        let question = Question::Put("phase".into(), "solve".into());
        let asked: Vec<_> = (0..2 * MOST)
            .map(|_| {
                let question = question.clone();
                std::thread::spawn(move || ask::<Question>(address, &KEY, &question, Duration::from_secs(10)).is_ok())
            })
            .collect();
        let answered = asked.into_iter().map(|asked| asked.join().expect("ends")).filter(|ok| *ok);
        assert!(answered.count() >= MOST);
    }
}
