//! What programs on the host change, seen through a fanotify mark on the whole file system, which needs root. It reports every
//! change, by whatever name, and none of them late; where it is refused, guests believe what they are told for a moment only.
//!
//! Not seen: stores into a file that a program on the host has mapped, until it closes the file; other file systems that
//! are mounted below the shared directory (what is on them is believed for a moment only); changes that a network
//! file system's server gets from other clients.

mod events;

use std::{
    collections::{HashMap, HashSet},
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{Arc, PoisonError, RwLock, atomic::Ordering::Relaxed},
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, openat},
    io::Errno,
    thread::gettid,
};

use super::Shared;
use crate::{
    ShareError,
    protocol::{
        happened::{ATTRIBUTES, CHANGED, CLOSED, GONE, Happened, MADE, MOVED},
        invalidation::Invalidation,
    },
    server::{
        export::{identity, stat, stat_at},
        host::Host,
        nodes::NodeId,
    },
};
use events::{Event, Handle, parse};

/// A name has come or gone.
const NAMES: u64 = libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO;

/// Data has changed. A file that is closed after being open for writing may have been mapped.
const DATA: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE;

/// From `include/uapi/linux/fanotify.h`; since Linux 5.17.
const FAN_REPORT_TARGET_FID: u32 = 0x1000;

/// The most that one message tells of.
const MOST_AT_ONCE: usize = 4096;

/// How long the second event of a rename is waited for. It comes at once, unless another program gets the CPU just between the two. Where
/// the kernel has merged it into an earlier event, it never comes.
const OTHER_HALF_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Threads that serve guests; they themselves tell of what they do.
static OWN: RwLock<Option<HashSet<i32>>> = RwLock::new(None);

/// Marks the calling thread as one of those, until dropped.
pub(crate) struct OwnThread(i32);

/// Notes that the calling thread serves guests.
pub(crate) fn own_thread() -> OwnThread {
    let thread = gettid().as_raw_nonzero().get();
    OWN.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(thread);
    OwnThread(thread)
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        OWN.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().remove(&self.0);
    }
}

/// What is needed to watch, if watching is wanted and possible, and a line about it for the user.
pub(crate) fn open(host: &Arc<Host>) -> (Option<Watcher>, String) {
    if !host.options.watch {
        return (None, "changes on the host are not watched: guests believe what they are told for 1 s".into());
    }
    match queue(host) {
        Ok((queue, mount)) => {
            (Some(Watcher { host: host.clone(), queue, mount }), "changes on the host are watched".into())
        }
        Err(error) => (
            None,
            format!(
                "changes on the host cannot be watched ({error}; it needs root): guests believe what they are told for 1 s"
            ),
        ),
    }
}

/// The queue of events, and a descriptor through which the file system's handles are opened.
fn queue(host: &Host) -> io::Result<(OwnedFd, OwnedFd)> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mount = openat(host.export.root(), c".", directory, Mode::empty())?;
    let flags = libc::FAN_CLASS_NOTIF
        | libc::FAN_CLOEXEC
        | libc::FAN_REPORT_FID
        | libc::FAN_REPORT_DFID_NAME
        | libc::FAN_REPORT_TID
        | FAN_REPORT_TARGET_FID;
    // SAFETY: no memory is passed.
    let queue = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as u32) };
    if queue < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else's.
    let queue = unsafe { OwnedFd::from_raw_fd(queue) };
    let mask = NAMES | DATA | libc::FAN_ATTRIB | libc::FAN_ONDIR;
    let how = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    // SAFETY: the path is a C string.
    let marked = unsafe { libc::fanotify_mark(queue.as_raw_fd(), how, mask, mount.as_raw_fd(), c".".as_ptr()) };
    if marked < 0 { Err(io::Error::last_os_error()) } else { Ok((queue, mount)) }
}

/// Watches for what programs on the host change.
pub(crate) struct Watcher {
    host: Arc<Host>,
    queue: OwnedFd,
    mount: OwnedFd,
}

