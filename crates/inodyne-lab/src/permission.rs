//! What another user may do, asked of the kernel itself.
//!
//! Mode bits are not enough (groups, access lists, security modules, FUSE file systems that are for one user only, not even for the
//! superuser), so a thread takes that user's identity and asks. Identity belongs to a thread in Linux; the thread ends, and with it the
//! identity.

use std::{panic, path::Path, thread};

use inodyne_launch::User;
use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    io::Errno,
};

use crate::Owner;

/// Whether `owner` has this access to `path`; the kernel's answer otherwise.
pub(crate) fn check(path: &Path, access: Access, owner: Owner) -> Result<(), Errno> {
    as_owner(owner, || accessat(CWD, path, access, AtFlags::EACCESS))?
}

/// Does this as `owner`.
///
/// # Errors
/// This process may not become that user.
pub(crate) fn as_owner<T: Send>(owner: Owner, this: impl FnOnce() -> T + Send) -> Result<T, Errno> {
    if rustix::process::geteuid().as_raw() == owner.uid {
        return Ok(this());
    }
    thread::scope(|scope| {
        let done = scope.spawn(|| become_owner(owner).map(|()| this())).join();
        done.unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// Gives the calling thread the groups of `owner`, and its identity.
fn become_owner(owner: Owner) -> Result<(), Errno> {
    let groups = groups(owner);
    let done = |result: libc::c_long| if result == 0 { Ok(()) } else { Err(Errno::PERM) };
    // SAFETY: the system calls, unlike the C library's functions, concern this thread only; the first one reads `len` numbers.
    unsafe {
        done(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()))?;
        done(libc::syscall(libc::SYS_setresgid, owner.gid, owner.gid, owner.gid))?;
        done(libc::syscall(libc::SYS_setresuid, owner.uid, owner.uid, owner.uid))
    }
}

/// All groups of a user, as at login.
fn groups(owner: Owner) -> Vec<u32> {
    User::with_id(owner.uid).map_or_else(|| vec![owner.gid], |user| user.groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_for_another_user() {
        let nobody = Owner { uid: 65534, gid: 65534 };
        assert_eq!(check(Path::new("/"), Access::EXEC_OK, nobody), Ok(()));
        assert_eq!(check(Path::new("/"), Access::WRITE_OK, nobody), Err(Errno::ACCESS));
        assert_eq!(check(Path::new("/"), Access::WRITE_OK, Owner::ROOT), Ok(()));
        assert_eq!(check(Path::new("/no/such"), Access::EXISTS, nobody), Err(Errno::NOENT));
        assert!(groups(Owner::ROOT).contains(&0));
        assert_eq!(groups(Owner { uid: 987_654, gid: 7 }), [7]);
    }
}
