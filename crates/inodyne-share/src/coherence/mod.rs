//! Keeps what guests hold valid: who is told of what, and when a change counts as done.
//!
//! | module | what it knows |
//! |---|---|
//! | `watch` | what programs on the host change |
//! | this one | what guests change, and who is told of either |
//!
//! A guest is told of a change if it holds the node, or the directory of the name. It holds those it was told of and has not forgotten.
//!
//! ```text
//!  guest A          host                      guest B
//!    | -- unlink ---> |  (done on the disk)      |
//!    |                | -- invalidate 7 -------> |
//!    |                | <------- acknowledge 7 - |   B's kernel has no old name any more
//!    | <-- answered - |                          |
//! ```
//!
//! With strict ordering, A is answered after every such guest has acknowledged; with relaxed ordering, at once. No thread waits for
//! an acknowledgement: the answer is kept here, and whichever acknowledgement comes last sends it. So guests that wait for each other,
//! however many, cannot use up the threads. A guest that does not acknowledge in time loses its connection, since what it holds is stale.

pub(crate) mod watch;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

use crate::{
    protocol::{
        frame::{self, Kind},
        happened::{self, Happened},
        invalidation::{Invalidation, encode},
    },
    server::nodes::{GuestId, Nodes},
    transport::FrameSink,
};

/// How long a guest may take to acknowledge.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// When a guest's change is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// After every other guest has dropped what the change made stale.
    Strict,
    /// At once; the others learn of it within moments.
    Relaxed,
}

/// How a guest is reached.
pub(crate) struct Link {
    pub guest: GuestId,
    pub outbox: Arc<dyn FrameSink>,
    /// Whether it wants to hear what programs on the host do.
    events: bool,
    /// Messages that were sent to it, and those that it acknowledged.
    pub told: AtomicU64,
    pub acknowledged: AtomicU64,
}

impl Link {
    /// A link to a guest that is told of nothing, unless it enters ([`Coherence::enter`]).
    pub fn new(guest: GuestId, outbox: Arc<dyn FrameSink>, events: bool) -> Arc<Self> {
        Arc::new(Self { guest, outbox, events, told: AtomicU64::new(0), acknowledged: AtomicU64::new(0) })
    }
}

/// Who is told, and which answers wait for that.
pub(crate) struct Coherence {
    ordering: Ordering,
    announce: bool,
    last: AtomicU64,
    guests: Mutex<HashMap<GuestId, Arc<Link>>>,
    pending: Mutex<HashMap<u64, Pending>>,
    /// How many times a look at who holds what has begun, and how many times it has finished.
    begun: AtomicU64,
    done: AtomicU64,
}

/// A look at who holds what, under way until dropped.
pub(crate) struct Selecting<'a>(&'a Coherence);

impl Drop for Selecting<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, SeqCst);
    }
}

/// A message that is not acknowledged yet.
struct Pending {
    guest: GuestId,
    since: Instant,
    answer: Option<Arc<Answer>>,
}

/// An answer that waits for acknowledgements.
struct Answer {
    missing: AtomicUsize,
    frame: Mutex<Option<Vec<u8>>>,
    outbox: Arc<dyn FrameSink>,
}

impl Answer {
    /// One fewer acknowledgement is missing.
    fn one_less(&self) {
        if self.missing.fetch_sub(1, AcqRel) == 1
            && let Some(frame) = self.frame.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            self.outbox.send(&frame);
        }
    }
}

