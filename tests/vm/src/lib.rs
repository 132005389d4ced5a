//! Virtual machines for tests: boots a distribution's kernel in QEMU and runs programs inside.
//!
//! ```no_run
//! use inodyne_vm::{Machine, Payload, Vm};
//! let mut payload = Payload::default();
//! payload.add("target/release/inodyne", "/usr/local/bin/inodyne");
//! let mut vm = Vm::boot(&Machine::of("6.1")?.with(payload))?;
//! let done = vm.shell("inodyne doctor")?;
//! println!("{:?} {}", done.status, done.text());
//! # Ok::<(), inodyne_vm::Failure>(())
//! ```
//! [`kernel`] and [`apt`] fetch kernels, [`image`], [`modules`] and [`cpio`] make what a guest boots from, [`vm`] starts
//! QEMU and talks to the guest's agent (`bin/inodyne-vm-agent.rs`) as [`wire`] says. [`matrix`] runs the checks of
//! `checks.toml` on each kernel and writes the table.

pub mod apt;
pub mod cpio;
pub mod failure;
pub mod ganesha;
pub mod image;
pub mod kernel;
pub mod matrix;
pub mod modules;
mod packaged;
#[cfg(feature = "host")]
pub mod programs;
pub mod share;
pub mod virtiofsd;
pub mod vm;
pub mod vsock;
pub mod wire;

use std::ffi::OsString;

pub use failure::Failure;
pub use image::{Payload, System};
pub use vm::{Ended, Machine, Task, Vm};

/// The search path, with the sbin directories.
#[must_use]
pub fn path_with_sbin() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}
