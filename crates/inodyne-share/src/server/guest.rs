//! One guest: its connection, from the handshake to the end.
//!
//! Several threads take turns at reading: the one that has read a request lets the next one read, does what it read, and answers.
//! So a request that waits for the disk holds up no other one, and none is handed from thread to thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::{
    attributes::View,
    host::Host,
    nodes::GuestId,
    operations::{Call, Done, Waiting},
};
use crate::{
    ShareError,
    coherence::{Link, Shared, watch},
    fuse::{
        abi::{InHeader, REQUESTS},
        reply::Reply,
        request::Request,
    },
    protocol::{
        frame::{self, Kind},
        greeting::{Hello, Purpose, Welcome},
    },
    status::GuestStatus,
    transport::{Inbox, Lost, Outbox, Stream},
};

/// Threads for each guest.
const WORKERS: usize = 8;

/// How long a handshake may take.
const GREETING: Duration = Duration::from_secs(5);

/// A guest from which nothing comes for so long is gone: a mounter that has nothing else to say asks whether the host is there.
const SILENCE: Duration = Duration::from_secs(60);

/// How often locks that are waited for are tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// More interruptions than this are not remembered.
const MOST_INTERRUPTED: usize = 1024;

/// A guest.
pub(crate) struct Guest {
    pub id: GuestId,
    pub link: Arc<Link>,
    pub view: View,
    /// Whether its kernel can be told at once that no name it holds is true (Linux 6.16).
    pub has_epoch: AtomicBool,
    since: Instant,
    inbox: Mutex<Inbox>,
    locks: Mutex<Locks>,
    /// Requests by number.
    counts: [AtomicU64; 64],
}

/// Locks that processes of the guest wait for.
#[derive(Default)]
struct Locks {
    waiting: Vec<Waiting>,
    /// Requests that shall be given up, and have not begun to wait yet.
    interrupted: BTreeSet<u64>,
    is_tried: bool,
    is_over: bool,
}

/// Serves a connection until it ends.
pub(crate) fn serve(host: &Arc<Host>, stream: Arc<dyn Stream>) -> Result<(), ShareError> {
    // Its files may be closed here.
    let _own = watch::own_thread();
    let mut inbox = Inbox::new(stream.clone());
    let outbox = Outbox::new(stream.clone());
    stream.set_patience(Some(GREETING)).map_err(ShareError::system("set a time-out"))?;
    let Some((uid, gid)) = greet(host, &mut inbox, &outbox) else { return Ok(()) };
    stream.set_patience(Some(SILENCE)).map_err(ShareError::system("set a time-out"))?;
    inbox.trust();
    let id = host.guests_seen.fetch_add(1, Relaxed) + 1;
    let guest = Arc::new(Guest {
        id,
        view: host.view((uid, gid)),
        link: host.coherence.enter(id, outbox.clone()),
        has_epoch: AtomicBool::new(false),
        since: Instant::now(),
        inbox: Mutex::new(inbox),
        locks: Mutex::default(),
        counts: [const { AtomicU64::new(0) }; 64],
    });
    host.guests().insert(id, guest.clone());
    thread::scope(|scope| {
        for _ in 1..WORKERS {
            let worker = thread::Builder::new().name("share-worker".into());
            // Fewer do it too.
            let _ = worker.spawn_scoped(scope, || guest.work(host));
        }
        guest.work(host);
    });
    guest.locks().is_over = true;
    host.guests().remove(&id);
    host.coherence.leave(id);
    host.handles.leave(id);
    let gone = host.export.nodes().leave(id);
    host.export.drop_descriptors(&gone);
    Ok(())
}

/// The handshake. Whose the files shall be, if this guest mounts the share.
fn greet(host: &Host, inbox: &mut Inbox, outbox: &Arc<Outbox>) -> Option<(u32, u32)> {
    let mut payload = Vec::new();
    let hello: Hello = match inbox.next(&mut payload) {
        Ok(Kind::Hello) => serde_json::from_slice(&payload).ok()?,
        _ => return None,
    };
    let (welcome, owner) = match (hello.refusal(), hello.purpose) {
        (Some(reason), _) => (Welcome::Refused(reason), None),
        (None, Purpose::Status) => (Welcome::Status(Box::new(host.status())), None),
        (None, Purpose::Mount { uid, gid }) => (Welcome::Mount { read_only: host.options.read_only }, Some((uid, gid))),
    };
    outbox.send(&frame::whole(Kind::Welcome, &serde_json::to_vec(&welcome).ok()?));
    owner
}

