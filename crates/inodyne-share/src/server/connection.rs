//! One connection of a guest, from the handshake to the end.
//!
//! Several threads take turns at reading: the one that has read a request lets the next one read, does what it read, and answers.
//! So a request that waits for the disk holds up no other one, and none is handed from thread to thread.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use super::{answering::answer, attributes::Owners, guest::Guest, host::Host};
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

/// Threads for each guest.
const WORKERS: usize = 8;

/// How long a handshake may take.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// A guest from which nothing comes for so long is gone: a mounter that has nothing else to say asks whether the host is there.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a guest that comes again waits for the end of its earlier connection.
const SUCCESSION: Duration = Duration::from_secs(5);

/// How often it is looked whether that has ended.
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
    if let Some(session) = session {
        succeed(host, session, stream.peer());
    }
    stream.set_timeout(Some(SILENCE)).map_err(ShareError::system("set a time-out"))?;
    inbox.trust();
    let link = host.coherence.enter(host.next_guest(), outbox.clone(), events);
    let guest = Guest::new(host.view(owner), link, true, true, stream.peer(), session);
    let worker = Worker { host, guest: &guest, inbox: &Mutex::new(inbox), outbox: &outbox };
    host.guests().insert(guest.id, guest.clone());
    thread::scope(|scope| {
        for _ in 1..WORKERS {
            // Fewer do it too.
            let _ = thread::Builder::new().name("share-worker".into()).spawn_scoped(scope, || worker.work());
        }
        worker.work();
    });
    host.dismiss(&guest);
    Ok(())
}

/// Ends what is left of an earlier connection of the same mount, with its locks and open files. Its end may not have been noticed here.
fn succeed(host: &Host, session: Session, key: Option<PublicKey>) {
    let until = Instant::now() + SUCCESSION;
    loop {
        let earlier = host.guests().values().find(|guest| guest.is(session, key)).cloned();
        let Some(earlier) = earlier.filter(|_| Instant::now() < until) else { return };
        earlier.link.outbox.close();
        thread::sleep(SUCCESSION_INTERVAL);
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
    outbox: &'a Outbox,
}

impl Worker<'_> {
    /// What one thread does until the connection ends.
    fn work(&self) {
        let _own = watch::own_thread();
        let (mut payload, mut memory) = (Vec::new(), Vec::new());
        loop {
            self.outbox.wait_for_room();
            let next = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).next(&mut payload);
            match next {
                Ok(Kind::Request) => {
                    let Ok(request) = Request::parse(&payload) else { break };
                    memory = answer(self.host, self.guest, &request, memory);
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
}
