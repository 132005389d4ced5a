//! Carries on after the connection was lost: with the same host, or with one that was restarted and knows nothing of this mount.
//!
//! 1. The kernel is told at once to believe nothing it knows: while there is no host, nobody hears of changes. Whoever wants to know
//!    something waits from then on.
//! 2. The mounter tries to reach the host, until that takes too long.
//! 3. It is told of what the kernel holds: nodes by their names, and open files. It says what is not there any more; whoever asks for that
//!    gets ESTALE.
//! 4. It is sent the kernel's first request again, and must give the same answer.
//! 5. What waits is sent.
//!
//! All this is done by the deliverer, which has nothing to deliver in the meantime.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    Greeted,
    apply::{Applier, From},
    end::End,
    record::{Record, answered, unique},
};
use crate::{
    ShareError,
    fuse::abi::OutHeader,
    protocol::{
        frame::{self, Kind},
        resume::{Kept, decode_missing},
    },
    transport::{Inbox, Lost, Outbox, TIMEOUT},
};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// How long the kernel may take to drop what it knows, most of which is done at once.
const DROPPING: Duration = Duration::from_secs(10);

/// A host is told of this much at once, and then waited for, so that no more than that is queued anywhere.
const AT_ONCE: usize = 256 << 10;

/// What is needed for it.
pub(super) struct Reconnect {
    record: Mutex<Record>,
    limit: Duration,
    reach: Box<dyn Fn(Duration) -> Result<Greeted, ShareError> + Send + Sync>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    root: u64,
    boot: Mutex<String>,
}

/// The guest's kernel, and what was noted of it, as far as the loss of a host concerns them.
pub(super) trait Guest {
    /// Nothing that was noted about what the host has is valid any more.
    fn believes_nothing(&self);
    /// Gives the kernel an answer.
    fn answer(&self, message: &[u8]);
    /// Hands over what a host says has changed; `None` if that makes no sense.
    fn apply(&self, payload: &[u8], outbox: &Arc<Outbox>, applier: &Applier) -> Option<()>;
    /// Why it is over, if it is.
    fn end(&self) -> Option<End>;
    /// What becomes readable at the end.
    fn ended(&self) -> &OwnedFd;
}

/// Why an attempt has failed.
enum Failed {
    /// The next one may succeed.
    Now,
    /// All others will fail too.
    ForEver(&'static str),
}

impl Reconnect {
    pub fn new(
        host: &Greeted,
        limit: Duration,
        reach: impl Fn(Duration) -> Result<Greeted, ShareError> + Send + Sync + 'static,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            record: Mutex::new(Record::new(host.outbox.clone())),
            limit,
            reach: Box::new(reach),
            tell: Box::new(tell),
            root: host.root,
            boot: Mutex::new(host.boot.clone()),
        }
    }

    /// What the kernel holds and waits for.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a host again; `lost` says why there is none. Returns where its answers come from.
    pub fn again(&self, guest: &dyn Guest, applier: &Applier, lost: &'static str) -> Result<Inbox, End> {
        let until = Instant::now() + self.limit;
        let (wrong, answers) = {
            let mut record = self.record();
            record.outbox().close();
            record.begin()
        };
        guest.believes_nothing();
        answers.iter().for_each(|answer| guest.answer(answer));
        let (sender, dropped) = mpsc::channel();
        applier.take(From::Here(sender), wrong);
        if guest.end().is_some() {
            return Err(End::Unmounted);
        }
        (self.tell)(&format!(
            "the host of the share is gone: {lost}; trying to reach it again for {} s",
            self.limit.as_secs_f64()
        ));
        loop {
            match self.attempt(guest, applier, &dropped, until) {
                Ok(inbox) => return Ok(inbox),
                Err(Failed::ForEver(reason)) => return Err(End::Lost(reason)),
                Err(Failed::Now) => {}
            }
            // What was told to a host that is lost again counts for nothing.
            let (_, answers) = self.record().begin();
            answers.iter().for_each(|answer| guest.answer(answer));
            if !sleep_unless(guest, PAUSE.min(until.saturating_duration_since(Instant::now()))) {
                return Err(End::Unmounted);
            }
            if Instant::now() >= until {
                return Err(End::Lost("it was not reached again in time"));
            }
        }
    }

