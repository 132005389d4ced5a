//! The guest that has the share mounted: it comes with INIT, and goes with DESTROY, with the next INIT (the machine was restarted), or
//! with its machine.

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use rustix::io::Errno;

use super::replies::Replies;
use crate::{
    coherence::Link,
    fuse::{abi::opcode, reply::Reply, request::Request},
    server::{answering::answer, guest::Guest, host::Host},
    transport::FrameSink,
};

/// A machine's guest, if it has one.
pub(super) struct Mounted {
    host: Arc<Host>,
    pub replies: Arc<Replies>,
    /// Held by those that do what it asks, so that it is not dismissed meanwhile.
    guest: RwLock<Option<Arc<Guest>>>,
    busy: Busy,
}

/// How many threads take or do requests, and must not be held up by whoever waits for them to finish.
#[derive(Default)]
struct Busy(Mutex<usize>, Condvar);

/// Counts a thread as one of them, or a request that one of them is to do.
pub(super) struct Work(Arc<Mounted>);

impl Drop for Work {
    fn drop(&mut self) {
        let Busy(count, fewer) = &self.0.busy;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        fewer.notify_all();
    }
}

impl Mounted {
    /// None yet.
    pub fn new(host: Arc<Host>) -> Self {
        Self { host, replies: Arc::default(), guest: RwLock::new(None), busy: Busy::default() }
    }

    /// Does what is asked, and answers. Returns memory for the next answer.
    pub fn request(&self, request: &Request<'_>, memory: Vec<u8>) -> Vec<u8> {
        match request.header.opcode {
            opcode::INIT => self.replace(Some(self.guest())),
            opcode::DESTROY => {
                self.replace(None);
                self.done(request.header.unique, Ok(()));
                return memory;
            }
            _ => {}
        }
        let guest = self.guest.read().unwrap_or_else(PoisonError::into_inner);
        let Some(guest) = &*guest else {
            self.done(request.header.unique, Err(Errno::NOTCONN));
            return memory;
        };
        let memory = answer(&self.host, guest, request, memory);
        // A mounter of ours gives this answer itself.
        if request.header.opcode == opcode::RELEASE {
            self.done(request.header.unique, Ok(()));
        }
        memory
    }

    /// Counts something as being taken or done, until dropped.
    pub fn work(self: &Arc<Self>) -> Work {
        *self.busy.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Work(self.clone())
    }

    /// Has everything that was asked answered, so that nothing is written into queues that are no longer there or belong to somebody else: waits
    /// for what is being done and for what other guests have to acknowledge, and gives up locks that are waited for.
    pub fn finish(&self) {
        let Busy(count, fewer) = &self.busy;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(fewer.wait_while(count, |count| *count > 0).unwrap_or_else(PoisonError::into_inner));
        if let Some(guest) = &*self.guest.read().unwrap_or_else(PoisonError::into_inner) {
            guest.interrupt_locks();
        }
        self.replies.finish();
    }

    fn guest(&self) -> Arc<Guest> {
        let link = Link::new(self.host.next_guest(), self.replies.clone(), false);
        let options = &self.host.options;
        Guest::new(self.host.view(options.owner), link, false, options.xattrs_by_virtiofs, None, None)
    }

    /// Another guest, or none.
    fn replace(&self, guest: Option<Arc<Guest>>) {
        let mut place = self.guest.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = place.take() {
            // The next guest may use the same numbers.
            before.interrupt_locks();
            self.host.dismiss(&before);
        }
        if let Some(guest) = &guest {
            self.host.guests().insert(guest.id, guest.clone());
        }
        *place = guest;
    }

    fn done(&self, unique: u64, done: Result<(), Errno>) {
        self.replies.send(&Reply::reusing(Vec::new()).finish(unique, done));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.replace(None);
    }
}
