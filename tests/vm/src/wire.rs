//! What host and guest say to each other over the virtio-serial port: one JSON line, then as many raw bytes as it says.
//!
//! ```text
//! host   {"request":"run","argv":["ls"],...,"bytes":0}
//! guest  {"status":{"exit":0},"wall_ms":12,"stdout_bytes":4,"stderr_bytes":0}   bin\n
//! ```
//! The guest speaks first ([`Hello`]), then answers each request with one [`Reply`], in order.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name of the port: the guest finds it as `/dev/virtio-ports/NAME`.
pub const PORT: &str = "inodyne.vm";

/// The guest's first words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub machine: String,
    /// Time since the kernel started, in milliseconds.
    pub uptime_ms: u64,
}

/// What the guest is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Run a program to its end.
    Run {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Added to the guest's environment.
        env: BTreeMap<String, String>,
        /// Where it starts.
        directory: String,
        /// As which user and group; root's is 0.
        uid: u32,
        /// Its whole process group is killed after this many milliseconds.
        timeout_ms: u64,
        /// How many bytes of standard input follow.
        bytes: u64,
    },
    /// Write a file, and the directories above it.
    Put {
        /// Where.
        path: String,
        /// Permission bits.
        mode: u32,
        /// How many bytes of content follow.
        bytes: u64,
    },
    /// Read a file: its content comes as standard output.
    Get {
        /// Which.
        path: String,
    },
    /// Synchronise and power off. There is no answer.
    PowerOff,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// Killed, since its time was over.
    TimedOut,
}

/// What came of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// How it ended; `Exit(127)` where it could not be started, with the reason as standard error.
    pub status: Status,
    /// How long it took, by the guest's clock, in milliseconds.
    pub wall_ms: u64,
    /// How many bytes of standard output follow.
    pub stdout_bytes: u64,
    /// How many bytes of standard error follow these.
    pub stderr_bytes: u64,
}

/// Sends a head and what belongs to it.
///
/// # Errors
/// The other side is gone.
pub fn send(to: &mut impl Write, head: &impl Serialize, bodies: &[&[u8]]) -> io::Result<()> {
    let mut line = serde_json::to_vec(head)?;
    line.push(b'\n');
    to.write_all(&line)?;
    for body in bodies {
        to.write_all(body)?;
    }
    to.flush()
}

/// Receives a head; `None` where the other side has closed.
///
/// # Errors
/// Reading fails, or what came is not such a head.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::from)
}

/// Receives the bytes that a head announced.
///
/// # Errors
/// Fewer came.
pub fn receive_bytes(from: &mut impl BufRead, bytes: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    from.take(bytes).read_to_end(&mut all)?;
    if all.len() as u64 == bytes { Ok(all) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let mut wire = Vec::new();
        let reply = Reply { status: Status::Signal(9), wall_ms: 5, stdout_bytes: 3, stderr_bytes: 1 };
        send(&mut wire, &reply, &[b"a\nb", b"c"]).unwrap();
        send(&mut wire, &Request::Get { path: "/x".into() }, &[]).unwrap();
        let mut from = &wire[..];
        let got: Reply = receive(&mut from).unwrap().unwrap();
        assert_eq!(got.status, Status::Signal(9));
        assert_eq!(receive_bytes(&mut from, got.stdout_bytes).unwrap(), b"a\nb");
        assert_eq!(receive_bytes(&mut from, got.stderr_bytes).unwrap(), b"c");
        assert!(matches!(receive(&mut from).unwrap(), Some(Request::Get { path }) if path == "/x"));
        assert!(receive::<Reply>(&mut from).unwrap().is_none());
    }

    #[test]
    fn a_body_that_ends_early_is_an_error() {
        assert!(receive_bytes(&mut &b"ab"[..], 3).is_err());
    }
}
