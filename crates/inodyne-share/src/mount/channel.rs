//! Requests to the host, answers to the kernel.
//!
//! ```text
//!   kernel -- read --> several readers --> stream --> host
//!   kernel <- write -- one deliverer  <--- stream <-- host
//!                        |
//!                        +-- what has changed --> `apply`: other threads
//! ```
//!
//! The deliverer never tells the kernel what has changed: that may wait for a lock that is held until an answer comes, which
//! only the deliverer can bring.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
    time::Instant,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
};
use zerocopy::{FromBytes, IntoBytes};

use super::{apply::Applier, ends::Ends, takers::Takers};
use crate::{
    ShareError,
    fuse::abi::{InHeader, OutHeader, ReadIn, opcode},
    protocol::{
        frame::{self, Kind},
        invalidation::{Invalidation, decode},
    },
    transport::{Inbox, Lost, Outbox},
};

/// Threads that read what the kernel asks.
const READERS: usize = 4;

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Somebody has unmounted it.
    Unmounted,
    /// The host is not there any more.
    Lost(&'static str),
}

/// Between the kernel and the stream.
pub(super) struct Channel {
    device: Arc<OwnedFd>,
    outbox: Arc<Outbox>,
    ends: Mutex<Ends>,
    takers: Arc<Takers>,
    end: OnceLock<End>,
    ended: OwnedFd,
}

impl Channel {
    /// Starts all threads.
    pub fn start(device: OwnedFd, outbox: Arc<Outbox>, inbox: Inbox) -> Result<Arc<Self>, ShareError> {
        let failed = ShareError::system("start a thread");
        let ended = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from);
        let channel = Arc::new(Self {
            device: Arc::new(device),
            outbox,
            ends: Mutex::default(),
            takers: Arc::default(),
            end: OnceLock::new(),
            ended: ended.map_err(ShareError::system("make an eventfd"))?,
        });
        let start = || {
            let applier = Applier::start(channel.device.clone(), channel.outbox.clone(), channel.takers.clone())?;
            for _ in 0..READERS {
                let channel = channel.clone();
                thread::Builder::new().name("share-reader".into()).spawn(move || channel.read())?;
            }
            let channel = channel.clone();
            thread::Builder::new().name("share-deliver".into()).spawn(move || channel.deliver(inbox, &applier))
        };
        start().map_err(failed)?;
        Ok(channel)
    }

    /// What becomes readable at the end.
    pub fn ended(&self) -> &OwnedFd {
        &self.ended
    }

    /// Why it is over, if it is.
    pub fn end(&self) -> Option<End> {
        self.end.get().copied()
    }

    fn over(&self, end: End) {
        if self.end.set(end).is_ok() {
            self.outbox.close();
            let _ = rustix::io::write(&self.ended, &1u64.to_ne_bytes());
        }
    }

    /// What a reader does.
    fn read(&self) {
        let mut buffer = vec![0; frame::HEADER + frame::MOST];
        loop {
            match rustix::io::read(&*self.device, &mut buffer[frame::HEADER..]) {
                Ok(length) => {
                    let bytes = &mut buffer[..frame::HEADER + length];
                    if !self.is_answered_here(&bytes[frame::HEADER..]) {
                        frame::seal(bytes, Kind::Request);
                        self.outbox.send(bytes);
                    }
                }
                // A request that was given up while it was read; nothing to read after all.
                Err(Errno::INTR | Errno::NOENT | Errno::AGAIN) => {}
                Err(_) => return self.over(End::Unmounted),
            }
        }
    }

    /// Notes who asks for what, and answers a request for what comes behind the last entry of a directory.
    fn is_answered_here(&self, message: &[u8]) -> bool {
        let Ok((header, body)) = InHeader::read_from_prefix(message) else { return false };
        self.takers.asks(&header, body);
        if !matches!(header.opcode, opcode::READDIR | opcode::READDIRPLUS) {
            return false;
        }
        let Ok((ask, _)) = ReadIn::read_from_prefix(body) else { return false };
        let is_end = self.ends().take(header.node, ask.offset, Instant::now());
        if is_end {
            self.takers.is_answered(header.unique);
            let reply = OutHeader { len: size_of::<OutHeader>() as u32, error: 0, unique: header.unique };
            let _ = rustix::io::write(&*self.device, reply.as_bytes());
        }
        is_end
    }

    fn ends(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the deliverer does.
    fn deliver(&self, mut inbox: Inbox, applier: &Applier) {
        let mut payload = Vec::new();
        let mut is_asked = false;
        let lost = loop {
            let kind = match inbox.next(&mut payload) {
                Ok(kind) => kind,
                Err(Lost::Silent) if is_asked => break "it does not answer",
                Err(Lost::Silent) => {
                    is_asked = true;
                    self.outbox.send(&frame::whole(Kind::Ping, &[]));
                    continue;
                }
                Err(Lost::Ended | Lost::Denied) => break "the connection has ended",
                Err(Lost::Malformed) => break "what it says makes no sense",
            };
            is_asked = false;
            let message = match kind {
                Kind::Reply => &payload[..],
                Kind::LastReply => {
                    let Some((message, tail)) = payload.split_last_chunk::<16>() else { break NONSENSE };
                    let [directory, position] = [&tail[..8], &tail[8..]]
                        .map(|number| u64::from_le_bytes(number.try_into().unwrap_or_default()));
                    self.ends().put(directory, position, Instant::now());
                    message
                }
                Kind::Invalidate => {
                    let Some((number, list)) = decode(&payload) else { break NONSENSE };
                    for one in &list {
                        if let Invalidation::Node { node, data: true } = one {
                            self.ends().forget(*node);
                        }
                    }
                    applier.take(number, list);
                    continue;
                }
                Kind::Pong => continue,
                _ => break NONSENSE,
            };
            if let Ok((header, _)) = OutHeader::read_from_prefix(message) {
                self.takers.is_answered(header.unique);
            }
            // Who asked may have given up meanwhile (ENOENT); nobody else is to be told of it.
            let _ = rustix::io::write(&*self.device, message);
        };
        self.over(End::Lost(lost));
    }
}

/// The host does not keep to the protocol.
const NONSENSE: &str = "what it says makes no sense";
