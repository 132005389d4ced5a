//! Who a place belongs to.

/// For whom a place is made: the user that the command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Owner {
    /// The superuser.
    pub const ROOT: Self = Self { uid: 0, gid: 0 };
}
