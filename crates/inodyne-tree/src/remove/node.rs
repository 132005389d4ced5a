//! A directory on its way out: its name, its parent, its descriptor, and what still has to happen below it.
//!
//! Nodes form chains by parent pointers only. A node is alive while tasks or children refer to it, and is removed when
//! its count of pending work reaches zero. Nothing recurses, neither removal nor dropping, so depth costs memory alone.
//!
//! Descriptors are scarce, so an open one may be taken away again ([`Node::park`]). It is then reopened when
//! needed, from a child by `..` or from the nearest open ancestor by name, and only accepted when it is the very same
//! directory on the very same mount, by inode, birth time and mount. A directory that others have moved elsewhere in the
//! meantime is thus never followed there.

use std::{
    ffi::{CStr, CString, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

use rustix::io::Errno;

use super::open::{self, Crossing, Identity};
use crate::sync::lock;

/// One directory; see the module's text.
pub(super) struct Node {
    pub parent: Option<Arc<Self>>,
    pub name: CString,
    /// The inode number that its parent's listing gave, a hint for sorting work only.
    pub inode: u64,
    /// Which operand this is itself, if it is one.
    pub operand: Option<Operand>,
    slot: Mutex<Slot>,
    /// Tasks and children that must end before this directory can be removed.
    pending: AtomicUsize,
    /// Something below stays, so this directory must stay too.
    spoiled: AtomicBool,
    /// How often it was read from the start because entries appeared.
    pub rereads: AtomicU32,
}

/// What sets an operand apart from what is found below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub number: usize,
    /// Messages about the operand itself repeat the slash that the user wrote.
    slash: bool,
    /// The only directory that is meant, where not just any of that name is.
    only: Option<Identity>,
}

/// What is known of a directory's descriptor.
enum Slot {
    /// A place above an operand, opened by path when first needed.
    Path(PathBuf),
    Unopened,
    Open(Arc<OwnedFd>),
    Parked(Identity),
}

impl Node {
    /// The directory that operands are in. `prefix` is what the user wrote before the last name, slash included.
    pub fn base(prefix: &[u8]) -> Arc<Self> {
        let path = if prefix.is_empty() { PathBuf::from(".") } else { OsString::from_vec(prefix.to_vec()).into() };
        let name = CString::new(prefix).unwrap_or_default();
        Arc::new(Self::new(None, name, 0, None, Slot::Path(path)))
    }

    /// An operand in its base, the `number`th. `slash` if the user wrote one after it; `only` if it must be that directory.
    pub fn operand(base: &Arc<Self>, name: CString, number: usize, slash: bool, only: Option<Identity>) -> Arc<Self> {
        base.expect(1);
        Arc::new(Self::new(Some(base.clone()), name, 0, Some(Operand { number, slash, only }), Slot::Unopened))
    }

    /// A directory that was seen in `parent`, which waits for it from now on.
    pub fn child(parent: &Arc<Self>, name: &CStr, inode: u64) -> Arc<Self> {
        parent.expect(1);
        Arc::new(Self::new(Some(parent.clone()), name.into(), inode, None, Slot::Unopened))
    }

    fn new(parent: Option<Arc<Self>>, name: CString, inode: u64, operand: Option<Operand>, slot: Slot) -> Self {
        Self {
            parent,
            name,
            inode,
            operand,
            slot: Mutex::new(slot),
            pending: AtomicUsize::new(1),
            spoiled: AtomicBool::new(false),
            rereads: AtomicU32::new(0),
        }
    }

    /// The directory above. Only a base has none, and a base is never entered or removed.
    pub fn parent(&self) -> &Arc<Self> {
        self.parent.as_ref().expect("not a base")
    }

    /// Announces more work below.
    pub fn expect(&self, more: usize) {
        self.pending.fetch_add(more, Ordering::Relaxed);
    }

    /// Ends one piece of work below; true for the last one.
    pub fn settle(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that something below stays.
    pub fn spoil(&self) {
        self.spoiled.store(true, Ordering::Relaxed);
    }

    pub fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Relaxed)
    }

    /// Opens this directory for the first time, without keeping the descriptor.
    pub fn open(&self, crossing: Crossing) -> Result<OwnedFd, Errno> {
        let parent = self.parent.as_ref().ok_or(Errno::INVAL)?.descriptor()?;
        self.open_in(&parent, crossing)
    }

    /// As [`Self::open`], when the parent's descriptor is at hand.
    pub fn open_in(&self, parent: &OwnedFd, crossing: Crossing) -> Result<OwnedFd, Errno> {
        // Whoever names a mount point as an operand means what is mounted there.
        let crossing = if self.operand.is_some() { Crossing::Allowed } else { crossing };
        let opened = open::directory(parent, &self.name, crossing)?;
        match self.only() {
            Some(only) if !only.is_of(&opened)? => Err(Errno::STALE),
            _ => Ok(opened),
        }
    }

    /// The only directory that is meant, of any with its name.
    pub fn only(&self) -> Option<Identity> {
        self.operand?.only
    }

    /// Keeps a descriptor that was just opened.
    pub fn set_open(&self, descriptor: Arc<OwnedFd>) {
        *lock(&self.slot) = Slot::Open(descriptor);
    }

    /// The descriptor if it is open now.
    pub fn if_open(&self) -> Option<Arc<OwnedFd>> {
        match &*lock(&self.slot) {
            Slot::Open(descriptor) => Some(descriptor.clone()),
            _ => None,
        }
    }

    /// Gives the descriptor back; it is closed when the last user is done with it.
    pub fn park(&self) {
        let mut slot = lock(&self.slot);
        if let Slot::Open(descriptor) = &*slot
            && let Ok(identity) = Identity::of(descriptor)
        {
            *slot = Slot::Parked(identity);
        }
    }

    /// The directory's descriptor, opened again if it was parked.
    pub fn descriptor(&self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(open) = self.open_slot()? {
            return Ok(open);
        }
        // Downwards from the nearest ancestor that is open, each step checked.
        let mut way = vec![self];
        let mut at = self;
        let mut descriptor = loop {
            let Some(above) = at.parent.as_deref() else { return Err(Errno::STALE) };
            match above.open_slot()? {
                Some(open) => break open,
                None => way.push(above),
            }
            at = above;
        };
        for node in way.into_iter().rev() {
            // Mounts that may not be crossed are recognised by the identity.
            let opened = Arc::new(open::directory(&*descriptor, &node.name, Crossing::Allowed)?);
            descriptor = node.adopt(opened, std::ptr::eq(node, self))?;
        }
        Ok(descriptor)
    }

    /// The descriptor of this directory, found from one of its children when it was parked.
    pub fn descriptor_from(&self, child: &OwnedFd) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(open) = self.open_slot()? {
            return Ok(open);
        }
        match open::parent(child).and_then(|opened| self.adopt(Arc::new(opened), true)) {
            Ok(descriptor) => Ok(descriptor),
            // The child was moved away; the way from above still holds.
            Err(_) => self.descriptor(),
        }
    }

    /// The descriptor that is open, or that a path opens; `None` when it must be found.
    fn open_slot(&self) -> Result<Option<Arc<OwnedFd>>, Errno> {
        let mut slot = lock(&self.slot);
        if let Slot::Path(path) = &*slot {
            *slot = Slot::Open(Arc::new(open::base(path)?));
        }
        Ok(match &*slot {
            Slot::Open(descriptor) => Some(descriptor.clone()),
            _ => None,
        })
    }

    /// Accepts a descriptor for a parked directory if it is the same directory; keeps it if asked to.
    fn adopt(&self, opened: Arc<OwnedFd>, keep: bool) -> Result<Arc<OwnedFd>, Errno> {
        let mut slot = lock(&self.slot);
        match &*slot {
            Slot::Open(descriptor) => return Ok(descriptor.clone()),
            Slot::Parked(identity) if identity.is_of(&opened)? => {}
            _ => return Err(Errno::STALE),
        }
        if keep {
            *slot = Slot::Open(opened.clone());
        }
        Ok(opened)
    }

    /// How the user would write this directory, or an entry of it.
    pub fn path(&self, entry: Option<&CStr>) -> OsString {
        let mut names = Vec::new();
        let mut at = self;
        while let Some(above) = at.parent.as_deref() {
            names.push(at.name.as_bytes());
            at = above;
        }
        let mut path = at.name.as_bytes().to_vec();
        let last = entry.map(CStr::to_bytes);
        for (index, name) in names.into_iter().rev().chain(last).enumerate() {
            if index > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        if entry.is_none() && self.operand.is_some_and(|operand| operand.slash) {
            path.push(b'/');
        }
        OsString::from_vec(path)
    }
}

