//! Writing frames. Whoever sends never waits for the other side to read: what the stream does not take at once is kept, and a thread
//! that is started for it sends it later. So a guest that reads slowly holds up nobody but itself; and one that does not read at
//! all, or leaves too much unread, loses its connection. Whoever serves it waits for room before beginning the same guest's next request,
//! so that answers do not pile up. A guest itself keeps whatever its programs have asked for: they wait for it, so they cannot ask for more,
//! and what is said without waiting (FORGET) is small. What others wait for, such as an acknowledgement, goes ahead of that.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use super::{FrameSink, Stream};

/// The most that a host keeps for a guest that reads slowly.
const MOST_KEPT: usize = 16 << 20;

/// With more than this kept, no further request of the same guest is begun.
const ROOM: usize = 4 << 20;

/// How long sending may make no progress before the connection is given up.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The writing end of a connection.
pub(crate) struct Outbox {
    stream: Arc<dyn Stream>,
    /// With more kept than that, the connection is given up.
    most_kept: usize,
    kept: Mutex<Kept>,
    /// Some of it has been sent, or all is over.
    less: Condvar,
    /// For the thread that sends what is kept.
    own: Weak<Self>,
}

/// What could not be sent at once.
#[derive(Default)]
struct Kept {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// How much of the first frame has been sent.
    sent: usize,
    is_closed: bool,
}

impl Outbox {
    /// To a host.
    pub fn new(stream: Arc<dyn Stream>) -> Arc<Self> {
        Self::keeping(usize::MAX, stream)
    }

    /// To a guest.
    pub fn to_guest(stream: Arc<dyn Stream>) -> Arc<Self> {
        Self::keeping(MOST_KEPT, stream)
    }

    fn keeping(most_kept: usize, stream: Arc<dyn Stream>) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            stream,
            most_kept,
            kept: Mutex::default(),
            less: Condvar::new(),
            own: own.clone(),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a whole frame, now or soon; nothing after the end of the connection. It is copied only where it must be kept.
    pub fn send(&self, frame: &[u8]) {
        self.send_at(usize::MAX, frame);
    }

    /// The same, ahead of all that is kept, except for a frame that may have been begun.
    pub fn send_ahead(&self, frame: &[u8]) {
        self.send_at(1, frame);
    }

    /// Sends a frame; if it must be kept, it takes that place, or the last one.
    fn send_at(&self, place: usize, frame: &[u8]) {
        let mut kept = self.kept();
        if kept.is_closed {
            return;
        }
        let mut sent = 0;
        if kept.frames.is_empty() {
            match send_some(&*self.stream, frame) {
                Ok((_, true)) => return,
                Ok((length, false)) => sent = length,
                Err(_) => return self.end(&mut kept),
            }
        }
        kept.bytes += frame.len();
        if kept.bytes > self.most_kept {
            return self.end(&mut kept);
        }
        let is_first = kept.frames.is_empty();
        let place = place.min(kept.frames.len());
        kept.frames.insert(place, frame.into());
        if is_first {
            kept.sent = sent;
            let Some(outbox) = self.own.upgrade() else { return };
            if thread::Builder::new().name("share-backlog".into()).spawn(move || outbox.send_kept()).is_err() {
                self.end(&mut kept);
            }
        }
    }