impl Watcher {
    /// Begins.
    pub fn start(self) -> Result<(), ShareError> {
        self.host.is_watched.store(true, Relaxed);
        thread::Builder::new()
            .name("share-watch".into())
            .spawn(move || self.run())
            .map(drop)
            .map_err(ShareError::system("start a thread"))
    }

    fn run(&self) {
        let mut buffer = vec![0; 64 << 10];
        // What listeners are still to be told of.
        let mut waiting: Vec<Event> = Vec::new();
        loop {
            if !waiting.is_empty() && !self.has_more(OTHER_HALF_WITHIN) {
                self.tell_listeners(&std::mem::take(&mut waiting));
            }
            let events = match rustix::io::read(&self.queue, &mut buffer[..]) {
                Ok(length) => parse(&buffer[..length]),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(_) => None,
            };
            // Nothing could be vouched for any more.
            let Some(events) = events else { break };
            let events = of_others(events);
            if events.is_empty() {
                continue;
            }
            self.tell(&events);
            if self.host.coherence.has_listeners() {
                waiting.extend(events);
                let whole = if waiting.len() > MOST_AT_ONCE { waiting.len() } else { whole(&waiting) };
                let rest = waiting.split_off(whole);
                self.tell_listeners(&std::mem::replace(&mut waiting, rest));
            }
        }
        self.host.is_watched.store(false, Relaxed);
        self.tell_everything();
    }

    /// Whether an event comes within this time.
    fn has_more(&self, within: Timespec) -> bool {
        let mut queue = [PollFd::new(&self.queue, PollFlags::IN)];
        // An error is left for the read that follows.
        poll(&mut queue, Some(&within)).is_ok_and(|ready| ready > 0)
    }

    fn tell(&self, events: &[Event]) {
        self.host.events.fetch_add(events.len() as u64, Relaxed);
        // The look at who holds what begins here.
        let _selecting = self.host.coherence.selecting();
        if events.iter().any(|event| event.mask & libc::FAN_Q_OVERFLOW != 0) {
            self.host.overflows.fetch_add(1, Relaxed);
            // Something may have been moved out of the shared directory.
            self.host.export.drop_all_descriptors();
            self.tell_everything();
        }
        let mut known = HashMap::new();
        let mut changes = Vec::new();
        events.iter().for_each(|event| self.changes(event, &mut known, &mut changes));
        let mut seen = HashSet::new();
        changes.retain(|change| seen.insert(change.clone()));
        for changes in changes.chunks(MOST_AT_ONCE) {
            self.host.coherence.announce(|| Shared(self.host.export.nodes()), changes);
        }
    }

    /// Tells guests that want to hear it what has happened.
    fn tell_listeners(&self, events: &[Event]) {
        let _selecting = self.host.coherence.selecting();
        for happened in self.happened(events).chunks(MOST_AT_ONCE) {
            self.host.coherence.happened(&Shared(self.host.export.nodes()), happened);
        }
    }

    /// What has happened. Renaming a file makes two events, the second after the first.
    fn happened(&self, events: &[Event]) -> Vec<Happened> {
        let mut known = HashMap::new();
        let mut list = Vec::new();
        let mut told = HashSet::new();
        for (at, event) in events.iter().enumerate() {
            if told.contains(&at) {
                continue;
            }
            let Some((directory, name)) = self.place(event, &mut known) else { continue };
            let other = other_half(events, at);
            told.extend(other);
            let to = other.map(|other| &events[other]).and_then(|to| Some((to, self.place(to, &mut known)?)));
            let (seen_at, mask) =
                to.as_ref().map_or((directory, event.mask), |(to, (at, _))| (*at, event.mask | to.mask));
            let last_name = to.as_ref().map_or(name, |(_, (_, name))| name);
            let is_directory = event.mask & libc::FAN_ONDIR != 0;
            let kind = self.kind(seen_at, last_name);
            let what = what(mask, to.is_some(), kind.is_some());
            let kind = kind.unwrap_or(if is_directory { libc::S_IFDIR } else { libc::S_IFREG });
            if what != 0 && name.as_c_str() != c"." {
                let to = to.map(|(_, (directory, name))| (directory, name.clone()));
                list.push(Happened { what, kind, directory, name: name.clone(), to });
            }
        }
        list
    }