impl Drop for Node {
    /// One ancestor after the other instead of nested, for chains of any length.
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(node) = above {
            above = Arc::into_inner(node).and_then(|mut node| node.parent.take());
        }
    }
}

/// Splits an operand into what precedes its last name, that name, and the slashes after it.
pub(super) fn split_operand(operand: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let end = operand.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let start = operand[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    (&operand[..start], &operand[start..end], &operand[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn operands_are_split_at_the_last_name() {
        for (operand, prefix, name, slashes) in [
            ("a", "", "a", ""),
            ("a/b", "a/", "b", ""),
            ("/a//b//", "/a//", "b", "//"),
            ("/", "", "", "/"),
            ("", "", "", ""),
        ] {
            let split = split_operand(operand.as_bytes());
            assert_eq!(split, (prefix.as_bytes(), name.as_bytes(), slashes.as_bytes()), "{operand}");
        }
    }

    #[test]
    fn a_million_levels_are_named_and_dropped() {
        let mut node = Node::base(b"top/");
        for _ in 0..1_000_000 {
            node = Node::child(&node, c"d", 0);
        }
        let path = node.path(Some(c"f"));
        assert!(path.as_bytes().starts_with(b"top/d/d/") && path.as_bytes().ends_with(b"d/f"));
        assert_eq!(path.len(), 4 + 2 * 1_000_000 + 1);
    }
}
