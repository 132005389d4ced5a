//! What must be known to carry on after a lost connection: what the kernel holds, and which of its requests were not answered.
//!
//! ```text
//!             begin: told nothing        tell: a host is told              resume: all that waits
//!             of what is held            of what is held                   is sent or answered
//!  connected ------|--- the host is gone -----|--- it takes it over -----------|--- connected ---->
//!                  a release and a forget        both are sent to it later
//!                  are noted
//! ```
//!
//! While there is no connection, requests wait. Those that were already sent may have been carried out: what can be done twice is
//! sent again; for what cannot, nobody knows whether it was done, and whoever asked gets an error (EIO).

use std::{collections::BTreeMap, sync::Arc};

use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::held::Held;
use crate::{
    fuse::{
        abi::{EPOCH_SINCE, InHeader, OutHeader, ROOT, opcode, set},
        request::{Operation, Request},
    },
    protocol::{frame, invalidation::Invalidation, resume::Kept},
    transport::Outbox,
};

/// All of it.
pub(super) struct Record {
    outbox: Arc<Outbox>,
    state: State,
    held: Held,
    /// Requests that are not answered, by number, as frames.
    asked: BTreeMap<u64, Asked>,
    /// Requests that have no answer, to be sent later to a host that is just being told of what is held.
    later: Vec<Vec<u8>>,
    /// The first request, and the answer to it.
    init: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connected,
    /// No host knows of anything.
    Lost,
    /// A host was told of what was held.
    Told,
}

struct Asked {
    frame: Vec<u8>,
    was_sent: bool,
    /// Whoever asked does not want to wait any longer, and the host was told so.
    is_interrupted: bool,
}

/// What to do with a request that the kernel has made.
pub(super) enum Ask {
    /// Send it there.
    Send(Arc<Outbox>),
    /// Write this answer.
    Answer(Vec<u8>),
    /// Nothing: it waits, or is done.
    Nothing,
}

/// What is left to be done when there is a host again.
#[derive(Default)]
pub(super) struct Rest {
    /// Frames for it.
    pub frames: Vec<Vec<u8>>,
    /// Answers for the kernel.
    pub answers: Vec<Vec<u8>>,
}

