//! The guest's side: between the kernel and the stream.
//!
//! | module | what it knows |
//! |---|---|
//! | this one | mounting, and ending |
//! | `channel` | requests to the host, answers to the kernel |
//! | `takers` | which threads of the guest may be about to take an answer |
//! | `reconnect` | carrying on after the connection was lost |
//! | `record` | what must be known for that: requests that are not answered |
//! | `held` | and what the kernel holds |
//! | `end` | why it is over |
//! | `events` | waking programs that watch files |
//! | `ends` | where directories end, so that the host need not be asked |
//! | `parents` | attributes of directories after something was changed in them |
//! | `unasked` | what else the host need not be asked |
//! | `apply` | telling the kernel what is no longer valid |
//! | `queue` | what waits for the threads of `apply` |
//! | `place` | unmounting, by whoever is left to do it |
//!
//! Nothing is cached here. What is answered here follows from what the host has just said of the same directory, or from what the guest
//! has never asked for.

mod apply;
mod channel;
mod end;
mod ends;
mod events;
mod held;
mod parents;
mod place;
mod queue;
mod reconnect;
mod record;
mod takers;
mod unasked;

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ring::{
    error::Unspecified,
    rand::{SecureRandom, SystemRandom},
};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    fs::{CWD, Mode, OFlags, open},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
    },
    process::{getegid, geteuid},
};

use crate::{
    Address, ShareError,
    greet::greet,
    guard::Guard,
    keys::GuestKeys,
    protocol::greeting::{Purpose, Session, Welcome},
    transport::{Inbox, Outbox, Stream, TIMEOUT, connect, socket},
};
use channel::Channel;
use end::End;
use events::Events;
use place::Place;
use reconnect::Reconnect;

/// How long the host may be silent before it is asked whether it is there, and how long after that until it is given up. Together they are the
/// time after which whoever waits for a host that does not answer gets an error.
const SILENCE: Duration = Duration::from_secs(10);

/// What to mount, and where.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Where the host listens.
    pub address: Address,
    /// Who the host is, and who this side is, where both must prove it.
    pub keys: Option<GuestKeys>,
    /// An existing directory.
    pub directory: PathBuf,
    /// Who owns the files where the host does not keep their owners: user and group; without it, the caller.
    pub owner: Option<(u32, u32)>,
    /// Nothing may be changed.
    pub read_only: bool,
    /// How long to try to reach a lost host again; none ends the mount at once.
    pub reconnect: Option<Duration>,
    /// Programs that watch files hear what programs on the host do.
    pub events: bool,
}

/// Mounts a share, and returns when it is unmounted or `stop` becomes readable. `ready` is called once it is mounted, and `tell` later
/// with what the user should know.
///
/// To be called from a process with one thread, since it forks; the process must end afterwards: its threads still hold the connection to
/// the kernel, and whoever waits for an answer gets an error when they end.
///
/// # Errors
/// Where the host cannot be reached or is lost, and where the kernel does not mount it.
pub fn mount(
    options: &MountOptions,
    stop: BorrowedFd<'_>,
    ready: impl FnOnce(),
    tell: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(), ShareError> {
    let directory = target(&options.directory)?;
    let owner = options.owner.unwrap_or_else(|| (geteuid().as_raw(), getegid().as_raw()));
    let session = options.reconnect.map(|_| new_session()).transpose()?;
    let reach = {
        let (address, keys, events) = (options.address.clone(), options.keys.clone(), options.events);
        move |timeout: Duration| {
            let mounter = Mounter { owner, session, events };
            greet_host(connect(&address, keys.as_ref(), timeout)?, mounter, timeout.min(SILENCE))
        }
    };
    let host = reach(TIMEOUT)?;
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| ShareError::lacking(format!("cannot open /dev/fuse: {errno} (modprobe fuse)")))?;
    let mounted = make_mount(&device, &options.address, host.is_read_only || options.read_only)?;
    let place = Place::of(&directory, &mounted)?;
    let guard = Guard::start(|| place.unmount())?;
    let attached = move_mount(&mounted, "", CWD, &directory, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH);
    attached.map_err(|errno| ShareError::directory("mount on", &directory, errno))?;
    drop(mounted);
    if options.events && !host.is_watched {
        tell("the host does not watch its programs (it needs root): nobody is told what they do");
    }
    let reconnect = options.reconnect.map(|limit| Reconnect::new(&host, limit, reach, tell));
    let device = Arc::new(device);
    let events = options.events.then(|| Events::start(place.clone(), device.clone())).transpose();
    let channel = Channel::start(device, host, reconnect, events.map_err(ShareError::system("start a thread"))?)?;
    ready();
    let end = wait(&channel, stop);
    // Whoever still uses it gets errors instead of waiting, once this process has ended.
    place.unmount();
    drop(guard);
    end
}

