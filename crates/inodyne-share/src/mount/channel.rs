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
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
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
    events::{Events, Instead},
    parents::Parents,
    reconnect::{Guest, Reconnect},
    record::{Ask, answered},
    takers::Takers,
    unasked::Unasked,
};
use crate::{
    ShareError,
    fuse::{
        abi::{AttrOut, ForgetIn, InHeader, OutHeader, ReadIn, opcode},
        request::{Operation, Request},
    },
    protocol::{
        frame::{self, Kind},
        happened,
        invalidation::{Invalidation, decode},
    },
    transport::{Inbox, Lost, Outbox},
};

/// Bytes of a request that forgets a node.
const FORGET_LENGTH: usize = size_of::<InHeader>() + size_of::<ForgetIn>();

/// Threads that read what the kernel asks.
const READERS: usize = 4;

/// Between the kernel and the stream.
pub(super) struct Channel {
    device: Arc<OwnedFd>,
    line: Line,
    ends: Mutex<Ends>,
    parents: Mutex<Parents>,
    unasked: Unasked,
    /// Where programs that watch files are to be woken.
    events: Option<Arc<Events>>,
    takers: Arc<Takers>,
    end: OnceLock<End>,
    ended: OwnedFd,
}

/// To whom requests go.
enum Line {
    /// To the host that was there at first.
    Once(Arc<Outbox>),
    /// To whichever there is.
    Again(Box<Reconnect>),
}

