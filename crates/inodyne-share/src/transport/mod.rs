//! Streams of bytes between host and guest, and frames on them.
//!
//! | module | what it knows |
//! |---|---|
//! | `meet` | addresses: listening and connecting |
//! | `alone` | who may replace a socket that is left |
//! | `socket` | streams that are sockets |
//! | `vsock` | sockets between virtual machines and their host |
//! | `serial` | connections over a serial port |
//! | `packet` | and how they are told apart there |
//! | `tls` | streams that nobody else reads or changes, between two sides that have proved who they are |
//! | `inbox` | reading frames |
//! | `outbox` | writing frames without ever waiting for whoever reads them |

mod alone;
mod inbox;
mod meet;
mod outbox;
mod packet;
mod serial;
mod socket;
mod tls;
mod vsock;

pub(crate) use inbox::{Inbox, Lost};
pub(crate) use meet::{Came, Listener, TIMEOUT, connect};
pub(crate) use outbox::Outbox;
#[cfg(test)]
use socket::exchange_much;
#[cfg(test)]
pub(crate) use socket::pair;
pub(crate) use socket::socket;

use std::{io, time::Duration};

use crate::keys::PublicKey;

/// Where frames for a guest go. Whoever sends never waits for the guest.
pub(crate) trait FrameSink: Send + Sync {
    /// Sends a whole frame, now or soon; nothing after the end.
    fn send(&self, frame: &[u8]);

    /// Ends the connection, where there is one of its own.
    fn close(&self);
}

/// Both directions of a connection. Threads may send and receive at the same time.
pub(crate) trait Stream: Send + Sync {
    /// Waits for bytes; 0 is the end. `TimedOut` after the time that was set.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// How long to wait for bytes.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Sends as much as it can without waiting; `WouldBlock` where that is nothing.
    fn try_send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends what was taken but has not been sent yet. Returns whether none of it is left.
    fn flush(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Waits until something can be sent. Returns whether it can.
    fn wait_sendable(&self, timeout: Duration) -> io::Result<bool>;

    /// Ends both directions, whoever waits on them.
    fn close(&self);

    /// The key by which the other side has proved who it is, where it had to.
    fn peer(&self) -> Option<PublicKey> {
        None
    }
}
