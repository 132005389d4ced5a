//! What goes over the stream.
//!
//! | module | what it knows |
//! |---|---|
//! | `frame` | where a message begins and ends, and its kind |
//! | `greeting` | the first message in each direction |
//! | `invalidation` | what the host says has changed |
//! | `resume` | what a guest has kept of a connection that was lost |
//! | `status` | how a share goes |

pub(crate) mod frame;
pub(crate) mod greeting;
pub(crate) mod invalidation;
pub(crate) mod resume;
pub(crate) mod status;
