//! One connection of a guest, from the handshake to the end.
//!
//! Several threads take turns at reading: the one that has read a request lets the next one read, does what it read, and answers.
//! So a request that waits for the disk holds up no other one, and none is handed from thread to thread.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::{
    attributes::Owners,
    guest::{Guest, Waiting},
    host::Host,
    operations::{Call, Done},
};
use crate::{
    ShareError,
    coherence::{Shared, watch},
    fuse::{abi::InHeader, reply::Reply, request::Request},
    keys::PublicKey,
    protocol::{
        frame::{self, Kind},
        greeting::{Hello, Purpose, Session, Welcome},
        resume,
    },
    transport::{Inbox, Lost, Outbox, Stream},
};

/// Threads for each guest.
const WORKERS: usize = 8;

/// How long a handshake may take.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// A guest from which nothing comes for so long is gone: a mounter that has nothing else to say asks whether the host is there.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a guest that comes again waits for the end of its earlier connection.
const SUCCESSION: Duration = Duration::from_secs(5);

/// How often locks that are waited for are tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// Serves a connection until it ends. `stranger` is dropped as soon as it is known who is there.
pub(crate) fn serve(host: &Arc<Host>, stream: Arc<dyn Stream>, stranger: impl Sized) -> Result<(), ShareError> {
    // Its files may be closed here.
    let _own = watch::own_thread();
    let mut inbox = Inbox::new(stream.clone());
    let outbox = Outbox::new(stream.clone());
    stream.set_timeout(Some(GREETING)).map_err(ShareError::system("set a time-out"))?;
    let Some(Mounter { owner, session, events }) = greet(host, &mut inbox, &outbox) else { return Ok(()) };
    drop(stranger);
    if let Some(session) = session {
        succeed(host, session, stream.peer());
    }
    stream.set_timeout(Some(SILENCE)).map_err(ShareError::system("set a time-out"))?;
    inbox.trust();
    let id = host.guests_seen.fetch_add(1, Relaxed) + 1;
    let link = host.coherence.enter(id, outbox.clone(), events);
    let guest = Guest::new(id, host.view(owner), link, stream.peer(), session);
    let worker = Worker { host, guest: &guest, inbox: &Mutex::new(inbox) };
    host.guests().insert(id, guest.clone());
    thread::scope(|scope| {
        for _ in 1..WORKERS {
            // Fewer do it too.
            let _ = thread::Builder::new().name("share-worker".into()).spawn_scoped(scope, || worker.work());
        }
        worker.work();
    });
    guest.locks().is_over = true;
    host.coherence.leave(id);
    host.handles.leave(id);
    let gone = host.export.nodes().leave(id);
    host.export.drop_descriptors(&gone);
    host.guests().remove(&id);
    Ok(())
}

/// Ends what is left of an earlier connection of the same mount, with its locks and open files. Its end may not have been noticed here.
fn succeed(host: &Host, session: Session, key: Option<PublicKey>) {
    let until = Instant::now() + SUCCESSION;
    loop {
        let earlier = host.guests().values().find(|guest| guest.is(session, key)).cloned();
        let Some(earlier) = earlier.filter(|_| Instant::now() < until) else { return };
        earlier.link.outbox.close();
        thread::sleep(LOCK_INTERVAL);
    }
}

/// Who mounts the share.
struct Mounter {
    /// Whose the files shall be.
    owner: (u32, u32),
    /// By what the mount is known again.
    session: Option<Session>,
    /// Whether it wants to hear what programs of the host do.
    events: bool,
}

/// The handshake. Who mounts the share, if this is a guest that does.
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

/// What each of the threads has that serve a guest.
struct Worker<'a> {
    host: &'a Arc<Host>,
    guest: &'a Arc<Guest>,
    inbox: &'a Mutex<Inbox>,
}

