//! How hosts and guests meet: at which address, and how they know each other.
//!
//! A Unix socket is its owner's alone, as its permissions say, and nothing on it is encrypted. What goes over TCP is, and both
//! sides have proved who they are before anything else is said (`tls`). Over vsock either will do: keys, or being root on a machine that
//! the user has named.

use std::{
    fs, io,
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{
            fs::{FileTypeExt, MetadataExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{self, Path},
    sync::Arc,
    time::Duration,
};

use rustix::process::umask;

use super::{
    Stream,
    alone::Alone,
    serial::Port,
    socket::Socket,
    tls::{self, HostSide},
    vsock,
};
use crate::{
    Address, ShareError,
    guard::Guard,
    keys::{Admitted, GuestKeys},
};

/// How long a guest tries to reach its host, and then to make sure who it is, where it is not in a hurry.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to a host; `timeout` applies to reaching it, and again to making sure who it is.
pub(crate) fn connect(
    address: &Address,
    keys: Option<&GuestKeys>,
    timeout: Duration,
) -> Result<Arc<dyn Stream>, ShareError> {
    let failed = |error| ShareError::address("connect to", address, error);
    match (address, keys) {
        (Address::Unix(path), None) => Ok(Arc::new(Socket::new(UnixStream::connect(path).map_err(failed)?.into()))),
        (Address::Tcp(at), Some(keys)) => {
            let stream = TcpStream::connect_timeout(at, timeout).map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            know(address, stream.into(), keys, timeout)
        }
        (Address::Serial(path), None) => {
            let port = Port::open(path).map_err(failed)?;
            port.connect(timeout).map_err(failed)
        }
        (Address::Vsock { cid, port }, keys) => {
            let socket = vsock::connected(*cid, *port, keys.is_none()).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => ShareError::lacking("over vsock, who has no key must be root"),
                _ => failed(error),
            })?;
            match keys {
                Some(keys) => know(address, socket, keys, timeout),
                None => Ok(Arc::new(Socket::new(socket))),
            }
        }
        (Address::VhostUser(_), _) => Err(ShareError::Virtiofs),
        (Address::Unix(_) | Address::Serial(_), Some(_)) => Err(ShareError::NoKeys),
        (Address::Tcp(_), None) => Err(ShareError::Keys("--key and --host")),
    }
}

/// Both sides prove to each other who they are.
fn know(
    address: &Address,
    socket: OwnedFd,
    keys: &GuestKeys,
    timeout: Duration,
) -> Result<Arc<dyn Stream>, ShareError> {
    let stream = tls::connect(Socket::new(socket), keys, timeout);
    Ok(Arc::new(stream.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => ShareError::Strangers,
        _ => ShareError::address("connect to", address, error),
    })?))
}

/// Where guests connect.
pub(crate) struct Listener(Listening);

enum Listening {
    /// The socket's name goes with it, or with this process if that is killed.
    Unix {
        listener: UnixListener,
        who: Connecting,
        _guard: Guard,
    },
    Tcp(TcpListener, HostSide),
    Vsock {
        listener: OwnedFd,
        /// Those that need no key, where nobody does.
        machines: Vec<u32>,
        side: Option<HostSide>,
    },
}

/// Who connects to a Unix socket.
#[derive(Clone, Copy)]
enum Connecting {
    /// Guests themselves.
    Guests,
    /// Virtual machines, with their serial ports.
    Ports,
    /// Virtual machines, with their virtiofs devices.
    Devices,
}