    /// The directory in which something has happened, if any guest knows it, and the name.
    fn place<'a>(
        &self,
        event: &'a Event,
        known: &mut HashMap<&'a Handle, Option<NodeId>>,
    ) -> Option<(NodeId, &'a CString)> {
        let (handle, name) = event.place.as_ref()?;
        Some((self.node(handle, known)?, name))
    }

    /// The type of the file that a name now refers to.
    fn kind(&self, directory: NodeId, name: &CStr) -> Option<u32> {
        let found = self.host.export.find(directory).ok()?;
        stat_at(&found, name).ok().map(|stat| u32::from(stat.stx_mode) & libc::S_IFMT)
    }

    fn changes<'a>(
        &self,
        event: &'a Event,
        known: &mut HashMap<&'a Handle, Option<NodeId>>,
        changes: &mut Vec<Invalidation>,
    ) {
        let target = event.about().and_then(|handle| self.node(handle, known));
        let place = event.place.as_ref().and_then(|(handle, name)| Some((self.node(handle, known)?, name)));
        if event.mask & NAMES != 0 {
            if let Some((directory, name)) = place {
                self.renamed(target, directory, name);
                changes.push(Invalidation::name(directory, name));
                changes.push(Invalidation::data(directory));
            }
            let is_shared = place.is_some_and(|(directory, _)| self.host.export.find(directory).is_ok());
            match target.filter(|_| event.mask & libc::FAN_MOVED_TO != 0 && !is_shared) {
                // It is not shared any more, and descriptors must not lead there, nor to what is in it.
                Some(_) if event.mask & libc::FAN_ONDIR != 0 => self.host.export.drop_all_descriptors(),
                Some(target) => self.host.export.drop_descriptors(&[target]),
                None => {}
            }
        }
        if let Some(node) = target {
            changes.push(Invalidation::Node { node, data: event.mask & DATA != 0 });
        }
    }

    /// Keeps up with the names of a file.
    fn renamed(&self, target: Option<NodeId>, directory: NodeId, name: &CStr) {
        let Some(target) = target else { return };
        let Ok(found) = self.host.export.find(directory) else { return };
        let is_there = stat_at(&found, name)
            .is_ok_and(|stat| self.host.export.nodes().identity(target).is_some_and(|known| known == identity(&stat)));
        let mut nodes = self.host.export.nodes();
        if is_there {
            nodes.named(target, directory, name);
        } else {
            let gone = nodes.unnamed(target, directory, name);
            drop(nodes);
            self.host.export.drop_descriptors(&gone);
            self.host.export.drop_removed(target);
        }
    }

    /// The node of a handle, if any guest knows it.
    fn node<'a>(&self, handle: &'a Handle, known: &mut HashMap<&'a Handle, Option<NodeId>>) -> Option<NodeId> {
        *known.entry(handle).or_insert_with(|| {
            let found = open_handle(&self.mount, handle).ok()?;
            self.host.export.nodes().number(&identity(&stat(&found).ok()?))
        })
    }

    /// Events were lost: nothing that any guest holds can be relied on.
    fn tell_everything(&self) {
        for link in self.host.coherence.all() {
            let held = self.host.export.nodes().held_by(link.guest);
            self.host.coherence.tell(&link, &[Invalidation::AllNames]);
            let mut list = Vec::new();
            for node in held {
                // Names one by one as well, for kernels that have no notification for all of them.
                list.push(Invalidation::data(node));
                list.extend(self.names(node));
                // A file may have any number of names, and a message has a limit.
                if list.len() >= MOST_AT_ONCE {
                    list.chunks(MOST_AT_ONCE).for_each(|list| self.host.coherence.tell(&link, list));
                    list.clear();
                }
            }
            self.host.coherence.tell(&link, &list);
        }
    }

    fn names(&self, node: NodeId) -> Vec<Invalidation> {
        self.host.export.nodes().names(node).map(|name| Invalidation::name(name.directory, &name.name)).collect()
    }
}