    /// Waits while a lot is kept.
    pub fn wait_for_room(&self) {
        let kept = self.less.wait_while(self.kept(), |kept| kept.bytes > ROOM && !kept.is_closed);
        drop(kept.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the connection has ended, as far as is known here.
    pub fn is_closed(&self) -> bool {
        self.kept().is_closed
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.end(&mut self.kept());
    }

    fn end(&self, kept: &mut Kept) {
        *kept = Kept { is_closed: true, ..Kept::default() };
        self.stream.close();
        self.less.notify_all();
    }

    /// Sends until nothing is kept any more.
    fn send_kept(&self) {
        loop {
            let can = self.stream.wait_sendable(TIMEOUT);
            let mut kept = self.kept();
            if !matches!(can, Ok(true)) {
                return self.end(&mut kept);
            }
            let sent = kept.sent;
            let Some(first) = kept.frames.front() else { return };
            match send_some(&*self.stream, &first[sent..]) {
                Ok((_, true)) => {
                    kept.bytes -= first.len();
                    kept.frames.pop_front();
                    kept.sent = 0;
                    self.less.notify_all();
                    if kept.frames.is_empty() {
                        return;
                    }
                }
                Ok((length, false)) => kept.sent += length,
                Err(_) => return self.end(&mut kept),
            }
        }
    }
}

impl FrameSink for Outbox {
    fn send(&self, frame: &[u8]) {
        self.send(frame);
    }

    fn close(&self) {
        self.close();
    }
}

/// Sends as much as it can. Returns how much the stream has taken, and whether all of it has been sent.
fn send_some(stream: &dyn Stream, bytes: &[u8]) -> io::Result<(usize, bool)> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.try_send(&bytes[sent..]) {
            Ok(length) => sent += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((sent, false)),
            Err(error) => return Err(error),
        }
    }
    Ok((sent, stream.flush()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::frame::{self, Kind},
        transport::{Inbox, Lost, socket::pair},
    };

    #[test]
    fn nobody_waits_for_one_who_reads_late_and_the_order_stays() {
        let (ours, theirs) = pair();
        let outbox = Outbox::new(ours);
        for number in 0..300u32 {
            outbox.send(&frame::whole(Kind::Reply, &[number.to_le_bytes().as_slice(), &[0; 10_000]].concat()));
        }
        let mut inbox = Inbox::new(theirs);
        inbox.trust();
        for number in 0..300u32 {
            let mut payload = Vec::new();
            assert_eq!(inbox.next(&mut payload), Ok(Kind::Reply));
            assert_eq!(payload[..4], number.to_le_bytes());
        }
    }

    /// A guest that writes a lot over a slow line would otherwise acknowledge too late, and lose its connection.
    #[test]
    fn what_others_wait_for_does_not_wait_behind_what_is_kept() {
        const COUNT: u8 = 8;
        let (ours, theirs) = pair();
        let outbox = Outbox::new(ours);
        // The socket does not take all of them.
        (0..COUNT).for_each(|number| outbox.send(&frame::whole(Kind::Request, &vec![number; 1 << 20])));
        outbox.send_ahead(&frame::whole(Kind::Acknowledge, &[0; 8]));
        let mut inbox = Inbox::new(theirs);
        inbox.trust();
        let mut payload = Vec::new();
        let kinds: Vec<_> = (0..=COUNT).map(|_| inbox.next(&mut payload).map(|kind| (kind, payload[0]))).collect();
        let at = kinds.iter().position(|next| *next == Ok((Kind::Acknowledge, 0)));
        assert!(at.is_some_and(|at| (1..usize::from(COUNT)).contains(&at)), "{at:?}");
        // The others stay in order.
        let requests = kinds.into_iter().filter(|next| matches!(next, Ok((Kind::Request, _))));
        assert!(requests.eq((0..COUNT).map(|number| Ok::<_, Lost>((Kind::Request, number)))));
        // Where nothing is kept it goes at once.
        outbox.send_ahead(&frame::whole(Kind::Acknowledge, &[0; 8]));
        assert_eq!(inbox.next(&mut payload), Ok(Kind::Acknowledge));
    }

    #[test]
    fn who_serves_waits_for_room_until_it_is_there_or_all_is_over() {
        for is_read in [true, false] {
            let (ours, theirs) = pair();
            let outbox = Outbox::to_guest(ours);
            outbox.wait_for_room();
            for _ in 0..(ROOM >> 20) + 2 {
                outbox.send(&frame::whole(Kind::Reply, &vec![0; 1 << 20]));
            }
            let waiter = thread::spawn({
                let outbox = outbox.clone();
                move || outbox.wait_for_room()
            });
            thread::sleep(Duration::from_millis(50));
            assert!(!waiter.is_finished());
            if is_read {
                let mut inbox = Inbox::new(theirs);
                inbox.trust();
                (0..3).for_each(|_| assert_eq!(inbox.next(&mut Vec::new()), Ok(Kind::Reply)));
                waiter.join().unwrap();
                assert!(!outbox.kept().is_closed);
            } else {
                outbox.close();
                waiter.join().unwrap();
            }
        }
    }

    #[test]
    fn a_guest_may_ask_for_more_than_a_host_keeps() {
        let (ours, theirs) = pair();
        let outbox = Outbox::new(ours);
        let count = 4 * (MOST_KEPT >> 20);
        for _ in 0..count {
            outbox.send(&frame::whole(Kind::Request, &vec![0; 1 << 20]));
        }
        let mut inbox = Inbox::new(theirs);
        inbox.trust();
        (0..count).for_each(|_| assert_eq!(inbox.next(&mut Vec::new()), Ok(Kind::Request)));
    }

    #[test]
    fn a_guest_that_never_reads_loses_the_connection() {
        let (ours, theirs) = pair();
        let outbox = Outbox::to_guest(ours);
        for _ in 0..(MOST_KEPT >> 20) + 2 {
            outbox.send(&frame::whole(Kind::Reply, &vec![0; 1 << 20]));
        }
        let mut inbox = Inbox::new(theirs);
        inbox.trust();
        let end = std::iter::repeat_with(|| inbox.next(&mut Vec::new())).find_map(Result::err);
        assert_eq!(end, Some(Lost::Ended));
        assert!(outbox.kept().frames.is_empty());
    }
}