impl Listener {
    /// Listens at an address. A Unix socket left there by a host that is gone is replaced; nothing else is. Only the host's own
    /// user may connect to it, as its permissions ensure: whoever is to mount it is let in by changing them. The process must have
    /// one thread.
    pub fn new(address: &Address, admitted: &Admitted) -> Result<Self, ShareError> {
        let failed = |error| ShareError::address("listen at", address, error);
        let side = |keys| HostSide::new(keys).map_err(ShareError::lacking);
        if !admitted.machines.is_empty() && (admitted.keys.is_some() || !matches!(address, Address::Vsock { .. })) {
            return Err(ShareError::NoMachines);
        }
        match (address, &admitted.keys) {
            (Address::Unix(path) | Address::Serial(path) | Address::VhostUser(path), None) => {
                let alone = Alone::with(path).map_err(failed)?;
                let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
                let is_left = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
                if is_socket && UnixStream::connect(path).is_err_and(is_left) {
                    fs::remove_file(path).map_err(failed)?;
                }
                // The name must not be open to others, even for a moment.
                let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
                let listener = UnixListener::bind(path);
                umask(before);
                drop(alone);
                let listener = listener.map_err(failed)?;
                // The guard works in another directory.
                let path = path::absolute(path).map_err(failed)?;
                // With its birth time: the socket of the next host may have the same inode number.
                let inode = |path: &Path| {
                    let metadata = fs::symlink_metadata(path).ok()?;
                    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
                };
                let ours = inode(&path);
                let guard = Guard::start(|| {
                    // The next host may be about to replace it.
                    let _alone = Alone::with(&path);
                    if inode(&path) == ours {
                        let _ = fs::remove_file(&path);
                    }
                })?;
                let who = match address {
                    Address::Serial(_) => Connecting::Ports,
                    Address::VhostUser(_) => Connecting::Devices,
                    _ => Connecting::Guests,
                };
                Ok(Self(Listening::Unix { listener, who, _guard: guard }))
            }
            (Address::Tcp(at), Some(keys)) => {
                Ok(Self(Listening::Tcp(TcpListener::bind(at).map_err(failed)?, side(keys)?)))
            }
            (Address::Vsock { .. }, None) if admitted.machines.is_empty() => Err(ShareError::Nobody),
            (Address::Vsock { cid, port }, keys) => Ok(Self(Listening::Vsock {
                listener: vsock::listener(*cid, *port).map_err(failed)?,
                machines: admitted.machines.clone(),
                side: keys.as_ref().map(side).transpose()?,
            })),
            (Address::Unix(_) | Address::Serial(_) | Address::VhostUser(_), Some(_)) => Err(ShareError::NoKeys),
            (Address::Tcp(_), None) => Err(ShareError::Keys("--key and --allow")),
        }
    }

    /// The next one that connects.
    pub fn accept(&self) -> io::Result<Came> {
        match &self.0 {
            Listening::Unix { listener, who, .. } => Ok(match who {
                Connecting::Guests => Came::known(listener.accept()?.0.into()),
                Connecting::Ports => Came::Port(Port::of(listener.accept()?.0)?),
                Connecting::Devices => Came::Device(listener.try_clone()?),
            }),
            Listening::Tcp(listener, side) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Came::Guest(Stranger(Socket::new(stream.into()), Admission::Keys(side.clone()))))
            }
            Listening::Vsock { listener, machines, side } => {
                let (socket, machine) = vsock::accept(listener)?;
                let is_named = || machine.is_some_and(|cid| machines.contains(&cid));
                let admission = match side {
                    Some(side) => Admission::Keys(side.clone()),
                    None if is_named() => Admission::Known,
                    None => Admission::Refused,
                };
                Ok(Came::Guest(Stranger(Socket::new(socket), admission)))
            }
        }
    }

    /// What becomes readable when a guest connects.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Listening::Unix { listener, .. } => listener.as_fd(),
            Listening::Tcp(listener, _) => listener.as_fd(),
            Listening::Vsock { listener, .. } => listener.as_fd(),
        }
    }
}

/// Whoever has connected and is not known yet.
pub(crate) struct Stranger(Socket, Admission);

/// How it is to be known.
enum Admission {
    /// By where it came from.
    Known,
    Refused,
    Keys(HostSide),
}

/// Whoever has connected.
pub(crate) enum Came {
    Guest(Stranger),
    /// A virtual machine's serial port, whose guests come one after the other.
    Port(Arc<Port>),
    /// A virtual machine's virtiofs device, which is still to be accepted.
    Device(UnixListener),
}

impl Came {
    /// Ends the connection.
    pub fn refuse(self) {
        if let Self::Device(listener) = self {
            let _ = listener.accept();
        }
    }

    fn known(socket: OwnedFd) -> Self {
        Self::Guest(Stranger(Socket::new(socket), Admission::Known))
    }
}

impl Stranger {
    /// Has it say who it is, within that time.
    pub fn meet(self, timeout: Duration) -> io::Result<Arc<dyn Stream>> {
        match self {
            Self(socket, Admission::Keys(side)) => Ok(Arc::new(side.accept(socket, timeout)?)),
            Self(socket, Admission::Known) => Ok(Arc::new(socket)),
            Self(_, Admission::Refused) => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}
