//! Streams of bytes between host and guest, and frames on them.
//!
//! | module | what it knows |
//! |---|---|
//! | `socket` | streams that are sockets, and the addresses of such |
//! | `inbox` | reading frames |
//! | `outbox` | writing frames without ever waiting for who reads them |

mod inbox;
mod outbox;
mod socket;

pub(crate) use inbox::{Inbox, Lost};
pub(crate) use outbox::Outbox;
#[cfg(test)]
pub(crate) use socket::pair;
pub(crate) use socket::{Listener, connect, socket};

use std::{io, time::Duration};

/// Both directions of a connection. Threads may send and receive at the same time.
pub(crate) trait Stream: Send + Sync {
    /// Waits for bytes; 0 is the end. `TimedOut` after the time that was set.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// How long to wait for bytes.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Sends as much as goes without waiting; `WouldBlock` where that is nothing.
    fn try_send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until something can be sent; whether it can.
    fn wait_sendable(&self, timeout: Duration) -> io::Result<bool>;

    /// Ends both directions, whoever waits on them.
    fn close(&self);
}
