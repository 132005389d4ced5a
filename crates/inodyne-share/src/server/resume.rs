//! A guest that was connected before, to this host or to one that is gone, carries on with what it has kept: nodes and open files.
//!
//! Nothing it says is taken on trust: a node's number is derived from what its file is (`nodes`), so the guest only helps to find the file, as by
//! looking up a name. Where the name leads to another file, or nowhere, the number means nothing here, and requests about it are answered
//! accordingly.

use std::ffi::CStr;

use rustix::{fs::OFlags, io::Errno};

use super::{
    export::{identity, stat_at},
    guest::Guest,
    host::Host,
    nodes::NodeId,
};
use crate::{fuse::request::is_component, protocol::resume::Kept};

impl Host {
    /// Takes over what a guest has kept. Returns the places of what is no longer there.
    pub(super) fn resume(&self, guest: &Guest, list: &[Kept]) -> Vec<usize> {
        let take = |one: &Kept| match one {
            Kept::Node { node, directory, lookups, name } => self.take_node(guest, *node, *directory, *lookups, name),
            Kept::File { handle, node, access } => self.take_file(guest, *handle, *node, *access),
        };
        list.iter().enumerate().filter_map(|(place, one)| take(one).is_err().then_some(place)).collect()
    }

    fn take_node(
        &self,
        guest: &Guest,
        node: NodeId,
        directory: NodeId,
        lookups: u64,
        name: &CStr,
    ) -> Result<(), Errno> {
        if !is_component(name) {
            return Err(Errno::INVAL);
        }
        let found = stat_at(&*self.export.find(directory)?, name)?;
        let identity = identity(&found);
        if !self.may_hold(guest.id, &identity) {
            return Err(Errno::NFILE);
        }
        let number = self.export.nodes().tell(guest.id, identity, directory, name);
        if number != node {
            self.forget(guest.id, number, 1);
            return Err(Errno::STALE);
        }
        self.export.nodes().tell_more(guest.id, node, lookups.saturating_sub(1));
        Ok(())
    }

    fn take_file(&self, guest: &Guest, handle: u64, node: NodeId, access: u8) -> Result<(), Errno> {
        let flags = OFlags::from_bits_retain(access.into()) & OFlags::ACCMODE;
        if self.options.read_only && flags != OFlags::RDONLY {
            return Err(Errno::ROFS);
        }
        let file = self.export.open(&*self.find_inside(node)?, flags)?;
        self.handles.put(guest.id, handle, node, file)
    }
}
