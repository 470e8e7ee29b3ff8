//! What programs of this node give and ask without a key: over a socket beside the states of the processes, in a directory that only this user can enter.
//!
//! A request is a line, with as many bytes after it as it says; so is an answer. Several may follow each other on one connection.
//!
//! | request | answer |
//! | --- | --- |
//! | `put KEY LENGTH` and the value | `ok`, or `no` and why |
//! | `get KEY` | for each node that has one `NUMBER NODE LENGTH` and the value; then `end` |
//! | `read QUANTITY` | the same of what the sensors of the nodes read |
//! | `value NAME` | the value of a formula or an aggregate; `no` and why |
//! | `node` | the number of this node and of all that are alive |

use super::AgentState;
use crate::resources::Quantity;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Its name in the directory of the states.
pub(super) const NAME: &str = "socket";
/// So many programs at the same time. Chosen by hand: each is a thread; more than the processes of most nodes.
const PROGRAMS: usize = 512;
/// No line is longer, nor any value. Chosen by hand: gossip has to carry values to all nodes; a limit for what is no request.
const LINE: u64 = 1 << 10;
/// How long a program may take for the rest of a request, or for taking an answer. Chosen by hand: a shorter time gives up on a busy node, a longer
/// one keeps a thread for a program that is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts to answer. Without a socket, because its name gets too long, nobody is answered.
pub(super) fn open(directory: &Path, shared: &Arc<AgentState>) {
    let path = directory.join(NAME);
    // That of an agent that was killed; this one has its mark.
    let _ = std::fs::remove_file(&path);
    let Ok(listener) = UnixListener::bind(&path) else { return };
    let shared = Arc::clone(shared);
    let _ = std::thread::Builder::new().name("desk".into()).spawn(move || {
        let there = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                std::thread::sleep(super::LOOK);
                continue;
            };
            if there.fetch_add(1, Ordering::Relaxed) < PROGRAMS {
                let (shared, own) = (Arc::clone(&shared), Arc::clone(&there));
                let spawned = std::thread::Builder::new().name("program".into()).spawn(move || {
                    // It has ended, or says what nobody understands.
                    let _ = serve(&stream, &|request| answer(&shared, request));
                    own.fetch_sub(1, Ordering::Relaxed);
                });
                if spawned.is_ok() {
                    continue;
                }
            }
            there.fetch_sub(1, Ordering::Relaxed);
        }
    });
}

/// A request.
#[derive(Debug, PartialEq)]
enum ProgramRequest<'a> {
    Put(&'a str, String),
    Get(&'a str),
    Read(&'a str),
    Value(&'a str),
    Node,
}

/// Answers all requests of a connection, until it ends or one makes no sense.
fn serve(stream: &UnixStream, answer: &dyn Fn(ProgramRequest) -> Vec<u8>) -> Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut input = BufReader::new(stream);
    loop {
        // Between requests, as long as it likes.
        stream.set_read_timeout(None)?;
        if input.fill_buf()?.is_empty() {
            return Ok(());
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        input.by_ref().take(LINE).read_line(&mut line)?;
        let Some(line) = line.strip_suffix('\n') else { return Ok(()) };
        let words: Vec<&str> = line.split(' ').collect();
        let request = match words[..] {
            ["put", key, length] => {
                let Some(length) = length.parse::<u64>().ok().filter(|&length| length <= LINE) else { return Ok(()) };
                let mut value = Vec::new();
                if input.by_ref().take(length).read_to_end(&mut value)? as u64 != length {
                    return Ok(());
                }
                String::from_utf8(value).ok().map(|value| ProgramRequest::Put(key, value))
            }
            ["get", key] => Some(ProgramRequest::Get(key)),
            ["read", name] => Some(ProgramRequest::Read(name)),
            ["value", name] => Some(ProgramRequest::Value(name)),
            ["node"] => Some(ProgramRequest::Node),
            _ => return Ok(()),
        };
        let bytes = request.map_or_else(|| b"no: not a text\n".to_vec(), answer);
        (&mut &*stream).write_all(&bytes)?;
    }
}

fn answer(shared: &AgentState, request: ProgramRequest) -> Vec<u8> {
    let list = |values: Vec<(u32, String, String)>| {
        let mut bytes = Vec::new();
        for (number, host, value) in values {
            bytes.extend_from_slice(format!("{number} {} {}\n", host.replace(' ', "_"), value.len()).as_bytes());
            bytes.extend_from_slice(value.as_bytes());
        }
        bytes.extend_from_slice(b"end\n");
        bytes
    };
    match request {
        ProgramRequest::Put(key, value) => {
            if shared.put(key, &value) {
                b"ok\n".to_vec()
            } else {
                b"no: the data of a node are too long\n".to_vec()
            }
        }
        ProgramRequest::Get(key) => {
            let heard = shared.heard();
            let there = heard.data.iter().filter(|datum| datum.key == key);
            list(there.map(|datum| (datum.number, datum.host.clone(), datum.value.clone())).collect())
        }
        ProgramRequest::Read(name) => {
            let heard = shared.heard();
            let Some(quantity) = Quantity::named(name) else { return list(Vec::new()) };
            let there = heard.slow.readings.iter().filter_map(|(number, host, reading)| {
                Some((*number, host.clone(), reading.get(quantity)?.to_string()))
            });
            list(there.collect())
        }
        ProgramRequest::Value(name) => {
            let heard = shared.heard();
            let formula = heard.slow.formulas.iter().find(|formula| formula.name == name).map(|formula| formula.value);
            let usual = heard.slow.job.iter().find(|value| value.0 == name).map(|value| Some(value.1));
            match formula.or(usual) {
                Some(Some(value)) => format!("{value}\n").into_bytes(),
                Some(None) => b"no: not known yet\n".to_vec(),
                None => b"no: there is no formula of this name\n".to_vec(),
            }
        }
        ProgramRequest::Node => {
            let heard = shared.heard();
            let alive = 1 + heard.members.iter().filter(|known| known.liveness == "alive").count();
            format!("{} {alive}\n", shared.number).into_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Shutdown;

    /// What is answered to these bytes; answers are the requests as they were understood.
    fn said(bytes: &[u8]) -> String {
        let (client, server) = UnixStream::pair().unwrap();
        let serving = std::thread::spawn(move || {
            let _ = serve(&server, &|request| format!("{request:?}\n").into_bytes());
        });
        let _ = (&client).write_all(bytes);
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        let _ = (&client).read_to_string(&mut answer);
        serving.join().unwrap();
        answer
    }

    #[test]
    fn requests_follow_each_other() {
        let answer = said(b"put queue 3\n1 2get queue\nread load1\nvalue spread\nnode\n");
        assert_eq!(answer, "Put(\"queue\", \"1 2\")\nGet(\"queue\")\nRead(\"load1\")\nValue(\"spread\")\nNode\n");
        assert_eq!(said(b"put queue 1\n\xffnode\n"), "no: not a text\nNode\n");
    }

    #[test]
    fn what_makes_no_sense_ends_the_connection() {
        for bytes in [&b"put a\nnode\n"[..], b"put a 9999999\nnode\n", b"put a -1\n", b"gimme\nnode\n", b"node"] {
            assert_eq!(said(bytes), "", "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(said(&[b'a'; 3000]), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            said(&bytes);
        }
    }
}
