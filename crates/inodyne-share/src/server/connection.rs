//! One connection of a guest, from the handshake to the end.
//!
//! Several threads take turns at reading: the one that has read a request lets the next one read, does what it read, and answers.
//! So a request that waits for the disk holds up no other one. One of them always reads, since the guest wants to know whether the host is there,
//! and others wait for what it acknowledges; only what comes while all others are busy is handed from thread to thread (`backlog`).

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use super::{answering::answer, attributes::Owners, backlog::Backlog, guest::Guest, host::Host};
use crate::{
    ShareError,
    coherence::watch,
    fuse::request::Request,
    keys::PublicKey,
    protocol::{
        frame::{self, Kind},
        greeting::{Hello, Purpose, Session, Welcome},
        resume,
    },
    transport::{Inbox, Lost, Outbox, Stream},
};

/// Threads for each guest: as many as may be busy, and one that reads.
const WORKERS: usize = 8 + 1;

/// How long a handshake may take.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// A guest from which nothing comes for this long is gone: a mounter that has nothing else to say asks whether the host is there.
const SILENCE: Duration = Duration::from_secs(60);

/// How often a guest is told that the host is there while nothing is read from it: it may be asking just that.
const STILL_THERE: Duration = Duration::from_secs(2);

/// How long a guest that comes back waits for the end of its earlier connection.
const SUCCESSION: Duration = Duration::from_secs(5);

/// How often to check whether that has ended.
const SUCCESSION_INTERVAL: Duration = Duration::from_millis(2);

/// Serves a connection until it ends. `stranger` is dropped as soon as it is known who is there.
pub(crate) fn serve(host: &Arc<Host>, stream: Arc<dyn Stream>, stranger: impl Sized) -> Result<(), ShareError> {
    // Its files may be closed here.
    let _own = watch::own_thread();
    let mut inbox = Inbox::new(stream.clone());
    let outbox = Outbox::to_guest(stream.clone());
    stream.set_timeout(Some(GREETING)).map_err(ShareError::system("set a time-out"))?;
    let Some(Mounter { owner, session, events }) = greet(host, &mut inbox, &outbox) else { return Ok(()) };
    drop(stranger);
    // It may come again and again.
    if session.is_some_and(|session| !succeed(host, session, stream.peer())) {
        outbox.close();
        return Ok(());
    }
    stream.set_timeout(Some(SILENCE)).map_err(ShareError::system("set a time-out"))?;
    inbox.trust();
    let link = host.coherence.enter(host.next_guest(), outbox.clone(), events);
    let guest = Guest::new(host.view(owner), link, true, true, stream.peer(), session);
    let (inbox, backlog) = (Mutex::new(inbox), Backlog::default());
    let worker = Worker { host, guest: &guest, inbox: &inbox, outbox: &outbox, backlog: &backlog };
    host.guests().insert(guest.id, guest.clone());
    thread::scope(|scope| {
        for _ in 1..WORKERS {
            // Fewer will do, too.
            let _ = thread::Builder::new().name("share-worker".into()).spawn_scoped(scope, || worker.work());
        }
        worker.work();
    });
    host.dismiss(&guest);
    Ok(())
}

/// Ends what is left of an earlier connection of the same mount, with its locks and open files. Its end may not have been noticed here. Returns
/// whether nothing is left: what is still being done for it must not be done after what the guest asks next.
fn succeed(host: &Host, session: Session, key: Option<PublicKey>) -> bool {
    let until = Instant::now() + SUCCESSION;
    loop {
        let earlier = host.guests().values().find(|guest| guest.is(session, key)).cloned();
        let Some(earlier) = earlier else { return true };
        earlier.link.outbox.close();
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(SUCCESSION_INTERVAL);
    }
}

/// Who mounts the share.
struct Mounter {
    /// Who the files are to belong to.
    owner: (u32, u32),
    /// What the mount is recognised by.
    session: Option<Session>,
    /// Whether it wants to hear what programs on the host do.
    events: bool,
}

