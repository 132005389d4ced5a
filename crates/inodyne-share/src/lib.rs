//! A shared folder: a directory of one machine, the host, used on another one, the guest, as if it were there.
//!
//! What goes over the connection is the FUSE protocol of the guest's own kernel. This crate adds no cache in the guest: the kernel's caches
//! of names, attributes, directories and pages are all there is, and they may stay valid because the host tells the guest what has
//! changed.
//!
//! | module | what it knows |
//! |---|---|
//! | `address` | where a share is |
//! | `keys` | how hosts and guests know each other |
//! | `fuse` | the kernel's protocol: structures, requests from bytes, answers to bytes |
//! | `protocol` | frames on a stream, the handshake, what the host says has changed |
//! | `transport` | streams |
//! | `server` | the host's side: a directory, shown to guests |
//! | `coherence` | keeps what guests hold valid: who is told of what, and when a change is acknowledged |
//! | `mount` | the guest's side: between the kernel and the stream |
//! | `greet` | the guest's side of the handshake |
//! | `guard` | what is to be done when this process ends, whatever ends it |
//! | `status` | asking how a share is doing |
//!
//! `docs/ARCHITECTURE.md` of this crate explains why.

mod address;
mod coherence;
mod error;
mod fuse;
mod greet;
mod guard;
mod keys;
mod mount;
mod protocol;
mod server;
mod status;
mod transport;

pub use address::Address;
pub use coherence::Ordering;
pub use error::ShareError;
pub use keys::{Admitted, GuestKeys, HostKeys, PrivateKey, PublicKey};
pub use mount::{MountOptions, forward, mount};
pub use protocol::status::{GuestStatus, Status};
pub use server::{Owners, PrivateShare, ServeOptions, serve};
pub use status::status;