impl Guest {
    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one thread does until the connection ends.
    fn work(self: &Arc<Self>, host: &Arc<Host>) {
        let _own = watch::own_thread();
        let (mut payload, mut memory) = (Vec::new(), Vec::new());
        loop {
            let next = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).next(&mut payload);
            match next {
                Ok(Kind::Request) => {
                    let Ok(request) = Request::parse(&payload) else { break };
                    memory = self.request(host, &request, memory);
                }
                Ok(Kind::Acknowledge) => {
                    let Ok(number) = payload[..].try_into() else { break };
                    host.coherence.acknowledged(&self.link, u64::from_le_bytes(number));
                }
                Ok(Kind::Ping) => self.link.outbox.send(&frame::whole(Kind::Pong, &[])),
                Ok(_) | Err(Lost::Ended | Lost::Silent | Lost::Malformed) => break,
            }
        }
        // The others read the end too, then.
        self.link.outbox.close();
    }

    /// Does what is asked, and answers. Returns memory for the next answer.
    fn request(self: &Arc<Self>, host: &Arc<Host>, request: &Request<'_>, memory: Vec<u8>) -> Vec<u8> {
        if let Some(count) = self.counts.get(request.header.opcode as usize) {
            count.fetch_add(1, Relaxed);
        }
        let mut call =
            Call { host, guest: self, header: request.header, reply: Reply::reusing(memory), changes: Vec::new() };
        let done = match call.perform(request) {
            Done::Answer(done) => done,
            Done::Silent => return Vec::new(),
            Done::Waits(waiting) => {
                self.wait_for(host, waiting);
                return Vec::new();
            }
        };
        let Call { reply, changes, .. } = call;
        if !host.options.delay.is_zero() {
            thread::sleep(host.options.delay);
        }
        let frame = reply.finish(request.header.unique, done);
        let memory = host.coherence.answer(|| Shared(host.export.nodes()), &self.link, &changes, frame);
        // Memory for a long answer is not kept for short ones.
        memory.filter(|memory| memory.capacity() <= 256 << 10).unwrap_or_default()
    }

    /// Notes that a request is to be given up.
    pub fn interrupt(&self, unique: u64) {
        let mut locks = self.locks();
        if let Some(at) = locks.waiting.iter().position(|waiting| waiting.unique == unique) {
            locks.waiting.swap_remove(at);
            drop(locks);
            self.answer_lock(unique, Err(Errno::INTR));
        } else if locks.interrupted.len() < MOST_INTERRUPTED {
            locks.interrupted.insert(unique);
        }
    }

    fn answer_lock(&self, unique: u64, done: Result<(), Errno>) {
        self.link.outbox.send(&Reply::reusing(Vec::new()).finish(unique, done));
    }

    /// Tries a lock again and again, in one thread for all of the guest.
    fn wait_for(self: &Arc<Self>, host: &Arc<Host>, waiting: Waiting) {
        let mut locks = self.locks();
        if locks.interrupted.remove(&waiting.unique) {
            drop(locks);
            return self.answer_lock(waiting.unique, Err(Errno::INTR));
        }
        locks.waiting.push(waiting);
        if locks.is_tried {
            return;
        }
        let (guest, host) = (self.clone(), host.clone());
        let tried = thread::Builder::new().name("share-locks".into()).spawn(move || guest.try_locks(&host));
        locks.is_tried = tried.is_ok();
        if tried.is_err() {
            locks.waiting.clear();
            drop(locks);
            self.answer_lock(waiting.unique, Err(Errno::NOLCK));
        }
    }

    fn try_locks(self: &Arc<Self>, host: &Host) {
        loop {
            thread::sleep(LOCK_INTERVAL);
            let mut locks = self.locks();
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
                let mut call = Call { host, guest: self, header, reply, changes: Vec::new() };
                match call.set_lock(&one.ask) {
                    Err(Errno::AGAIN) => locks.waiting.push(one),
                    done => answers.push((one.unique, done)),
                }
            }
            drop(locks);
            answers.into_iter().for_each(|(unique, done)| self.answer_lock(unique, done));
        }
    }

    fn nodes_held(&self, host: &Host) -> u64 {
        host.export.nodes().held_by(self.id).len() as u64
    }

    /// How it goes.
    pub fn status(&self, host: &Host) -> GuestStatus {
        let counted = |(number, name): &(u32, &str)| {
            let count = self.counts.get(*number as usize)?.load(Relaxed);
            (count > 0).then(|| ((*name).to_owned(), count))
        };
        let requests: BTreeMap<_, _> = REQUESTS.iter().filter_map(counted).collect();
        let nodes_held = self.nodes_held(host);
        GuestStatus {
            guest: self.id,
            connected_seconds: self.since.elapsed().as_secs(),
            nodes_held,
            round_trips: requests.iter().filter(|(name, _)| has_an_answer(name)).map(|(_, count)| count).sum(),
            requests,
            invalidations_sent: self.link.told.load(Relaxed),
            invalidations_acknowledged: self.link.acknowledged.load(Relaxed),
        }
    }
}

/// Whether anybody waits for the answer to such a request.
fn has_an_answer(name: &str) -> bool {
    !matches!(name, "forget" | "batch_forget" | "interrupt")
}
