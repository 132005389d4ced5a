//! The host's side: a directory, shown to guests.
//!
//! | module | what it knows |
//! |---|---|
//! | this one | listening, and ending |
//! | `host` | what all guests have in common |
//! | `connection` | one connection, from the handshake to the end |
//! | `backlog` | what has come over it and waits, since all threads but one are busy |
//! | `virtio` | one virtual machine whose guest mounts the share over virtiofs |
//! | `answering` | a request from either, from when it is read to its answer |
//! | `guest` | who is at its other end |
//! | `resume` | what a guest has kept from a connection that was lost |
//! | `operations` | what a guest asks |
//! | `sandbox` | what the process gives up before it serves anybody |
//! | `export` | finding the file of a node, and nothing outside of the directory |
//! | `nodes` | what guests know |
//! | `descriptors` | recently used descriptors |
//! | `handles` | files that guests have open |
//! | `attributes` | attributes, and who owns the files |

mod answering;
mod attributes;
mod backlog;
mod connection;
mod descriptors;
pub(crate) mod export;
mod guest;
mod handles;
pub(crate) mod host;
pub(crate) mod nodes;
mod operations;
mod resume;
mod sandbox;
#[cfg(test)]
mod tests;
mod virtio;

pub use attributes::Owners;
pub use host::ServeOptions;

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setrlimit, umask},
};

use crate::{
    Address, ShareError,
    coherence::watch::{self, Watcher},
    keys::Admitted,
    transport::{Came, Listener, socket},
};
use export::Export;
use host::Host;
use virtio::Machine;

/// Makes the process ready to serve, and begins to watch for changes; also returns a line for the user about how it does.
fn start(directory: &Path, root: OwnedFd, options: ServeOptions) -> Result<(Arc<Host>, String), ShareError> {
    if options.owners == Owners::Keep && !rustix::process::geteuid().is_root() {
        return Err(ShareError::lacking("only root can keep the owners of files (--owners keep)"));
    }
    let limit = getrlimit(Resource::Nofile);
    // What the system allows is enough for whatever comes; where not, there are fewer.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let host = Host::new(directory.into(), root, options)?;
    // The guest's kernel has already applied the umask of whoever makes a file.
    umask(Mode::empty());
    let mut holds = sandbox::enter(host.export.root());
    let (watcher, watched) = watch::open(&host);
    // What watching needs is open, and there is no other thread yet.
    if sandbox::keep_rights_to_files(host.options.owners) {
        holds.insert(0, "capabilities".into());
    }
    host.sandbox.get_or_init(|| holds);
    watcher.map(Watcher::start).transpose()?;
    Ok((host, watched))
}

/// A share with one guest, which is connected from the beginning: nobody else can reach it.
pub struct PrivateShare(Arc<Host>);

impl PrivateShare {
    /// For a directory that is open, if only as a path; `directory` is what it is called. Changes limits and the file mode creation
    /// mask of the process, and gives up what this thread and later ones do not need.
    ///
    /// # Errors
    /// Where the directory cannot be shared.
    pub fn new(directory: &Path, root: OwnedFd, options: ServeOptions) -> Result<Self, ShareError> {
        start(directory, root, options).map(|(host, _)| Self(host))
    }

    /// From now on, delays answers to requests by as much as the options say, or not at all.
    pub fn delay(&self, is_delayed: bool) {
        self.0.delay(is_delayed);
    }

    /// Serves whoever is at the other end of a socket, until the connection ends.
    ///
    /// # Errors
    /// Where the system refuses what is needed for that.
    pub fn serve(&self, guest: OwnedFd) -> Result<(), ShareError> {
        connection::serve(&self.0, socket(guest), ())
    }
}

/// More connections than this are refused, so that nobody uses up the host's threads.
const MOST_GUESTS: usize = 128;

/// How many of these may be connected at the same time without having said who they are, each for a few seconds.
const MOST_STRANGERS: usize = 32;