impl Coherence {
    /// Without `announce` nobody is told of anything.
    pub fn new(ordering: Ordering, announce: bool) -> Self {
        Self {
            ordering,
            announce,
            last: AtomicU64::new(0),
            guests: Mutex::default(),
            pending: Mutex::default(),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    fn guests(&self) -> MutexGuard<'_, HashMap<GuestId, Arc<Link>>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a look at who holds what has changed.
    pub fn selecting(&self) -> Selecting<'_> {
        self.begun.fetch_add(1, SeqCst);
        Selecting(self)
    }

    /// To be called before looking at a file that a guest will be told of; the result is for [`Coherence::is_missed`].
    pub fn before(&self) -> u64 {
        self.done.load(SeqCst)
    }

    /// Whether a change after `before` may have been announced to all who held the file, while this guest did not hold it yet. If so, the file
    /// must be looked at again. The guest is told of whatever changes from now on.
    ///
    /// ```text
    ///   guest B looks at the file                      B holds it: is_missed
    ///  ------|----------------------------------------------|------->
    ///             changed by A    A looks at who holds it: not B
    /// ```
    pub fn is_missed(&self, before: u64) -> bool {
        self.begun.load(SeqCst) != before
    }

    /// A guest comes.
    pub fn enter(&self, guest: GuestId, outbox: Arc<dyn FrameSink>, events: bool) -> Arc<Link> {
        let link = Link::new(guest, outbox, events);
        self.guests().insert(guest, link.clone());
        link
    }

    /// A guest is gone, or as good as gone: nobody waits for it any more.
    pub fn leave(&self, guest: GuestId) {
        self.guests().remove(&guest);
        let left: Vec<Pending> = {
            let mut pending = self.pending();
            let numbers: Vec<u64> =
                pending.iter().filter(|(_, one)| one.guest == guest).map(|(number, _)| *number).collect();
            numbers.into_iter().filter_map(|number| pending.remove(&number)).collect()
        };
        left.into_iter().filter_map(|one| one.answer).for_each(|answer| answer.one_less());
    }

    /// Answers a guest whose request changed something. Returns the frame's memory if it is free again.
    pub fn answer<'n>(
        &self,
        nodes: impl FnOnce() -> Shared<'n>,
        origin: &Link,
        changes: &[Invalidation],
        frame: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let others: Vec<_> = self.guests().values().filter(|link| link.guest != origin.guest).cloned().collect();
        if changes.is_empty() || others.is_empty() || !self.announce {
            origin.outbox.send(&frame);
            return Some(frame);
        }
        let told = {
            let _selecting = self.selecting();
            nodes().select(others, changes)
        };
        if self.ordering == Ordering::Relaxed {
            origin.outbox.send(&frame);
            told.into_iter().for_each(|(link, list)| self.send(&link, &list, None));
            return Some(frame);
        }
        // One more than there are, so that the answer is not sent while messages are still being sent.
        let answer = Answer {
            missing: AtomicUsize::new(told.len() + 1),
            frame: Mutex::new(Some(frame)),
            outbox: origin.outbox.clone(),
        };
        let answer = Arc::new(answer);
        told.into_iter().for_each(|(link, list)| self.send(&link, &list, Some(answer.clone())));
        answer.one_less();
        None
    }

    /// Tells every guest of what a program on the host has changed.
    pub fn announce<'n>(&self, nodes: impl FnOnce() -> Shared<'n>, changes: &[Invalidation]) {
        let all: Vec<_> = self.guests().values().cloned().collect();
        if changes.is_empty() || all.is_empty() || !self.announce {
            return;
        }
        nodes().select(all, changes).into_iter().for_each(|(link, list)| self.send(&link, &list, None));
    }

    /// Whether any guest wants to hear what programs on the host do.
    pub fn has_listeners(&self) -> bool {
        self.guests().values().any(|link| link.events)
    }

    /// Tells every guest that wants to hear it and holds the directory what programs on the host have done.
    pub fn happened(&self, nodes: &Shared<'_>, list: &[Happened]) {
        let listeners: Vec<_> = self.guests().values().filter(|link| link.events).cloned().collect();
        for link in listeners {
            let held: Vec<_> = list.iter().filter(|one| nodes.0.holds(link.guest, one.directory)).collect();
            if !held.is_empty() {
                link.outbox.send(&frame::whole(Kind::Happened, &happened::encode(&held)));
            }
        }
    }

    /// Tells one guest.
    pub fn tell(&self, link: &Link, list: &[Invalidation]) {
        if self.announce && !list.is_empty() {
            self.send(link, list, None);
        }
    }

    /// Every guest.
    pub fn all(&self) -> Vec<Arc<Link>> {
        self.guests().values().cloned().collect()
    }

    fn send(&self, link: &Link, list: &[Invalidation], answer: Option<Arc<Answer>>) {
        let number = self.last.fetch_add(1, Relaxed) + 1;
        self.pending().insert(number, Pending { guest: link.guest, since: Instant::now(), answer });
        link.told.fetch_add(1, Relaxed);
        link.outbox.send(&frame::whole(Kind::Invalidate, &encode(number, list)));
        // It may have left in the meantime, and then nobody else would acknowledge for it.
        if !self.guests().contains_key(&link.guest) {
            self.leave(link.guest);
        }
    }

    /// A guest acknowledges a message.
    pub fn acknowledged(&self, link: &Link, number: u64) {
        let pending = {
            let mut pending = self.pending();
            match pending.get(&number) {
                Some(one) if one.guest == link.guest => pending.remove(&number),
                _ => None,
            }
        };
        let Some(pending) = pending else { return };
        link.acknowledged.fetch_add(1, Relaxed);
        if let Some(answer) = pending.answer {
            answer.one_less();
        }
    }

    /// Ends the connections of guests that have not acknowledged for too long.
    pub fn drop_silent(&self) {
        let silent: Vec<GuestId> =
            self.pending().values().filter(|one| one.since.elapsed() > TIMEOUT).map(|one| one.guest).collect();
        let links: Vec<_> = {
            let guests = self.guests();
            silent.iter().filter_map(|guest| guests.get(guest).cloned()).collect()
        };
        for link in links {
            link.outbox.close();
            // Others need not wait until what this guest has asked for is done.
            self.leave(link.guest);
        }
    }
}

/// What guests hold, locked for as long as it takes to choose what each is told.
pub(crate) struct Shared<'a>(pub MutexGuard<'a, Nodes>);

