//! The generated skeleton of the BPF object: its programs, maps and global variables by name.

#![allow(clippy::all, missing_docs, clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/inodyne.skel.rs"));