    fn attempt(
        &self,
        guest: &dyn Guest,
        applier: &Applier,
        dropped: &Receiver<()>,
        until: Instant,
    ) -> Result<Inbox, Failed> {
        let left = until.saturating_duration_since(Instant::now());
        // A time-out of 0 would mean none.
        let host = (self.reach)(left.clamp(PAUSE, TIMEOUT)).map_err(|_| Failed::Now)?;
        if host.root != self.root {
            return Err(Failed::ForEver("another directory is shared there now"));
        }
        // Where it was waited for already, there is nobody left to send anything.
        let _ = dropped.recv_timeout(DROPPING);
        let Greeted { outbox, mut inbox, boot, .. } = host;
        let mut next = Next { guest, applier, outbox: &outbox, inbox: &mut inbox, until };
        let mut before = self.boot.lock().unwrap_or_else(PoisonError::into_inner);
        let list = self.record().tell(*before != boot);
        let lost = self.tell_of(&list, &mut next)?;
        self.ask_first(&mut next)?;
        *before = boot;
        drop(before);
        let open = list.iter().filter(|one| matches!(one, Kept::File { .. })).count();
        let known = list.len() - open;
        (self.tell)(&format!(
            "the host of the share is there again; of {known} files that were known and {open} open ones {lost} are not there any more"
        ));
        let rest = self.record().resume(outbox.clone());
        rest.frames.iter().for_each(|frame| outbox.send(frame));
        rest.answers.iter().for_each(|answer| guest.answer(answer));
        Ok(inbox)
    }

    /// Tells a host of what is held, and forgets what it does not know. Returns how much that is.
    fn tell_of(&self, list: &[Kept], next: &mut Next<'_>) -> Result<usize, Failed> {
        let mut lost = 0;
        let mut rest = list;
        while !rest.is_empty() {
            let (mut bytes, mut count) = (vec![0; frame::HEADER], 0);
            while bytes.len() < AT_ONCE
                && let Some(one) = rest.get(count)
            {
                one.encode(&mut bytes);
                count += 1;
            }
            frame::seal(&mut bytes, Kind::Resume);
            next.outbox.send(&bytes);
            let missing = next.of(|kind, payload| (kind == Kind::Resumed).then(|| payload.to_vec()))?;
            for one in decode_missing(&missing).filter_map(|place| rest[..count].get(place)) {
                self.record().lost(one);
                lost += 1;
            }
            rest = &rest[count..];
        }
        Ok(lost)
    }

    /// Sends a host the kernel's first request again: the kernel relies on the answer that it got.
    fn ask_first(&self, next: &mut Next<'_>) -> Result<(), Failed> {
        let Some((ask, answer)) = self.record().init() else { return Ok(()) };
        let number = unique(&ask);
        next.outbox.send(&ask);
        let same = next.of(|kind, payload| {
            let is_it = kind == Kind::Reply && answered(payload).map(|header| header.unique) == number;
            is_it.then(|| payload.get(size_of::<OutHeader>()..) == Some(&answer))
        })?;
        same.then_some(()).ok_or(Failed::ForEver("it serves the share in another way now"))
    }
}

/// What comes from a host before it is asked anything.
struct Next<'a> {
    guest: &'a dyn Guest,
    applier: &'a Applier,
    outbox: &'a Arc<Outbox>,
    inbox: &'a mut Inbox,
    /// How long a host is waited for that only says that it is there.
    until: Instant,
}

impl Next<'_> {
    /// The next message that is wanted. In the meantime, the host may say what has changed. It may take its time, as long as it says
    /// that it is there: a host whose machine was restarted looks for thousands of files on a disk, with nothing cached.
    fn of<T>(&mut self, is_wanted: impl Fn(Kind, &[u8]) -> Option<T>) -> Result<T, Failed> {
        let mut payload = Vec::new();
        let mut is_asked = false;
        loop {
            let kind = match self.inbox.next(&mut payload) {
                Ok(kind) => kind,
                Err(Lost::Silent) if !is_asked && Instant::now() < self.until && self.guest.end().is_none() => {
                    is_asked = true;
                    self.outbox.send_ahead(&frame::whole(Kind::Ping, &[]));
                    continue;
                }
                Err(_) => return Err(Failed::Now),
            };
            is_asked = false;
            if let Some(wanted) = is_wanted(kind, &payload) {
                return Ok(wanted);
            }
            match kind {
                Kind::Invalidate => self.guest.apply(&payload, self.outbox, self.applier).ok_or(Failed::Now)?,
                // Programs that watch files hear of nothing while there is no host.
                Kind::Pong | Kind::Happened => {}
                _ => return Err(Failed::Now),
            }
        }
    }
}