impl Record {
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self {
            outbox,
            state: State::Connected,
            held: Held::default(),
            asked: BTreeMap::new(),
            later: Vec::new(),
            init: None,
        }
    }

    /// To whom requests are sent now.
    pub fn outbox(&self) -> Arc<Outbox> {
        self.outbox.clone()
    }

    /// The kernel asks; `frame` is sealed.
    pub fn asks(&mut self, frame: &[u8]) -> Ask {
        let message = &frame[frame::HEADER..];
        let Ok(request) = Request::parse(message) else { return Ask::Nothing };
        let unique = request.header.unique;
        match request.operation() {
            Ok(Operation::Forget { lookups }) => {
                self.held.forgot(request.header.node, lookups);
                return self.without_answer(frame);
            }
            Ok(Operation::BatchForget(list)) => {
                list.iter().for_each(|one| self.held.forgot(one.node, one.lookups));
                return self.without_answer(frame);
            }
            Ok(Operation::Interrupt { unique }) => {
                if self.state != State::Connected {
                    return self.interrupted(unique).map_or(Ask::Nothing, Ask::Answer);
                }
                if let Some(asked) = self.asked.get_mut(&unique) {
                    asked.is_interrupted = true;
                }
                return Ask::Send(self.outbox());
            }
            // A flush ends locks, and all of them are lost: whoever closes a file need not wait.
            Ok(Operation::Flush(ask)) if self.state != State::Connected => {
                self.held.unlocked(request.header.node, ask.lock_owner);
                return Ask::Answer(answer(unique, Ok(())));
            }
            Ok(Operation::Release(ask)) => {
                let is_held = self.held.closed(ask.fh);
                // A host that was told of what is held, without this file, knows nothing of it.
                let is_known = is_held || self.state != State::Told;
                return if is_known { self.without_answer(frame) } else { Ask::Nothing };
            }
            _ => {}
        }
        let was_sent = self.state == State::Connected;
        self.asked.insert(unique, Asked { frame: frame.into(), was_sent, is_interrupted: false });
        if was_sent { Ask::Send(self.outbox()) } else { Ask::Nothing }
    }

    fn without_answer(&mut self, frame: &[u8]) -> Ask {
        match self.state {
            State::Connected => return Ask::Send(self.outbox()),
            State::Lost => {}
            State::Told => self.later.push(frame.into()),
        }
        Ask::Nothing
    }

    /// Whoever made this request does not want to wait any longer.
    fn interrupted(&mut self, unique: u64) -> Option<Vec<u8>> {
        let asked = self.asked.remove(&unique)?;
        let is_undone = !asked.was_sent || again(&asked.frame[frame::HEADER..]) == Again::Send;
        Some(answer(unique, Err(if is_undone { Errno::INTR } else { Errno::IO })))
    }

    /// The host has answered; to be called before the kernel gets the answer.
    pub fn is_answered(&mut self, header: &OutHeader, message: &[u8]) {
        let Some(asked) = self.asked.remove(&header.unique) else { return };
        let body = message.get(size_of::<OutHeader>()..).unwrap_or_default();
        let Ok(request) = Request::parse(&asked.frame[frame::HEADER..]) else { return };
        if header.error != 0 {
            return;
        }
        self.held.learn(&request, body);
        if request.header.opcode == opcode::INIT {
            self.init = Some((asked.frame, body.into()));
        }
    }

    /// The connection is lost, or could not be made. Returns what the kernel must not believe any more, and answers for those who do not
    /// want to wait, or need not.
    pub fn begin(&mut self) -> (Vec<Invalidation>, Vec<Vec<u8>>) {
        self.state = State::Lost;
        self.later.clear();
        let mut wrong = vec![Invalidation::data(ROOT), Invalidation::AllNames];
        wrong.extend(self.held.nodes().map(|(node, ..)| Invalidation::data(node)));
        if !self.has_epoch() {
            wrong.extend(self.held.nodes().map(|(_, directory, name)| Invalidation::name(directory, name)));
        }
        let mut answers = Vec::new();
        self.asked.retain(|unique, asked| {
            let is_done = asked.was_sent && again(&asked.frame[frame::HEADER..]) == Again::Done;
            if is_done {
                answers.push(answer(*unique, Ok(())));
            }
            !is_done
        });
        let interrupted = self.asked.iter().filter(|(_, asked)| asked.is_interrupted).map(|(unique, _)| *unique);
        let interrupted: Vec<_> = interrupted.collect();
        answers.extend(interrupted.into_iter().filter_map(|unique| self.interrupted(unique)));
        (wrong, answers)
    }

    /// Whether the kernel can be told that no name is valid (Linux 6.16).
    fn has_epoch(&self) -> bool {
        let minor = |(frame, _): &(Vec<u8>, _)| match Request::parse(&frame[frame::HEADER..]).ok()?.operation().ok()? {
            Operation::Init(ask) => Some(ask.minor),
            _ => None,
        };
        self.init.as_ref().and_then(minor).is_some_and(|minor| minor >= EPOCH_SINCE)
    }

    /// What a host is to be told, now.
    pub fn tell(&mut self, has_crashed: bool) -> Vec<Kept> {
        self.state = State::Told;
        self.held.list(has_crashed)
    }

    /// The host does not know it.
    pub fn lost(&mut self, kept: &Kept) {
        self.held.lost(kept);
    }

    /// The kernel's first request, to be answered again, and the answer that it got.
    pub fn init(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.init.clone()
    }

    /// There is a host again, which knows all that the kernel holds.
    pub fn resume(&mut self, outbox: Arc<Outbox>) -> Rest {
        self.outbox = outbox;
        self.state = State::Connected;
        let mut rest = Rest { frames: std::mem::take(&mut self.later), answers: Vec::new() };
        self.asked.retain(|unique, asked| {
            let again = if asked.was_sent { again(&asked.frame[frame::HEADER..]) } else { Again::Send };
            asked.was_sent = true;
            match again {
                Again::Send => rest.frames.push(asked.frame.clone()),
                Again::Done => rest.answers.push(answer(*unique, Ok(()))),
                Again::Unknown => rest.answers.push(answer(*unique, Err(Errno::IO))),
            }
            again == Again::Send
        });
        rest
    }
}

/// What becomes of a request that was sent and is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// It may just as well be done twice.
    Send,
    /// The end of the connection has done it.
    Done,
    /// Nobody knows whether it was done.
    Unknown,
}

