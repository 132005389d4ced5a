//! Extended attributes, as the host has them. Where owners are squashed, guests are not trusted with those that give a file rights: a program
//! with capabilities that a guest has made would have them on the host.

use std::ffi::{CStr, CString};

use rustix::{
    fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr},
    io::Errno,
};

use super::Call;
use crate::{
    fuse::abi::GetXattrOut,
    protocol::{frame::MOST_DATA, invalidation::Invalidation, xattrs::is_privileged},
    server::{Owners, export::Export},
};

/// The longest list of names that the kernel gives (`XATTR_LIST_MAX`).
const MOST_NAMES: usize = 64 << 10;

impl Call<'_> {
    /// The file's name in /proc, which leads to it alone. These calls take no descriptor that does not open the file.
    fn path(&self) -> Result<(std::sync::Arc<std::os::fd::OwnedFd>, CString), Errno> {
        let found = self.host.find(self.header.node)?;
        let path = [b"/proc/self/fd/", Export::link(&found).to_bytes()].concat();
        Ok((found, CString::new(path).map_err(|_| Errno::INVAL)?))
    }

    /// Whether the guest is trusted with such an attribute.
    fn is_given(&self, name: &[u8]) -> bool {
        self.host.options.owners == Owners::Keep || !is_privileged(name)
    }

    fn may_change(&self, name: &CStr) -> Result<(), Errno> {
        if self.is_given(name.to_bytes()) { Ok(()) } else { Err(Errno::OPNOTSUPP) }
    }

    pub(super) fn set_xattr(&mut self, flags: u32, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        self.may_change(name)?;
        let (_found, path) = self.path()?;
        setxattr(&path, name, value, XattrFlags::from_bits_retain(flags))?;
        self.changes.push(Invalidation::attributes(self.header.node));
        Ok(())
    }

    pub(super) fn get_xattr(&mut self, size: u32, name: &CStr) -> Result<(), Errno> {
        if !self.is_given(name.to_bytes()) {
            return Err(Errno::NODATA);
        }
        let (_found, path) = self.path()?;
        self.put_sized(size, |buffer| getxattr(&path, name, buffer))
    }

    pub(super) fn list_xattrs(&mut self, size: u32) -> Result<(), Errno> {
        let (_found, path) = self.path()?;
        let mut all = vec![0; MOST_NAMES];
        let length = listxattr(&path, &mut all)?;
        let given: Vec<_> =
            all[..length].split_inclusive(|byte| *byte == 0).filter(|name| self.is_given(name)).collect();
        let given = given.concat();
        self.put_sized(size, |buffer| {
            if !buffer.is_empty() {
                buffer.get_mut(..given.len()).ok_or(Errno::RANGE)?.copy_from_slice(&given);
            }
            Ok(given.len())
        })
    }

    /// The bytes, or how many there are where no room is offered.
    fn put_sized(&mut self, size: u32, read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<(), Errno> {
        if size == 0 {
            let size = read(&mut [])? as u32;
            self.reply.put(&GetXattrOut { size, padding: 0 });
            return Ok(());
        }
        self.reply.fill((size as usize).min(MOST_DATA), read)
    }

    pub(super) fn remove_xattr(&mut self, name: &CStr) -> Result<(), Errno> {
        self.may_change(name)?;
        let (_found, path) = self.path()?;
        removexattr(&path, name)?;
        self.changes.push(Invalidation::attributes(self.header.node));
        Ok(())
    }
}