/// Sleeps, unless the mount is over. Returns whether it is not over.
fn sleep_unless(guest: &dyn Guest, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::new(guest.ended(), PollFlags::IN)], Some(&time));
    guest.end().is_none()
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, fs::File, io};

    use super::*;
    use crate::{
        mount::takers::Takers,
        transport::{Stream, pair},
    };

    /// A guest that nothing is asked of.
    struct Nobody(OwnedFd);

    impl Guest for Nobody {
        fn believes_nothing(&self) {}
        fn answer(&self, _message: &[u8]) {}
        fn apply(&self, _payload: &[u8], _outbox: &Arc<Outbox>, _applier: &Applier) -> Option<()> {
            None
        }
        fn end(&self) -> Option<End> {
            None
        }
        fn ended(&self) -> &OwnedFd {
            &self.0
        }
    }

    #[test]
    fn a_host_may_say_what_happens_before_it_answers() {
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let applier = Applier::start(Arc::new(null()), Arc::new(Takers::default())).unwrap();
        let (ours, theirs) = pair();
        let host = Outbox::new(theirs);
        for kind in [Kind::Pong, Kind::Happened, Kind::Resumed, Kind::Request] {
            host.send(&frame::whole(kind, &[]));
        }
        let (outbox, mut inbox) = (Outbox::new(ours.clone()), Inbox::new(ours));
        let mut next = Next {
            guest: &Nobody(null()),
            applier: &applier,
            outbox: &outbox,
            inbox: &mut inbox,
            until: Instant::now(),
        };
        let mut resumed = || next.of(|kind, _| (kind == Kind::Resumed).then_some(())).is_ok();
        assert!(resumed());
        assert!(!resumed(), "a host asks for nothing");
    }

    /// A connection over which this is said, with nothing in between for longer than is waited for.
    struct Scripted {
        says: Mutex<VecDeque<Option<Kind>>>,
        heard: Mutex<Vec<u8>>,
    }

    impl Stream for Scripted {
        fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.says.lock().unwrap().pop_front() {
                Some(Some(kind)) => {
                    let frame = frame::whole(kind, &[]);
                    buffer[..frame.len()].copy_from_slice(&frame);
                    Ok(frame.len())
                }
                Some(None) => Err(io::ErrorKind::TimedOut.into()),
                None => Ok(0),
            }
        }

        fn set_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }

        fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn wait_sendable(&self, _: Duration) -> io::Result<bool> {
            Ok(true)
        }

        fn close(&self) {}
    }

    #[test]
    fn a_host_that_takes_long_is_asked_whether_it_is_there() {
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let applier = Applier::start(Arc::new(null()), Arc::new(Takers::default())).unwrap();
        let ping = frame::whole(Kind::Ping, &[]);
        let (pong, resumed) = (Some(Kind::Pong), Some(Kind::Resumed));
        let (soon, now) = (Duration::from_secs(600), Duration::ZERO);
        for (left, says, pings, is_resumed) in [
            (soon, &[resumed][..], 0, true),
            (soon, &[None, pong, None, pong, None, resumed], 3, true),
            // It does not even say that, or ends.
            (soon, &[None, None, resumed], 1, false),
            (soon, &[None, pong], 1, false),
            // It has been waited for long enough.
            (now, &[None, pong, resumed], 0, false),
            (now, &[resumed], 0, true),
        ] {
            let until = Instant::now() + left;
            let host = Arc::new(Scripted { says: Mutex::new(says.iter().copied().collect()), heard: Mutex::default() });
            let (outbox, mut inbox) = (Outbox::new(host.clone()), Inbox::new(host.clone()));
            let mut next =
                Next { guest: &Nobody(null()), applier: &applier, outbox: &outbox, inbox: &mut inbox, until };
            let done = next.of(|kind, _| (kind == Kind::Resumed).then_some(())).is_ok();
            assert_eq!(done, is_resumed, "{says:?}");
            assert_eq!(*host.heard.lock().unwrap(), ping.repeat(pings), "{says:?}");
        }
    }
}