fn again(message: &[u8]) -> Again {
    let Ok(operation) = Request::parse(message).and_then(|request| request.operation()) else { return Again::Unknown };
    match operation {
        Operation::Lookup { .. }
        | Operation::GetAttr(_)
        | Operation::ReadLink
        | Operation::Open(_)
        | Operation::Read(_)
        | Operation::Fsync { .. }
        | Operation::SyncFs
        | Operation::StatFs
        | Operation::GetXattr { .. }
        | Operation::ListXattr { .. }
        | Operation::OpenDir
        | Operation::ReadDir { .. }
        | Operation::GetLk(_)
        // The lock, if it was taken, went with the connection.
        | Operation::SetLk { .. }
        | Operation::Lseek(_)
        | Operation::Ioctl
        | Operation::Init(_)
        | Operation::Unknown => Again::Send,
        Operation::Write { ask, .. } if ask.flags as i32 & libc::O_APPEND == 0 => Again::Send,
        // Another guest may have written beyond the new end in the meantime.
        Operation::SetAttr(ask) if ask.valid & set::SIZE == 0 => Again::Send,
        Operation::Flush(_) | Operation::ReleaseDir | Operation::Destroy => Again::Done,
        _ => Again::Unknown,
    }
}

/// An answer without a body.
fn answer(unique: u64, done: Result<(), Errno>) -> Vec<u8> {
    let error = done.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
    OutHeader { len: size_of::<OutHeader>() as u32, error, unique }.as_bytes().into()
}

/// Which request an answer is for.
pub(super) fn answered(message: &[u8]) -> Option<OutHeader> {
    OutHeader::read_from_prefix(message).ok().map(|(header, _)| header)
}

