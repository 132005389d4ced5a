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

use super::{
    Greeted,
    apply::{Applier, From},
    end::End,
    ends::Ends,
    reconnect::{Guest, Reconnect},
    record::{Ask, answered},
    takers::Takers,
};
use crate::{
    ShareError,
    fuse::{
        abi::{InHeader, OutHeader, ReadIn, opcode},
        request::{Operation, Request},
    },
    protocol::{
        frame::{self, Kind},
        invalidation::{Invalidation, decode},
    },
    transport::{Inbox, Lost, Outbox},
};

/// Threads that read what the kernel asks.
const READERS: usize = 4;

/// Between the kernel and the stream.
pub(super) struct Channel {
    device: Arc<OwnedFd>,
    line: Line,
    ends: Mutex<Ends>,
    takers: Arc<Takers>,
    end: OnceLock<End>,
    ended: OwnedFd,
}

/// To whom requests go.
enum Line {
    /// To the host that there was at first.
    Once(Arc<Outbox>),
    /// To whichever there is.
    Again(Box<Reconnect>),
}

impl Channel {
    /// Starts all threads.
    pub fn start(device: OwnedFd, host: Greeted, reconnect: Option<Reconnect>) -> Result<Arc<Self>, ShareError> {
        let failed = ShareError::system("start a thread");
        let ended = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from);
        let channel = Arc::new(Self {
            device: Arc::new(device),
            line: reconnect.map_or(Line::Once(host.outbox), |reconnect| Line::Again(Box::new(reconnect))),
            ends: Mutex::default(),
            takers: Arc::default(),
            end: OnceLock::new(),
            ended: ended.map_err(ShareError::system("make an eventfd"))?,
        });
        let start = || {
            let applier = Applier::start(channel.device.clone(), channel.takers.clone())?;
            for _ in 0..READERS {
                let channel = channel.clone();
                thread::Builder::new().name("share-reader".into()).spawn(move || channel.read())?;
            }
            let channel = channel.clone();
            let deliver = move || channel.deliver(host.inbox, &applier);
            thread::Builder::new().name("share-deliver".into()).spawn(deliver)
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

    /// To whom requests go now.
    fn outbox(&self) -> Arc<Outbox> {
        match &self.line {
            Line::Once(outbox) => outbox.clone(),
            Line::Again(reconnect) => reconnect.record().outbox(),
        }
    }

    fn over(&self, end: End) {
        if self.end.set(end).is_ok() {
            self.outbox().close();
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
                        self.ask(bytes);
                    }
                }
                // A request that was given up while it was read; nothing to read after all.
                Err(Errno::INTR | Errno::NOENT | Errno::AGAIN) => {}
                Err(_) => return self.over(End::Unmounted),
            }
        }
    }

    /// Sends a request, or keeps it until it can be sent.
    fn ask(&self, frame: &[u8]) {
        match &self.line {
            Line::Once(outbox) => outbox.send(frame),
            Line::Again(reconnect) => {
                let ask = reconnect.record().asks(frame);
                match ask {
                    Ask::Send(outbox) => outbox.send(frame),
                    Ask::Answer(answer) => self.answer(&answer),
                    Ask::Nothing => {}
                }
            }
        }
    }

    /// Gives the kernel an answer. Who asked may have given up meanwhile (ENOENT); nobody else is to be told of it.
    fn answer(&self, message: &[u8]) {
        let Some(header) = answered(message) else { return };
        self.takers.is_answered(header.unique);
        if let Line::Again(reconnect) = &self.line {
            reconnect.record().is_answered(&header, message);
        }
        let _ = rustix::io::write(&*self.device, message);
    }

    /// Notes who asks for what, and answers a request for what comes behind the last entry of a directory.
    fn is_answered_here(&self, message: &[u8]) -> bool {
        let Ok((header, body)) = InHeader::read_from_prefix(message) else { return false };
        self.takers.asks(&header, body);
        match header.opcode {
            opcode::READDIR | opcode::READDIRPLUS => {}
            opcode::FORGET | opcode::BATCH_FORGET => {
                self.forget_ends(message);
                return false;
            }
            _ => return false,
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

    /// Directories that the kernel does not know any more may change, and come again under the same number.
    fn forget_ends(&self, message: &[u8]) {
        let operation = Request::parse(message).and_then(|request| Ok((request.header.node, request.operation()?)));
        match operation {
            Ok((node, Operation::Forget { .. })) => self.ends().forget(node),
            Ok((_, Operation::BatchForget(list))) => {
                let mut ends = self.ends();
                list.iter().for_each(|one| ends.forget(one.node));
            }
            _ => {}
        }
    }

    fn ends(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the deliverer does.
    fn deliver(&self, mut inbox: Inbox, applier: &Applier) {
        let end = loop {
            let lost = self.deliver_from(&mut inbox, &self.outbox(), applier);
            match &self.line {
                Line::Once(_) => break End::Lost(lost),
                Line::Again(reconnect) => match reconnect.again(self, applier, lost) {
                    Ok(next) => inbox = next,
                    Err(end) => break end,
                },
            }
        };
        self.over(end);
    }

    /// Delivers what comes from one host, until it is lost. Returns why.
    fn deliver_from(&self, inbox: &mut Inbox, outbox: &Arc<Outbox>, applier: &Applier) -> &'static str {
        let mut payload = Vec::new();
        let mut is_asked = false;
        loop {
            let kind = match inbox.next(&mut payload) {
                Ok(kind) => kind,
                Err(Lost::Silent) if is_asked => return "it does not answer",
                Err(Lost::Silent) => {
                    is_asked = true;
                    outbox.send(&frame::whole(Kind::Ping, &[]));
                    continue;
                }
                Err(Lost::Ended | Lost::Denied) => return "the connection has ended",
                Err(Lost::Malformed) => return NONSENSE,
            };
            is_asked = false;
            match kind {
                Kind::Reply => self.answer(&payload),
                Kind::LastReply => {
                    let Some((message, tail)) = payload.split_last_chunk::<16>() else { return NONSENSE };
                    let [directory, position] = [&tail[..8], &tail[8..]]
                        .map(|number| u64::from_le_bytes(number.try_into().unwrap_or_default()));
                    self.ends().put(directory, position, Instant::now());
                    self.answer(message);
                }
                Kind::Invalidate => {
                    if self.apply(&payload, outbox, applier).is_none() {
                        return NONSENSE;
                    }
                }
                Kind::Pong => {}
                _ => return NONSENSE,
            }
        }
    }

    /// Hands over what a host says has changed; `None` if that makes no sense.
    fn apply(&self, payload: &[u8], outbox: &Arc<Outbox>, applier: &Applier) -> Option<()> {
        let (number, list) = decode(payload)?;
        for one in &list {
            if let Invalidation::Node { node, data: true } = one {
                self.ends().forget(*node);
            }
        }
        applier.take(From::Host(outbox.clone(), number), list);
        Some(())
    }
}

impl Guest for Channel {
    fn believes_nothing(&self) {
        self.ends().forget_all();
        self.takers.are_put_off();
    }

    fn answer(&self, message: &[u8]) {
        self.answer(message);
    }

    fn apply(&self, payload: &[u8], outbox: &Arc<Outbox>, applier: &Applier) -> Option<()> {
        self.apply(payload, outbox, applier)
    }

    fn end(&self) -> Option<End> {
        self.end()
    }

    fn ended(&self) -> &OwnedFd {
        self.ended()
    }
}

/// The host does not keep to the protocol.
const NONSENSE: &str = "what it says makes no sense";
