//! How hosts and guests meet: by which address, and known to each other by what.
//!
//! A Unix socket is its owner's alone, as its permissions say, and nothing on it is encrypted. What goes over TCP is, and both
//! sides have proved who they are before anything else is said (`tls`).

use std::{
    fs, io,
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd},
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
    socket::Socket,
    tls::{self, HostSide},
};
use crate::{
    Address, ShareError,
    guard::Guard,
    keys::{GuestKeys, HostKeys},
};

/// How long a guest tries to reach its host, and then to know it, where it is not in a hurry.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to a host; `timeout` is for reaching it, and once more for knowing it.
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
            let stream = tls::connect(Socket::new(stream.into()), keys, timeout);
            Ok(Arc::new(stream.map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => ShareError::Strangers,
                _ => failed(error),
            })?))
        }
        (Address::Unix(_), Some(_)) => Err(ShareError::NoKeys),
        (Address::Tcp(_), None) => Err(ShareError::Keys("--key and --host")),
    }
}

/// Where guests connect.
pub(crate) struct Listener(Listening);

enum Listening {
    /// The socket's name goes with it, or with this process if that is killed.
    Unix {
        listener: UnixListener,
        _guard: Guard,
    },
    Tcp(TcpListener, HostSide),
}

impl Listener {
    /// Listens at an address. A Unix socket that a host left there which is no more is replaced; nothing else is. Only the host's own
    /// user may connect to it, which its permissions see to: whoever is to mount it is let in by changing them. The process must have
    /// one thread.
    pub fn new(address: &Address, keys: Option<&HostKeys>) -> Result<Self, ShareError> {
        let failed = |error| ShareError::address("listen at", address, error);
        match (address, keys) {
            (Address::Unix(path), None) => {
                let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
                let is_left = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
                if is_socket && UnixStream::connect(path).is_err_and(is_left) {
                    fs::remove_file(path).map_err(failed)?;
                }
                // The name must not be there for others even for a moment.
                let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
                let listener = UnixListener::bind(path);
                umask(before);
                let listener = listener.map_err(failed)?;
                // It works elsewhere.
                let path = path::absolute(path).map_err(failed)?;
                let inode =
                    |path: &Path| fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
                let ours = inode(&path);
                let guard = Guard::start(|| {
                    if inode(&path) == ours {
                        let _ = fs::remove_file(&path);
                    }
                })?;
                Ok(Self(Listening::Unix { listener, _guard: guard }))
            }
            (Address::Tcp(at), Some(keys)) => {
                let side = HostSide::new(keys).map_err(ShareError::lacking)?;
                Ok(Self(Listening::Tcp(TcpListener::bind(at).map_err(failed)?, side)))
            }
            (Address::Unix(_), Some(_)) => Err(ShareError::NoKeys),
            (Address::Tcp(_), None) => Err(ShareError::Keys("--key and --allow")),
        }
    }

    /// The next one that connects.
    pub fn accept(&self) -> io::Result<Stranger> {
        match &self.0 {
            Listening::Unix { listener, .. } => Ok(Stranger(Socket::new(listener.accept()?.0.into()), None)),
            Listening::Tcp(listener, side) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stranger(Socket::new(stream.into()), Some(side.clone())))
            }
        }
    }

    /// What becomes readable when a guest connects.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Listening::Unix { listener, .. } => listener.as_fd(),
            Listening::Tcp(listener, _) => listener.as_fd(),
        }
    }
}

/// Who has connected, and is not known yet.
pub(crate) struct Stranger(Socket, Option<HostSide>);

impl Stranger {
    /// Has it say who it is, within that time.
    pub fn meet(self, timeout: Duration) -> io::Result<Arc<dyn Stream>> {
        match self {
            Self(socket, Some(side)) => Ok(Arc::new(side.accept(socket, timeout)?)),
            Self(socket, None) => Ok(Arc::new(socket)),
        }
    }
}