/// How often to look for guests that do not acknowledge.
const ROUND: Duration = Duration::from_secs(1);

/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// Shares a directory with whoever connects at one of the addresses, until `stop` becomes readable. `ready` is called once guests
/// can connect, with what they should know about how it is watched.
///
/// To be called from a process with one thread, since it forks and then gives up what it does not need (`sandbox`), which concerns this
/// thread and later ones. Changes limits and the file mode creation mask of the process. Threads that serve guests are still running on
/// return: the process must then end, which ends them and their connections.
///
/// # Errors
/// Where the directory cannot be shared or nobody can listen at an address.
pub fn serve(
    directory: &Path,
    listen: &[Address],
    admitted: &Admitted,
    options: ServeOptions,
    stop: BorrowedFd<'_>,
    ready: impl FnOnce(&str),
) -> Result<(), ShareError> {
    let nobody = Admitted::default();
    let is_remote = listen.iter().any(Address::is_remote);
    let listener = |address: &Address| {
        // If there is an address that keys and machines are for, they are not meant for the others.
        Listener::new(address, if is_remote && !address.is_remote() { &nobody } else { admitted })
    };
    let listeners = listen.iter().map(listener).collect::<Result<Vec<_>, _>>()?;
    let (host, watched) = start(directory, Export::open_root(directory)?, options)?;
    ready(&watched);
    let (guests, strangers) = (Arc::default(), Arc::default());
    loop {
        let timeout = Timespec { tv_sec: ROUND.as_secs() as i64, tv_nsec: 0 };
        let listening: Vec<_> = listeners.iter().map(Listener::as_fd).collect();
        let mut events: Vec<_> =
            listening.iter().chain([&stop]).map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(ShareError::System { what: "wait for guests", source: errno.into() }),
        }
        let happened: Vec<bool> = events.iter().map(|event| !event.revents().is_empty()).collect();
        let Some((&false, came)) = happened.split_last() else { return Ok(()) };
        host.coherence.drop_silent();
        for (listener, _) in listeners.iter().zip(came).filter(|(_, came)| **came) {
            let Ok(came) = listener.accept() else {
                // Too many descriptors, or a guest that has already gone.
                thread::sleep(PAUSE);
                continue;
            };
            match Counted::new(&guests, MOST_GUESTS).zip(Counted::new(&strangers, MOST_STRANGERS)) {
                Some((guest, unknown)) => serve_one(&host, came, guest, unknown)?,
                None => came.refuse(),
            }
        }
    }
}

/// Serves whoever has come, in a thread of its own. It counts as a guest as long as `guest` is there, and as a stranger as long as `unknown` is.
fn serve_one(host: &Arc<Host>, came: Came, guest: Counted, unknown: Counted) -> Result<(), ShareError> {
    let of_thread = host.clone();
    let work: Box<dyn FnOnce() + Send> = match came {
        Came::Guest(stranger) => Box::new(move || {
            if let Ok(stream) = stranger.meet(connection::GREETING) {
                let _ = connection::serve(&of_thread, stream, unknown);
            }
        }),
        Came::Port(port) => Box::new(move || {
            drop(unknown);
            while let Ok(Some(stream)) = port.accept() {
                let _ = connection::serve(&of_thread, stream, ());
            }
        }),
        // Accepted here, so that it does not come once more.
        Came::Device(listener) => match Machine::accept(host, listener) {
            Ok(machine) => Box::new(move || machine.serve()),
            Err(_) => {
                thread::sleep(PAUSE);
                return Ok(());
            }
        },
    };
    let served = thread::Builder::new().name("share-guest".into()).spawn(move || {
        work();
        drop(guest);
    });
    match served {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
            Err(ShareError::System { what: "start a thread", source: error })
        }
        _ => Ok(()),
    }
}

/// Counts as one of a limited number, until dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// One more, unless there are enough.
    fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let counted = Self(count.clone());
        (count.fetch_add(1, Relaxed) < most).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