impl Channel {
    /// Starts all threads.
    pub fn start(
        device: Arc<OwnedFd>,
        host: Greeted,
        reconnect: Option<Reconnect>,
        events: Option<Arc<Events>>,
    ) -> Result<Arc<Self>, ShareError> {
        let failed = ShareError::system("start a thread");
        let ended = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from);
        let channel = Arc::new(Self {
            device,
            line: reconnect.map_or(Line::Once(host.outbox), |reconnect| Line::Again(Box::new(reconnect))),
            ends: Mutex::default(),
            parents: Mutex::default(),
            unasked: Unasked::new(host.is_squashed),
            events,
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
                        self.answer_release(&bytes[frame::HEADER..]);
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

    /// Gives the kernel an answer. Whoever asked may have given up in the meantime (ENOENT); nobody else needs to be told of that.
    fn answer(&self, message: &[u8]) {
        self.answer_beside(message, None);
    }

    /// The same, where the host also sends a directory's attributes.
    fn answer_beside(&self, message: &[u8], said: Option<(u64, AttrOut)>) {
        let Some(header) = answered(message) else { return };
        self.parents().is_answered(header.unique, said, Instant::now());
        self.takers.is_answered(header.unique);
        if let Line::Again(reconnect) = &self.line {
            reconnect.record().is_answered(&header, message);
        }
        let instead = self.events.as_ref().and_then(|events| events.pretence.answer(&header, message));
        let (message, unwanted) = instead.as_ref().map_or((message, None), |(instead, node)| (instead, *node));
        let _ = rustix::io::write(&*self.device, message);
        if let Some(node) = unwanted {
            let header = InHeader { len: FORGET_LENGTH as u32, opcode: opcode::FORGET, node, ..InHeader::default() };
            let message = [header.as_bytes(), ForgetIn { lookups: 1 }.as_bytes()].concat();
            self.ask(&frame::whole(Kind::Request, &message));
        }
    }

    /// Notes who asks for what, and answers what the host need not be asked, such as what comes after the last entry of a directory.
    fn is_answered_here(&self, message: &[u8]) -> bool {
        let Ok((header, body)) = InHeader::read_from_prefix(message) else { return false };
        self.takers.asks(&header, body);
        let pretended = self.events.as_ref().and_then(|events| events.pretence.asks(&header, body));
        match pretended {
            Some(Instead::Ask(mut frame)) => {
                frame::seal(&mut frame, Kind::Request);
                self.ask(&frame);
                return true;
            }
            Some(Instead::Answer(answer)) => {
                self.takers.is_answered(header.unique);
                self.say(header.unique, answer.as_deref());
                return true;
            }
            None => {}
        }
        self.ends().asks(&header, body);
        let attributes = self.parents().asks(&header, body, Instant::now());
        if let Some(attributes) = attributes {
            self.takers.is_answered(header.unique);
            self.say(header.unique, Ok(attributes.as_bytes()));
            return true;
        }
        let answer = match header.opcode {
            opcode::READDIR | opcode::READDIRPLUS => {
                let Ok((ask, _)) = ReadIn::read_from_prefix(body) else { return false };
                self.ends().take(header.node, ask.offset, Instant::now()).then_some(Ok(()))
            }
            opcode::FORGET | opcode::BATCH_FORGET => {
                self.forget(message);
                None
            }
            _ => self.unasked.answer(&header, body),
        };
        let Some(answer) = answer else { return false };
        self.takers.is_answered(header.unique);
        self.say(header.unique, answer.as_ref().map(|()| &[][..]));
        true
    }

    /// A file is closed: the host is told, and does not say when it is done, since nobody waits for that, and nothing can go wrong.
    fn answer_release(&self, message: &[u8]) {
        if let Ok((header, _)) = InHeader::read_from_prefix(message)
            && header.opcode == opcode::RELEASE
        {
            self.say(header.unique, Ok(&[]));
        }
    }

    /// An answer from the mounter itself.
    fn say(&self, unique: u64, done: Result<&[u8], &Errno>) {
        let (error, body) = done.map_or_else(|errno| (-errno.raw_os_error(), &[][..]), |body| (0, body));
        let header = OutHeader { len: (size_of::<OutHeader>() + body.len()) as u32, error, unique };
        let _ = rustix::io::write(&*self.device, &[header.as_bytes(), body].concat());
    }

    /// Directories that the kernel no longer knows may change, and come back under the same number.
    fn forget(&self, message: &[u8]) {
        let operation = Request::parse(message).and_then(|request| Ok((request.header.node, request.operation()?)));
        let forget = |node| {
            self.ends().forget(node);
            self.parents().forget(node);
        };
        match operation {
            Ok((node, Operation::Forget { .. })) => forget(node),
            Ok((_, Operation::BatchForget(list))) => list.iter().for_each(|one| forget(one.node)),
            _ => {}
        }
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parents(&self) -> MutexGuard<'_, Parents> {
        self.parents.lock().unwrap_or_else(PoisonError::into_inner)
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
                    outbox.send_ahead(&frame::whole(Kind::Ping, &[]));
                    continue;
                }
                Err(Lost::Ended | Lost::Denied) => return "the connection has ended",
                Err(Lost::Malformed) => return NONSENSE,
            };
            is_asked = false;
            match kind {
                Kind::Reply => self.answer(&payload),
                Kind::LastReply => {
                    let Some((message, tail)) = payload.split_last_chunk::<{ frame::LAST }>() else { return NONSENSE };
                    let [directory, position] = [&tail[..8], &tail[8..]]
                        .map(|number| u64::from_le_bytes(number.try_into().unwrap_or_default()));
                    self.ends().put(directory, position, Instant::now());
                    self.answer(message);
                }
                Kind::ChangedReply => {
                    let Some((message, said)) = changed(&payload) else { return NONSENSE };
                    self.answer_beside(message, Some(said));
                }
                Kind::Invalidate => {
                    if self.apply(&payload, outbox, applier).is_none() {
                        return NONSENSE;
                    }
                }
                Kind::Happened => {
                    let Some(list) = happened::decode(&payload) else { return NONSENSE };
                    self.events.iter().for_each(|events| events.take(list.clone()));
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
            match one {
                Invalidation::Node { node, data } => {
                    self.parents().forget(*node);
                    if *data {
                        self.ends().forget(*node);
                    }
                }
                Invalidation::Name { directory, .. } => self.parents().forget(*directory),
                Invalidation::AllNames => self.parents().forget_all(),
            }
        }
        applier.take(From::Host(outbox.clone(), number), list);
        Some(())
    }
}

impl Guest for Channel {
    fn believes_nothing(&self) {
        self.ends().forget_all();
        self.parents().forget_all();
        self.unasked.is_lost();
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

/// A message, and a directory's attributes.
fn changed(payload: &[u8]) -> Option<(&[u8], (u64, AttrOut))> {
    let (message, tail) = payload.split_last_chunk::<{ frame::CHANGED }>()?;
    let (directory, attributes) = tail.split_first_chunk()?;
    let (attributes, _) = AttrOut::read_from_prefix(attributes).ok()?;
    Some((message, (u64::from_le_bytes(*directory), attributes)))
}

/// The host does not keep to the protocol.
const NONSENSE: &str = "what it says makes no sense";
