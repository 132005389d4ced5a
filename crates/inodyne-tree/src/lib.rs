//! Trees of files, as fast as the file system allows: made, checked and removed.
//!
//! File systems disagree about what is fast: parallel work helps XFS only along its allocation groups, helps ext4 and
//! tmpfs without restriction, and hurts btrfs. So everything here first asks which file system it is on ([`FileSystem`]) and
//! then chooses. Every step below a root goes through a directory descriptor, never through a path, so nothing that
//! other processes do in the meantime leads out of the tree.
//!
//! ```no_run
//! use inodyne_tree::{TreeSpec, check, make};
//! # fn main() -> Result<(), inodyne_tree::TreeError> {
//! let spec: TreeSpec = "depth=4,width=32,bytes=1".parse()?;
//! let report = make(&spec, "/mnt/place/tree".as_ref())?;
//! assert_eq!((report.files, report.directories), (1_048_576, 33_825));
//! assert!(check(&spec, "/mnt/place/tree".as_ref())?.is_clean());
//! # Ok(())
//! # }
//! ```
//!
//! This crate prints nothing and reads no arguments; the command line does.

mod amount;
mod check;
mod content;
mod descriptors;
mod error;
mod filesystem;
mod make;
mod plan;
mod pool;
mod processors;
mod remove;
mod spec;
mod sync;

pub use amount::Amount;
pub use check::{CheckReport, Problem, check, recorded_spec};
pub use error::TreeError;
pub use filesystem::FileSystem;
pub use make::{MakeOptions, MakeReport, make, make_with};
pub use remove::{
    Control, Decide, Failure, Observer, Question, Reason, RemoveOptions, RemoveReport, Removed, Strategy, remove,
    remove_aside, remove_asking, remove_left_behind,
};
pub use spec::{Shape, TreeSpec};