/// Those of threads that do not serve guests.
fn of_others(mut events: Vec<Event>) -> Vec<Event> {
    let own = OWN.read().unwrap_or_else(PoisonError::into_inner);
    events.retain(|event| own.as_ref().is_none_or(|own| !own.contains(&event.thread)));
    events
}

/// How many of these events, from the first on, are complete with their other halves; the kernel may be about to add a missing one.
fn whole(events: &[Event]) -> usize {
    let is_half = |at: &usize| events[*at].mask & libc::FAN_MOVED_FROM != 0 && other_half(events, *at).is_none();
    (0..events.len()).find(is_half).unwrap_or(events.len())
}

/// The second event of a rename, where this is the first. Events of other threads may come in between.
fn other_half(events: &[Event], of: usize) -> Option<usize> {
    (of + 1..events.len()).find(|at| is_one_move(&events[of], &events[*at]))
}

/// Whether the second event is the other half of a rename.
fn is_one_move(from: &Event, to: &Event) -> bool {
    from.mask & libc::FAN_MOVED_FROM != 0
        && to.mask & libc::FAN_MOVED_TO != 0
        && (from.thread, &from.target) == (to.thread, &to.target)
}

/// What such a mask says has happened to a file that was or was not renamed (to a directory that guests know), and is or is not there now.
fn what(mask: u64, is_moved: bool, is_there: bool) -> u8 {
    let come = if is_moved { libc::FAN_CREATE } else { libc::FAN_CREATE | libc::FAN_MOVED_TO };
    let gone = if is_moved { libc::FAN_DELETE } else { libc::FAN_DELETE | libc::FAN_MOVED_FROM };
    let has = |events: u64, what: u8| if mask & events != 0 { what } else { 0 };
    let there = has(come, MADE)
        | has(libc::FAN_MODIFY, CHANGED)
        | has(libc::FAN_ATTRIB, ATTRIBUTES)
        | has(libc::FAN_CLOSE_WRITE, CLOSED);
    (if is_there { there } else { 0 }) | has(gone, GONE) | if is_moved { MOVED } else { 0 }
}

/// A descriptor for the file that a handle refers to; getting it neither opens nor changes the file.
fn open_handle(mount: &OwnedFd, handle: &Handle) -> Result<OwnedFd, Errno> {
    // The structure begins with integers.
    let mut aligned = vec![0u32; handle.0.len().div_ceil(4)];
    for (word, bytes) in aligned.iter_mut().zip(handle.0.chunks(4)) {
        let mut four = [0; 4];
        four[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_ne_bytes(four);
    }
    // SAFETY: the kernel reads a `struct file_handle`, as long as its own header says, and `parse` has seen that it is.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            aligned.as_ptr(),
            libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW,
        )
    };
    if opened < 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::STALE));
    }
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(mask: u64, thread: i32, target: u8, name: &CStr) -> Event {
        let place = Some((Handle(vec![0]), name.into()));
        Event { mask, thread, place, target: Some(Handle(vec![target])) }
    }

    #[test]
    fn a_rename_waits_for_its_second_event_whatever_stands_between() {
        let from = || event(libc::FAN_MOVED_FROM, 7, 1, c"new");
        let to = || event(libc::FAN_MOVED_TO, 7, 1, c"old");
        let other = || event(libc::FAN_MODIFY, 8, 2, c"other");
        assert_eq!(whole(&[]), 0);
        assert_eq!(whole(&[other(), from()]), 1);
        assert_eq!(whole(&[other(), from(), other()]), 1);
        assert_eq!(whole(&[other(), from(), other(), to()]), 4);
        assert_eq!(other_half(&[from(), other(), to()], 0), Some(2));
        // Of another file, and of another thread's rename of it.
        for stranger in [event(libc::FAN_MOVED_TO, 7, 3, c"old"), event(libc::FAN_MOVED_TO, 9, 1, c"old")] {
            assert_eq!(whole(&[from(), stranger]), 0);
        }
        // The second alone belongs to a file that came from elsewhere.
        assert_eq!(whole(&[to()]), 1);
    }
}