impl Worker<'_> {
    /// What one thread does until the connection ends.
    fn work(&self) {
        let _own = watch::own_thread();
        let (mut payload, mut memory) = (Vec::new(), Vec::new());
        loop {
            let next = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).next(&mut payload);
            match next {
                Ok(Kind::Request) => {
                    let Ok(request) = Request::parse(&payload) else { break };
                    memory = self.request(&request, memory);
                }
                Ok(Kind::Acknowledge) => {
                    let Ok(number) = payload[..].try_into() else { break };
                    self.host.coherence.acknowledged(&self.guest.link, u64::from_le_bytes(number));
                }
                Ok(Kind::Resume) => {
                    let Some(list) = resume::decode(&payload) else { break };
                    let missing = self.host.resume(self.guest, &list);
                    let answer = frame::whole(Kind::Resumed, &resume::encode_missing(missing.into_iter()));
                    self.guest.link.outbox.send(&answer);
                }
                Ok(Kind::Ping) => self.guest.link.outbox.send(&frame::whole(Kind::Pong, &[])),
                Ok(_) | Err(Lost::Ended | Lost::Silent | Lost::Malformed | Lost::Denied) => break,
            }
        }
        // The others read the end too, then.
        self.guest.link.outbox.close();
    }

    /// Does what is asked, and answers. Returns memory for the next answer.
    fn request(&self, request: &Request<'_>, memory: Vec<u8>) -> Vec<u8> {
        let (host, guest) = (self.host, self.guest);
        guest.count(request.header.opcode);
        let mut call = Call { host, guest, header: request.header, reply: Reply::reusing(memory), changes: Vec::new() };
        let done = match call.perform(request) {
            Done::Answer(done) => done,
            Done::Silent => return Vec::new(),
            Done::Waits(waiting) => {
                wait_for_lock(host, guest, waiting);
                return Vec::new();
            }
        };
        let Call { reply, changes, .. } = call;
        host.wait();
        let frame = reply.finish(request.header.unique, done);
        let memory = host.coherence.answer(|| Shared(host.export.nodes()), &guest.link, &changes, frame);
        // Memory for a long answer is not kept for short ones.
        memory.filter(|memory| memory.capacity() <= 256 << 10).unwrap_or_default()
    }
}

/// Tries a lock again and again, in one thread for all of the guest.
fn wait_for_lock(host: &Arc<Host>, guest: &Arc<Guest>, waiting: Waiting) {
    let mut locks = guest.locks();
    if locks.interrupted.remove(&waiting.unique) {
        drop(locks);
        return guest.answer_lock(waiting.unique, Err(Errno::INTR));
    }
    locks.waiting.push(waiting);
    if locks.is_tried {
        return;
    }
    let (host, waiter) = (host.clone(), guest.clone());
    let tried = thread::Builder::new().name("share-locks".into()).spawn(move || try_locks(&host, &waiter));
    locks.is_tried = tried.is_ok();
    if tried.is_err() {
        locks.waiting.clear();
        drop(locks);
        guest.answer_lock(waiting.unique, Err(Errno::NOLCK));
    }
}

fn try_locks(host: &Host, guest: &Guest) {
    loop {
        thread::sleep(LOCK_INTERVAL);
        let mut locks = guest.locks();
        if locks.waiting.is_empty() || locks.is_over {
            locks.is_tried = false;
            return;
        }
        let waiting = std::mem::take(&mut locks.waiting);
        // With the table locked, so that an interruption finds each either waiting or answered.
        let mut answers = Vec::new();
        for one in waiting {
            let header = InHeader { node: one.node, unique: one.unique, ..InHeader::default() };
            let reply = Reply::reusing(Vec::new());
            let mut call = Call { host, guest, header, reply, changes: Vec::new() };
            match call.set_lock(&one.ask) {
                Err(Errno::AGAIN) => locks.waiting.push(one),
                done => answers.push((one.unique, done)),
            }
        }
        drop(locks);
        answers.into_iter().for_each(|(unique, done)| guest.answer_lock(unique, done));
    }
}
