//! The part of the kernel's FUSE protocol that this crate speaks.
//!
//! | module | what it knows |
//! |---|---|
//! | `abi` | structures and numbers |
//! | `request` | what the kernel asks, read from bytes |
//! | `reply` | what it is answered, written as bytes |

pub(crate) mod abi;
pub(crate) mod reply;
pub(crate) mod request;