/// Forwards between a mount of the caller's, with `device` as its connection to the kernel, and the host at the other end of a
/// socket, until it is unmounted. `ready` is called once the kernel's requests are answered.
///
/// # Errors
/// Where the host is lost.
pub fn forward(
    device: OwnedFd,
    host: OwnedFd,
    owner: (u32, u32),
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), ShareError> {
    let host = greet_host(socket(host), Mounter { owner, session: None, events: false }, SILENCE)?;
    let channel = Channel::start(Arc::new(device), host, None, None)?;
    ready().map_err(ShareError::system("say that it is ready"))?;
    let nobody = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from);
    wait(&channel, nobody.map_err(ShareError::system("make an eventfd"))?.as_fd())
}

/// A host that lets the share be mounted.
struct Greeted {
    outbox: Arc<Outbox>,
    inbox: Inbox,
    is_read_only: bool,
    /// Which directory it shares, and since when its machine has been running.
    root: u64,
    boot: String,
    /// Whether it withholds from its guests extended attributes that give rights.
    is_squashed: bool,
    /// Whether it sees what its programs do.
    is_watched: bool,
}

/// Who mounts it.
#[derive(Clone, Copy)]
struct Mounter {
    /// Who owns the files.
    owner: (u32, u32),
    /// What it is recognised by.
    session: Option<Session>,
    /// Whether it wants to hear what programs on the host do.
    events: bool,
}

/// The handshake, within that time.
fn greet_host(
    stream: Arc<dyn Stream>,
    Mounter { owner: (uid, gid), session, events }: Mounter,
    timeout: Duration,
) -> Result<Greeted, ShareError> {
    let set_timeout = |timeout| stream.set_timeout(Some(timeout)).map_err(ShareError::system("set a time-out"));
    set_timeout(timeout)?;
    let (outbox, mut inbox) = (Outbox::new(stream.clone()), Inbox::new(stream.clone()));
    match greet(&outbox, &mut inbox, Purpose::Mount { uid, gid, session, events })? {
        Welcome::Mount { read_only: is_read_only, root, boot, squashed: is_squashed, watched: is_watched } => {
            set_timeout(SILENCE)?;
            Ok(Greeted { outbox, inbox, is_read_only, root, boot, is_squashed, is_watched })
        }
        Welcome::Refused(reason) => Err(ShareError::Refused(reason)),
        Welcome::Status(_) => Err(ShareError::NotAShare),
    }
}

/// A number that nobody else can guess.
fn new_session() -> Result<Session, ShareError> {
    let mut session = Session::default();
    session
        .iter_mut()
        .try_for_each(|half| {
            let mut bytes = [0; 8];
            SystemRandom::new().fill(&mut bytes)?;
            *half = u64::from_le_bytes(bytes);
            Ok(())
        })
        .map_err(|_: Unspecified| ShareError::lacking("this machine gives no random numbers"))?;
    Ok(session)
}

/// Waits for the end, whichever comes first.
fn wait(channel: &Arc<Channel>, stop: BorrowedFd<'_>) -> Result<(), ShareError> {
    loop {
        let mut events = [PollFd::new(channel.ended(), PollFlags::IN), PollFd::new(&stop, PollFlags::IN)];
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(ShareError::System { what: "wait for the end", source: errno.into() }),
        }
        let is_stopped = !events[1].revents().is_empty();
        match channel.end() {
            Some(End::Unmounted) => return Ok(()),
            Some(End::Lost(reason)) => return Err(ShareError::Gone(reason)),
            None if is_stopped => return Ok(()),
            None => {}
        }
    }
}

/// The directory to mount on. What a mounter that was killed together with its guard has left there is removed.
fn target(directory: &Path) -> Result<PathBuf, ShareError> {
    let failed = |error| ShareError::directory("mount on", directory, error);
    let found = fs::canonicalize(directory).map_err(failed)?;
    match fs::metadata(&found) {
        Ok(metadata) if metadata.is_dir() => Ok(found),
        Ok(_) => Err(failed(io::ErrorKind::NotADirectory.into())),
        Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            unmount(&found, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).map_err(|errno| failed(errno.into()))?;
            Ok(found)
        }
        Err(error) => Err(failed(error)),
    }
}

/// A mount that is not attached anywhere yet.
fn make_mount(device: &OwnedFd, address: &Address, is_read_only: bool) -> Result<OwnedFd, ShareError> {
    let make = || {
        let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let device = device.as_raw_fd().to_string();
        fsconfig_set_string(&context, "source", address.to_string())?;
        for (key, value) in
            [("fd", &*device), ("rootmode", "40000"), ("user_id", "0"), ("group_id", "0"), ("subtype", "inodyne")]
        {
            fsconfig_set_string(&context, key, value)?;
        }
        // The kernel checks modes and owners, as in every file system, whoever asks.
        for key in ["default_permissions", "allow_other"] {
            fsconfig_set_flag(&context, key)?;
        }
        fsconfig_create(&context)?;
        let mut attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        attributes.set(MountAttrFlags::MOUNT_ATTR_RDONLY, is_read_only);
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().map_err(|errno: Errno| match errno {
        Errno::PERM => ShareError::lacking("only root can mount a share"),
        errno => ShareError::System { what: "make a FUSE mount", source: errno.into() },
    })
}
