//! What another user may do, asked of the kernel itself.
//!
//! Mode bits are not enough (groups, access lists, security modules), so a thread takes that user's identity for file
//! access and asks. Identity belongs to a thread in Linux; the thread ends, and with it the identity.

use std::{path::Path, thread};

use inodyne_launch::User;
use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    io::Errno,
};

use crate::Owner;

/// Whether `owner` has this access to `path`; the kernel's answer otherwise.
pub(crate) fn check(path: &Path, access: Access, owner: Owner) -> Result<(), Errno> {
    let ask = || accessat(CWD, path, access, AtFlags::EACCESS);
    let ask_as_owner = || {
        become_for_files(owner)?;
        ask()
    };
    if rustix::process::geteuid().as_raw() == owner.uid {
        return ask();
    }
    thread::scope(|scope| scope.spawn(ask_as_owner).join().unwrap_or(Err(Errno::AGAIN)))
}

/// Gives the calling thread the groups of `owner`, and its identity where files are concerned.
fn become_for_files(owner: Owner) -> Result<(), Errno> {
    let groups = groups(owner);
    // SAFETY: the system call, unlike the C library's function, concerns this thread only; it reads `len` numbers.
    if unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) } != 0 {
        return Err(Errno::PERM);
    }
    // SAFETY: both take a number, and concern this thread only.
    unsafe {
        libc::setfsgid(owner.gid);
        libc::setfsuid(owner.uid);
    }
    Ok(())
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
