//! Asks a host how its share is doing, as `share status` does.

use crate::{
    Address, ShareError,
    greet::greet,
    keys::GuestKeys,
    protocol::{
        greeting::{Purpose, Welcome},
        status::Status,
    },
    transport::{Inbox, Outbox, TIMEOUT, connect},
};

/// Asks a host.
///
/// # Errors
/// Where none answers there.
pub fn status(address: &Address, keys: Option<&GuestKeys>) -> Result<Status, ShareError> {
    let stream = connect(address, keys, TIMEOUT)?;
    stream.set_timeout(Some(TIMEOUT)).map_err(ShareError::system("set a time-out"))?;
    match greet(&Outbox::new(stream.clone()), &mut Inbox::new(stream), Purpose::Status)? {
        Welcome::Status(status) => Ok(*status),
        Welcome::Refused(reason) => Err(ShareError::Refused(reason)),
        Welcome::Mount { .. } => Err(ShareError::NotAShare),
    }
}
