//! What a disk can do: measured once, on request, and kept, so that reports can say how much of it a command used.
//!
//! ```text
//! directory ──> Plan ──fio──> DiskLimits ──> Kept (one file per disk) ──> the disks of a recording
//! ```
//!
//! Nothing is ever written to a device, only to an unnamed file in the directory that the user gave. This crate prints nothing.
//!
//! | module | what it knows |
//! |---|---|
//! | [`identity`] | what tells a disk from others, according to /sys |
//! | [`plan`] | what is measured, in which order, and whether it was the disk that was measured |
//! | [`fio`] | how fio is invoked for each measurement, and what it reports |
//! | [`kept`] | what was measured earlier, in files |
//! | [`error`] | why a disk cannot be measured |

pub mod error;
pub mod fio;
pub mod identity;
pub mod kept;
pub mod plan;

pub use error::DiskError;
pub use fio::Measurement;
pub use identity::Identity;
pub use kept::{Ignored, Kept};
pub use plan::Plan;
