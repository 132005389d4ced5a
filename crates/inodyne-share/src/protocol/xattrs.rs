//! Extended attributes that not every guest gets.

/// Whether an extended attribute gives its file rights on the host, or says what only root may know there: file capabilities are
/// `security.capability`.
pub(crate) fn is_privileged(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}
