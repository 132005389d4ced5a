//! Prepare: file systems, mounts, data trees and caches, all undone on any exit.
//!
//! A person who asks whether ext4 or XFS is faster needs both, fresh, with the same data, equally cold, and afterwards
//! a machine as it was before. This crate makes that: a [`PlaceSpec`] is what the user wrote, [`Lab::make`] turns it
//! into a [`MountedPlace`], a [`DataSpec`] fills it, [`make_cold`] and [`warm`] set its caches.
//!
//! ```no_run
//! use inodyne_lab::{DataSpec, Lab, Owner, PlaceSpec, make_cold};
//! # fn main() -> Result<(), inodyne_lab::LabError> {
//! let lab = Lab::new();
//! let spec: PlaceSpec = "slow=ext4:mkfs=-O ^filetype".parse()?;
//! let mut place = lab.make(&spec, Owner { uid: 1000, gid: 1000 })?; // while the process has one thread
//! place.fill(&"tree:dirs=1000,files=30,bytes=1".parse::<DataSpec>()?)?;
//! make_cold(&mut place)?;
//! let before = place.device_stats();
//! // … the command runs in place.path() …
//! let read = before.and_then(|before| Some(place.device_stats()?.since(before).read_bytes));
//! # let _ = read;
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant: nothing is left, even after `kill -9`.** There is no clean-up code that this depends on: mounts live in
//! a private mount namespace, loop devices clear themselves when they are no longer used, and images have no name.
//! Settings are restored by a process of their own if we do not; the servers of our own file systems (FUSE places, slow devices) end when
//! the kernel says that nobody uses what they serve. Dropping a place only does the same earlier.
//!
//! **Invariant: an existing directory is never written to**, neither formatted nor filled, and even its access times are left alone.
//!
//! This crate measures nothing, runs no command of the user's but a script that makes data, and prints nothing.

mod archive;
mod beneath;
mod cache;
mod capability;
pub mod catalogue;
mod copy;
mod data;
mod device;
mod digest;
mod error;
mod flush;
mod fuse;
mod image;
mod kernel_log;
mod key;
mod kind;
mod lab;
mod limits;
mod loop_device;
mod mkfs;
mod mount;
mod mountinfo;
mod note;
mod owner;
mod permission;
mod place;
mod script;
mod setting;
mod size;
mod spec;
mod walk;
mod wear;

pub use cache::{Warmed, make_cold, warm};
pub use capability::{Need, needs};
pub use catalogue::Tunable;
pub use data::{DataSpec, Filled};
pub use device::{DeviceStats, Ground};
pub use error::LabError;
pub use flush::Flusher;
pub use image::unnamed as unnamed_file;
pub use kind::Kind;
pub use lab::Lab;
pub use limits::{Delay, Limits, ParseDelayError};
pub use note::Note;
pub use owner::Owner;
pub use place::MountedPlace;
pub use setting::take_not_restored;
pub use size::{ParseSizeError, Size};
pub use spec::{ChangeError, MadePlace, PlaceSpec, Where};