impl Shared<'_> {
    fn select(self, links: Vec<Arc<Link>>, changes: &[Invalidation]) -> Vec<(Arc<Link>, Vec<Invalidation>)> {
        let held = |guest, change: &Invalidation| match change {
            Invalidation::Node { node, .. } => self.0.holds(guest, *node),
            Invalidation::Name { directory, .. } => self.0.holds(guest, *directory),
            Invalidation::AllNames => true,
        };
        let lists = links.into_iter().map(|link| {
            let list: Vec<_> = changes.iter().filter(|change| held(link.guest, change)).cloned().collect();
            (link, list)
        });
        lists.filter(|(_, list)| !list.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::invalidation::decode,
        server::nodes::{Identity, ROOT},
        transport::{Inbox, Outbox, Stream, pair},
    };

    struct Guest {
        link: Arc<Link>,
        inbox: Inbox,
        stream: Arc<dyn Stream>,
    }

    fn guest(coherence: &Coherence, number: GuestId) -> Guest {
        let (ours, theirs) = pair();
        theirs.set_timeout(Some(Duration::from_millis(50))).unwrap();
        let link = coherence.enter(number, Outbox::to_guest(ours), false);
        Guest { link, inbox: Inbox::new(theirs.clone()), stream: theirs }
    }

    fn next(guest: &mut Guest) -> Option<(Kind, Vec<u8>)> {
        let mut payload = Vec::new();
        guest.inbox.next(&mut payload).ok().map(|kind| (kind, payload))
    }

    /// Two guests, and the number of what both hold.
    fn nodes() -> (Mutex<Nodes>, u64) {
        let mut nodes = Nodes::new(Identity { device: 1, inode: 2, born: 0 });
        let [number, _] = [1, 2].map(|guest| nodes.tell(guest, Identity { device: 1, inode: 3, born: 0 }, ROOT, c"a"));
        (Mutex::new(nodes), number)
    }

    #[test]
    fn a_strict_answer_comes_after_the_acknowledgements() {
        let (nodes, number) = nodes();
        let coherence = Coherence::new(Ordering::Strict, true);
        let [mut one, mut two, mut three] = [1, 2, 3].map(|id| guest(&coherence, id));
        let changes = [Invalidation::data(number), Invalidation::name(number, c"x")];
        coherence.answer(|| Shared(nodes.lock().unwrap()), &one.link, &changes, frame::whole(Kind::Reply, b"done"));
        assert_eq!(next(&mut one), None);
        assert_eq!(next(&mut three), None, "it does not hold the node");
        let (kind, payload) = next(&mut two).unwrap();
        let (number, list) = decode(&payload).unwrap();
        assert_eq!((kind, &list[..]), (Kind::Invalidate, &changes[..]));
        coherence.acknowledged(&three.link, number);
        assert_eq!(next(&mut one), None, "not its to acknowledge");
        coherence.acknowledged(&two.link, number);
        assert_eq!(next(&mut one), Some((Kind::Reply, b"done".into())));
    }

    #[test]
    fn who_leaves_is_waited_for_no_more_and_relaxed_waits_for_nobody() {
        let (nodes, number) = nodes();
        for ordering in [Ordering::Strict, Ordering::Relaxed] {
            let coherence = Coherence::new(ordering, true);
            let [mut one, two] = [1, 2].map(|id| guest(&coherence, id));
            let reply = frame::whole(Kind::Reply, b"");
            coherence.answer(|| Shared(nodes.lock().unwrap()), &one.link, &[Invalidation::data(number)], reply);
            assert_eq!(next(&mut one).is_some(), ordering == Ordering::Relaxed);
            two.stream.close();
            coherence.leave(2);
            assert_eq!(next(&mut one).is_some(), ordering == Ordering::Strict);
        }
    }

    #[test]
    fn who_is_silent_is_dropped_and_holds_up_nobody() {
        let (nodes, number) = nodes();
        let coherence = Coherence::new(Ordering::Strict, true);
        let [mut one, mut two] = [1, 2].map(|id| guest(&coherence, id));
        let changes = [Invalidation::data(number)];
        for reply in [&b"one"[..], b"two"] {
            let reply = frame::whole(Kind::Reply, reply);
            coherence.answer(|| Shared(nodes.lock().unwrap()), &one.link, &changes, reply);
        }
        coherence.drop_silent();
        assert_eq!(next(&mut one), None);
        coherence.pending().values_mut().for_each(|one| one.since -= 2 * TIMEOUT);
        coherence.drop_silent();
        let answers = [next(&mut one), next(&mut one)].map(|next| next.map(|(kind, _)| kind));
        assert_eq!(answers, [Some(Kind::Reply); 2]);
        assert_eq!(std::iter::from_fn(|| next(&mut two)).count(), 2, "then its connection ends");
        // Its end is noticed later.
        coherence.leave(2);
        assert!(coherence.pending().is_empty());
    }
}
