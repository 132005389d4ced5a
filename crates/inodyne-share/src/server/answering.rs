//! A guest's request, however it came, from when it is read to its answer.

use std::{sync::Arc, thread, time::Duration};

use rustix::io::Errno;

use super::{
    guest::{Guest, Waiting},
    host::Host,
    operations::{Call, Done},
};
use crate::{
    coherence::Shared,
    fuse::{abi::InHeader, reply::Reply, request::Request},
};

/// How often locks that are waited for are tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// How many locks a guest may wait for, since all are tried each time. Whoever wants one more is told that there are none (ENOLCK).
const MOST_LOCKS: usize = 1024;

/// Does what is asked, and answers. Returns memory for the next answer.
pub(super) fn answer(host: &Arc<Host>, guest: &Arc<Guest>, request: &Request<'_>, memory: Vec<u8>) -> Vec<u8> {
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

/// Tries a lock again and again, in one thread for all locks of the guest.
fn wait_for_lock(host: &Arc<Host>, guest: &Arc<Guest>, waiting: Waiting) {
    let mut locks = guest.locks();
    if locks.is_interrupted(waiting.unique) {
        drop(locks);
        return guest.answer_lock(waiting.unique, Err(Errno::INTR));
    }
    if locks.waiting.len() >= MOST_LOCKS {
        drop(locks);
        return guest.answer_lock(waiting.unique, Err(Errno::NOLCK));
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
