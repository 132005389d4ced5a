//! The guest's side of the handshake.

use std::sync::Arc;

use crate::{
    ShareError,
    protocol::{
        frame::{self, Kind},
        greeting::{Hello, Purpose, Welcome},
    },
    transport::{Inbox, Lost, Outbox},
};

/// Says who connects and what for; returns what the host answers.
pub(crate) fn greet(outbox: &Arc<Outbox>, inbox: &mut Inbox, purpose: Purpose) -> Result<Welcome, ShareError> {
    let hello = serde_json::to_vec(&Hello::new(purpose)).map_err(|_| ShareError::NotAShare)?;
    outbox.send(&frame::whole(Kind::Hello, &hello));
    // The host is the one that the user named: what it says may be longer.
    inbox.trust();
    let mut payload = Vec::new();
    match inbox.next(&mut payload) {
        Ok(Kind::Welcome) => serde_json::from_slice(&payload).map_err(|_| ShareError::NotAShare),
        Err(Lost::Denied) => Err(ShareError::Strangers),
        _ => Err(ShareError::NotAShare),
    }
}
