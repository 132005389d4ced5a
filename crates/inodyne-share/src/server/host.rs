//! What all guests of a share have in common.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

use super::{
    attributes::{Owners, UNWATCHED, View, WATCHED},
    export::{Export, stat},
    guest::Guest,
    handles::Handles,
    nodes::{GuestId, Identity, NodeId, ROOT},
};
use crate::{
    ShareError,
    coherence::{Coherence, Ordering},
    protocol::status::Status,
};

/// How a directory is shared.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Nothing is changed on behalf of any guest.
    pub read_only: bool,
    /// Directories are read without the types of their entries, and guests are told nothing that they did not ask for.
    pub withhold_types: bool,
    /// Who owns the files.
    pub owners: Owners,
    /// When a change is acknowledged.
    pub ordering: Ordering,
    /// Whether to watch for changes on the host.
    pub watch: bool,
    /// Whether guests are told of changes at all. Without this they are stale, which shows that a test can detect that.
    pub announce: bool,
    /// Time added to each request that is answered: a slower connection, for measurements.
    pub delay: Duration,
    /// Who owns the files for guests that cannot say, unless owners are kept: user and group.
    pub owner: (u32, u32),
    /// How many nodes a guest may hold. What it looks up or makes beyond that is refused, so that it cannot use up the host's memory.
    pub most_nodes: usize,
    /// Whether virtiofs guests get extended attributes. For each file that is made, their kernel asks twice for one that gives a file rights.
    pub xattrs_by_virtiofs: bool,
}

/// A share that is served.
pub(crate) struct Host {
    pub options: ServeOptions,
    /// What the directory is called.
    directory: PathBuf,
    pub export: Export,
    /// The device of the shared directory itself.
    device: u64,
    /// What distinguishes the shared directory from others, and this run of the machine from others.
    pub root: u64,
    pub boot: String,
    pub handles: Handles,
    pub coherence: Coherence,
    pub since: Instant,
    /// Whether guests hear of changes that programs on the host make.
    pub is_watched: AtomicBool,
    /// What the process has given up, once it has.
    pub sandbox: OnceLock<Vec<String>>,
    guests_seen: AtomicU32,
    guests: Mutex<BTreeMap<GuestId, Arc<Guest>>>,
    /// Events of the host's watch that were looked at, and how often some were lost.
    pub events: AtomicU64,
    pub overflows: AtomicU64,
    /// Time added to each request now, in nanoseconds.
    delay: AtomicU64,
}

impl Host {
    /// For a directory that is open.
    pub fn new(directory: PathBuf, root: OwnedFd, options: ServeOptions) -> Result<Arc<Self>, ShareError> {
        let export = Export::new(&directory, root)?;
        let root = export.nodes().identity(ROOT);
        let (device, root) = root.map_or((0, 0), |root| (root.device, root.digest(root.device)));
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // The other half is the export's; see there.
        let handles = Handles::new(usize::try_from(limit / 4).unwrap_or(usize::MAX));
        let coherence = Coherence::new(options.ordering, options.announce);
        let host = Self {
            options,
            directory,
            export,
            device,
            root,
            boot,
            handles,
            coherence,
            since: Instant::now(),
            is_watched: AtomicBool::new(false),
            sandbox: OnceLock::new(),
            guests_seen: AtomicU32::new(0),
            guests: Mutex::default(),
            events: AtomicU64::new(0),
            overflows: AtomicU64::new(0),
            delay: AtomicU64::new(0),
        };
        host.delay(true);
        Ok(Arc::new(host))
    }

    /// From now on, delays answers to requests by as much as the options say, or not at all.
    pub fn delay(&self, is_delayed: bool) {
        let delay = if is_delayed { self.options.delay } else { Duration::ZERO };
        self.delay.store(delay.as_nanos() as u64, Relaxed);
    }

    /// Waits for as long as an answer is to be delayed.
    pub fn wait(&self) {
        let delay = self.delay.load(Relaxed);
        if delay > 0 {
            thread::sleep(Duration::from_nanos(delay));
        }
    }

