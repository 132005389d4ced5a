//! A guest's requests that nobody has begun: where all threads but one are busy, that one goes on reading, and what it reads waits here.
//! So a question whether the host is there, or an acknowledgement, never waits behind a request that waits for the disk.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::protocol::frame::Kind;

/// With more than this waiting, nothing further is read. Only long writes can amount to that, and only many at once.
const MOST: usize = 4 << 20;

/// What a message takes here beside its payload.
const OVERHEAD: usize = 128;

/// What waits, and who is busy.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<State>,
    /// Some of it was begun.
    less: Condvar,
}

#[derive(Default)]
struct State {
    /// The threads that there are, and how many of them are busy.
    threads: usize,
    busy: usize,
    messages: VecDeque<(Kind, Vec<u8>)>,
    bytes: usize,
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is one more thread.
    pub fn join(&self) {
        self.state().threads += 1;
    }

    /// Whether the calling thread is to do what it has read. If not, `payload` is taken: another thread will, and this one goes on reading.
    pub fn begin(&self, kind: Kind, payload: &mut Vec<u8>) -> bool {
        let mut state = self.state();
        // Where there is only one thread, it does everything.
        let may = state.busy + 1 < state.threads.max(2);
        if may {
            state.busy += 1;
        } else {
            state.bytes += payload.len() + OVERHEAD;
            state.messages.push_back((kind, std::mem::take(payload)));
        }
        may
    }

    /// The calling thread is done. Returns what it is to do next; if nothing, it is no longer busy.
    pub fn next(&self) -> Option<(Kind, Vec<u8>)> {
        let mut state = self.state();
        let next = state.messages.pop_front();
        match &next {
            Some((_, payload)) => state.bytes -= payload.len() + OVERHEAD,
            None => state.busy -= 1,
        }
        self.less.notify_all();
        next
    }

    /// Waits at most this long while too much is waiting. Returns whether it no longer is.
    pub fn has_room(&self, within: Duration) -> bool {
        let (_state, waited) = self
            .less
            .wait_timeout_while(self.state(), within, |state| state.bytes > MOST)
            .unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_always_reads_and_what_it_reads_is_done_in_turn() {
        let backlog = Backlog::default();
        backlog.join();
        let begin = |byte: u8| backlog.begin(Kind::Request, &mut vec![byte]);
        assert!(begin(1), "there is nobody else");
        (0..2).for_each(|_| backlog.join());
        assert!(begin(2));
        assert!(!begin(3) && !begin(4), "two of three are busy");
        assert_eq!(backlog.next(), Some((Kind::Request, vec![3])));
        assert_eq!(backlog.next(), Some((Kind::Request, vec![4])));
        assert!(!begin(5));
        assert_eq!(backlog.next(), Some((Kind::Request, vec![5])));
        assert_eq!(backlog.next(), None);
        assert!(begin(6), "one is not busy any more");
    }

    #[test]
    fn no_more_is_read_than_there_is_room_for() {
        let backlog = Backlog::default();
        (0..2).for_each(|_| backlog.join());
        let (moment, mut count) = (Duration::from_millis(1), 0);
        assert!(backlog.begin(Kind::Request, &mut Vec::new()));
        while backlog.has_room(moment) {
            assert!(!backlog.begin(Kind::Request, &mut vec![0; 1 << 20]));
            count += 1;
        }
        assert_eq!(count, 4);
        backlog.next();
        assert!(backlog.has_room(moment));
        // Small ones count too.
        while backlog.has_room(Duration::ZERO) {
            backlog.begin(Kind::Request, &mut Vec::new());
        }
        assert!(backlog.state().messages.len() < 16_000);
    }
}