/// The handshake. Returns who mounts the share, if this is a guest that does.
fn greet(host: &Host, inbox: &mut Inbox, outbox: &Arc<Outbox>) -> Option<Mounter> {
    let mut payload = Vec::new();
    let hello: Hello = match inbox.next(&mut payload) {
        Ok(Kind::Hello) => serde_json::from_slice(&payload).ok()?,
        _ => return None,
    };
    let (welcome, mounter) = match (hello.refusal(), hello.purpose) {
        (Some(reason), _) => (Welcome::Refused(reason), None),
        (None, Purpose::Status) => (Welcome::Status(Box::new(host.status())), None),
        (None, Purpose::Mount { uid, gid, session, events }) => {
            let (root, boot) = (host.root, host.boot.clone());
            let squashed = host.options.owners == Owners::Squash;
            let watched = host.is_watched.load(Relaxed);
            let welcome = Welcome::Mount { read_only: host.options.read_only, root, boot, squashed, watched };
            (welcome, Some(Mounter { owner: (uid, gid), session, events }))
        }
    };
    outbox.send(&frame::whole(Kind::Welcome, &serde_json::to_vec(&welcome).ok()?));
    mounter
}

/// What each of the threads that serve a guest has.
struct Worker<'a> {
    host: &'a Arc<Host>,
    guest: &'a Arc<Guest>,
    inbox: &'a Mutex<Inbox>,
    outbox: &'a Outbox,
    backlog: &'a Backlog,
}

impl Worker<'_> {
    /// What one thread does until the connection ends.
    fn work(&self) {
        let _own = watch::own_thread();
        self.backlog.join();
        let (mut payload, mut memory) = (Vec::new(), Vec::new());
        while let Some(kind) = self.read(&mut payload)
            && self.perform(kind, &mut payload, &mut memory).is_some()
        {}
        // Then the others read the end too.
        self.outbox.close();
    }

    /// Reads until there is something for this thread to do; `None` at the end.
    fn read(&self, payload: &mut Vec<u8>) -> Option<Kind> {
        loop {
            let next = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).next(payload);
            match next {
                Ok(kind @ (Kind::Request | Kind::Resume)) => {
                    if self.backlog.begin(kind, payload) {
                        return Some(kind);
                    }
                    while !self.backlog.has_room(STILL_THERE) {
                        if self.outbox.is_closed() {
                            return None;
                        }
                        self.is_there();
                    }
                }
                Ok(Kind::Acknowledge) => {
                    let number = payload[..].try_into().ok()?;
                    self.host.coherence.acknowledged(&self.guest.link, u64::from_le_bytes(number));
                }
                Ok(Kind::Ping) => self.is_there(),
                Ok(_) | Err(Lost::Ended | Lost::Silent | Lost::Malformed | Lost::Denied) => return None,
            }
        }
    }

    fn is_there(&self) {
        self.outbox.send(&frame::whole(Kind::Pong, &[]));
    }

    /// Does what was read, and then what waits; `None` at the end of the connection.
    fn perform(&self, mut kind: Kind, payload: &mut Vec<u8>, memory: &mut Vec<u8>) -> Option<()> {
        loop {
            self.outbox.wait_for_room();
            // The same guest may be here again, and change what it asked for before.
            if self.outbox.is_closed() {
                return None;
            }
            if kind == Kind::Resume {
                let missing = self.host.resume(self.guest, &resume::decode(payload)?);
                self.outbox.send(&frame::whole(Kind::Resumed, &resume::encode_missing(missing.into_iter())));
            } else {
                let request = Request::parse(payload).ok()?;
                *memory = answer(self.host, self.guest, &request, std::mem::take(memory));
            }
            let Some(next) = self.backlog.next() else { return Some(()) };
            (kind, *payload) = next;
        }
    }
}