    /// Whether guests are told of what happens on a device.
    pub fn is_told(&self, device: u64) -> bool {
        device == self.device && self.is_watched.load(Relaxed)
    }

    /// How long a guest may believe what it is told of something on a device.
    pub fn valid(&self, device: u64) -> Duration {
        if self.is_told(device) { WATCHED } else { UNWATCHED }
    }

    /// A descriptor of a node's file, open or not.
    pub fn find(&self, node: NodeId) -> Result<Arc<OwnedFd>, Errno> {
        // A file that is open may have no name any more.
        self.handles.of_node(node).map_or_else(|| self.export.find(node), Ok)
    }

    /// The same for what leads to the file anew: opening it, or another name. A file that is open stays so where it was moved out of the shared
    /// directory, but is not found any more; one that has no name at all is nowhere else.
    pub fn find_inside(&self, node: NodeId) -> Result<Arc<OwnedFd>, Errno> {
        self.export.find(node).or_else(|errno| {
            let open = self.handles.of_node(node).ok_or(errno)?;
            if stat(&open)?.stx_nlink == 0 { Ok(open) } else { Err(errno) }
        })
    }

    /// How a guest with this user and group sees attributes.
    pub fn view(&self, owner: (u32, u32)) -> View {
        View { owner: (self.options.owners == Owners::Squash).then_some(owner), device: self.device }
    }

    /// Whether a guest may hold a file: it does already, or is not at its limit.
    pub fn may_hold(&self, guest: GuestId, identity: &Identity) -> bool {
        let nodes = self.export.nodes();
        nodes.held_count(guest) < self.options.most_nodes
            || nodes.number(identity).is_some_and(|number| nodes.holds(guest, number))
    }

    /// Forgets what a guest has forgotten.
    pub fn forget(&self, guest: GuestId, node: NodeId, times: u64) {
        let gone = self.export.nodes().forget(guest, node, times);
        self.export.drop_descriptors(&gone);
    }

    /// A number for the next guest.
    pub fn next_guest(&self) -> GuestId {
        self.guests_seen.fetch_add(1, Relaxed) + 1
    }

    /// A guest is gone: what it held and had open is given up. None of its requests is being done any more.
    pub fn dismiss(&self, guest: &Guest) {
        guest.end_locks();
        self.coherence.leave(guest.id);
        self.handles.leave(guest.id);
        let gone = self.export.nodes().leave(guest.id);
        self.export.drop_descriptors(&gone);
        self.guests().remove(&guest.id);
        give_memory_back();
    }

    /// Who has it mounted.
    pub fn guests(&self) -> MutexGuard<'_, BTreeMap<GuestId, Arc<Guest>>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the share is doing.
    pub fn status(&self) -> Status {
        let guests: Vec<_> = self.guests().values().cloned().collect();
        // Each lock is released before the next one is taken.
        let guests =
            guests.iter().map(|guest| guest.status(self.export.nodes().held_count(guest.id) as u64 + 1)).collect();
        let nodes = self.export.nodes().count() as u64;
        let descriptors = self.export.descriptor_count() as u64;
        let open_files = self.handles.count() as u64;
        Status {
            directory: self.directory.display().to_string(),
            read_only: self.options.read_only,
            withhold_types: self.options.withhold_types,
            ordering: match self.options.ordering {
                Ordering::Strict => "strict".into(),
                Ordering::Relaxed => "relaxed".into(),
            },
            watched: self.is_watched.load(Relaxed),
            valid_seconds: self.valid(self.device).as_secs(),
            sandbox: self.sandbox.get().cloned().unwrap_or_default(),
            served_seconds: self.since.elapsed().as_secs(),
            nodes,
            descriptors,
            open_files,
            host_events: self.events.load(Relaxed),
            host_events_lost: self.overflows.load(Relaxed),
            guests,
        }
    }
}

/// Memory that served a guest that has gone is of no use to others. The C library would keep it.
fn give_memory_back() {
    // SAFETY: it concerns free memory only, and locks what it needs.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
