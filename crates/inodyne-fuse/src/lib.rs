//! File systems of our own, through FUSE, each served by a process that is forked here.
//!
//! | module | what it knows |
//! |---|---|
//! | `server` | the connection to the kernel, the process that serves it, when that ends |
//! | `passthrough` | a directory, shown as it is |
//! | `caching` | what the kernel may keep of that; pure |
//! | `nodes` | what the kernel knows of that directory's files |
//! | `slow_file` | one file that answers late, for a loop device that is slow |
//! | `rate_limit` | how late; pure |
//!
//! Whoever uses a server makes a connection ([`connect`]), mounts it with [`mount_options`], which needs no server yet, and
//! starts one for it: [`Passthrough::serve`], [`SlowFile::serve`], [`Server::start`] with a file system of its own, or
//! [`Server::run`] with something else that serves. Mounting is the caller's business: where it is mounted, in which mount
//! namespace, and what happens to it at the end.

mod caching;
mod nodes;
mod passthrough;
mod rate_limit;
mod server;
mod slow_file;

pub use caching::Caching;
pub use passthrough::Passthrough;
pub use rate_limit::Rates;
pub use server::{Control, DEVICE, OnCommand, Ready, Server, connect, mount_options};
pub use slow_file::{IMPOSE_LIMITS, LIFT_LIMITS, SlowFile};
