//! Why a mount is over.

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Somebody has unmounted it.
    Unmounted,
    /// The host is not there any more.
    Lost(&'static str),
}