/// The number of a request in a frame.
pub(super) fn unique(frame: &[u8]) -> Option<u64> {
    InHeader::read_from_prefix(frame.get(frame::HEADER..)?).ok().map(|(header, _)| header.unique)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fuse::abi::{EntryOut, FlushIn, ForgetIn, InterruptIn, LkIn, OpenIn, OpenOut, ReleaseIn, SetAttrIn, WriteIn},
        protocol::frame::Kind,
        transport::pair,
    };

    fn record() -> Record {
        Record::new(Outbox::new(pair().0))
    }

    fn request(opcode: u32, unique: u64, node: u64, body: &[&[u8]]) -> Vec<u8> {
        let body = body.concat();
        let header = InHeader { len: (40 + body.len()) as u32, opcode, unique, node, ..InHeader::default() };
        frame::whole(Kind::Request, &[header.as_bytes(), &body].concat())
    }

    fn ask(record: &mut Record, opcode: u32, unique: u64, node: u64, body: &[&[u8]]) -> Ask {
        record.asks(&request(opcode, unique, node, body))
    }

    fn is_answered(record: &mut Record, unique: u64, body: &[u8]) {
        let header = OutHeader { len: (16 + body.len()) as u32, error: 0, unique };
        record.is_answered(&header, &[header.as_bytes(), body].concat());
    }

    /// The kernel looks up a file and opens it.
    fn opens(record: &mut Record, node: u64, fh: u64) {
        ask(record, opcode::LOOKUP, 1000 + node, 1, &[b"f\0"]);
        is_answered(record, 1000 + node, EntryOut { node, ..EntryOut::default() }.as_bytes());
        ask(record, opcode::OPEN, 2000 + fh, node, &[OpenIn::default().as_bytes()]);
        is_answered(record, 2000 + fh, OpenOut { fh, ..OpenOut::default() }.as_bytes());
    }

    fn error(answer: &[u8]) -> (u64, i32) {
        let header = answered(answer).unwrap();
        (header.unique, -header.error)
    }

    #[test]
    fn what_was_sent_is_sent_again_only_where_that_does_no_harm() {
        let mut record = record();
        let name = [&b"new\0"[..]];
        let (plain, append) = (WriteIn::default(), WriteIn { flags: libc::O_APPEND as u32, ..WriteIn::default() });
        let (times, size) = (SetAttrIn::default(), SetAttrIn { valid: set::SIZE, ..SetAttrIn::default() });
        for (unique, opcode, body) in [
            (2, opcode::GETATTR, &[&[0; 16][..]][..]),
            (4, opcode::UNLINK, &name),
            (6, opcode::WRITE, &[plain.as_bytes()]),
            (8, opcode::WRITE, &[append.as_bytes()]),
            (10, opcode::SETATTR, &[times.as_bytes()]),
            (12, opcode::SETATTR, &[size.as_bytes()]),
            (14, opcode::SETLKW, &[LkIn::default().as_bytes()]),
            (16, opcode::RELEASEDIR, &[ReleaseIn::default().as_bytes()]),
        ] {
            assert!(matches!(ask(&mut record, opcode, unique, 1, body), Ask::Send(_)), "{unique}");
        }
        let (_, answers) = record.begin();
        assert_eq!(answers.iter().map(|answer| error(answer)).collect::<Vec<_>>(), [(16, 0)]);
        let flush = [FlushIn::default()];
        assert!(matches!(ask(&mut record, opcode::FLUSH, 20, 1, &[flush.as_bytes()]), Ask::Answer(_)));
        // These were not sent before, and now are, whatever they are.
        assert!(matches!(ask(&mut record, opcode::UNLINK, 18, 1, &name), Ask::Nothing));
        let rest = record.resume(Outbox::new(pair().0));
        let sent: Vec<_> = rest.frames.iter().filter_map(|frame| unique(frame)).collect();
        assert_eq!(sent, [2, 6, 10, 14, 18]);
        let answers: Vec<_> = rest.answers.iter().map(|answer| error(answer)).collect();
        assert_eq!(answers, [(4, libc::EIO), (8, libc::EIO), (12, libc::EIO)]);
        // Those that were answered are not asked again.
        record.begin();
        assert_eq!(record.resume(Outbox::new(pair().0)).answers.len(), 1);
    }

    #[test]
    fn a_host_is_told_of_what_is_held_when_it_is_told() {
        let mut record = record();
        opens(&mut record, 7, 50);
        opens(&mut record, 8, 60);
        let (wrong, _) = record.begin();
        for gone in [Invalidation::data(1), Invalidation::data(7), Invalidation::data(8), Invalidation::AllNames] {
            assert!(wrong.contains(&gone), "{gone:?}");
        }
        let release = |fh| ReleaseIn { fh, ..ReleaseIn::default() };
        let forget = ForgetIn { lookups: 1 };
        assert!(matches!(ask(&mut record, opcode::RELEASE, 2, 7, &[release(50).as_bytes()]), Ask::Nothing));
        assert!(matches!(ask(&mut record, opcode::FORGET, 4, 7, &[forget.as_bytes()]), Ask::Nothing));
        assert_eq!(record.tell(false).len(), 2, "node 8 and its file");
        // The host is told later of what changes now.
        assert!(matches!(ask(&mut record, opcode::RELEASE, 6, 8, &[release(60).as_bytes()]), Ask::Nothing));
        assert!(matches!(ask(&mut record, opcode::FORGET, 8, 8, &[forget.as_bytes()]), Ask::Nothing));
        assert_eq!(record.resume(Outbox::new(pair().0)).frames.len(), 2);
        record.begin();
        assert_eq!(record.tell(false), []);
    }

    #[test]
    fn who_does_not_want_to_wait_need_not() {
        let mut record = record();
        ask(&mut record, opcode::UNLINK, 2, 1, &[b"a\0"]);
        ask(&mut record, opcode::LOOKUP, 6, 1, &[b"c\0"]);
        assert!(matches!(
            ask(&mut record, opcode::INTERRUPT, 7, 0, &[InterruptIn { unique: 6 }.as_bytes()]),
            Ask::Send(_)
        ));
        let (_, answers) = record.begin();
        assert_eq!(answers.iter().map(|answer| error(answer)).collect::<Vec<_>>(), [(6, libc::EINTR)]);
        ask(&mut record, opcode::UNLINK, 4, 1, &[b"b\0"]);
        for (number, errno) in [(2, libc::EIO), (4, libc::EINTR)] {
            let interrupt = InterruptIn { unique: number };
            let Ask::Answer(answer) = ask(&mut record, opcode::INTERRUPT, number | 1, 0, &[interrupt.as_bytes()])
            else {
                panic!("it still waits");
            };
            assert_eq!(error(&answer), (number, errno));
        }
        let rest = record.resume(Outbox::new(pair().0));
        assert!(rest.frames.is_empty() && rest.answers.is_empty());
    }
}
