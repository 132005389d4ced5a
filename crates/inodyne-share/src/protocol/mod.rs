//! What goes over the stream.
//!
//! | module | what it knows |
//! |---|---|
//! | `frame` | where a message begins and ends, and its kind |
//! | `greeting` | the first message in each direction |
//! | `happened` | what programs on the host have done |
//! | `invalidation` | what the host says has changed |
//! | `resume` | what a guest has kept from a connection that was lost |
//! | `status` | how a share is doing |
//! | `xattrs` | which extended attributes not every guest is given |

pub(crate) mod frame;
pub(crate) mod greeting;
pub(crate) mod happened;
pub(crate) mod invalidation;
pub(crate) mod resume;
pub(crate) mod status;
pub(crate) mod xattrs;
