//! Users of this machine and their groups.
//!
//! They are looked up through the C library, which knows about directory services (LDAP, systemd). A static program cannot load the
//! modules for these: glibc would open whatever is on the machine, made for another version of itself. There the files are read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{self, Gid, Uid};

/// Who the command belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// All group ids.
    pub groups: Vec<u32>,
    /// Home directory.
    pub home: PathBuf,
}

impl User {
    /// The user with this name.
    pub fn named(name: &str) -> Option<User> {
        match cfg!(target_feature = "crt-static") {
            true => Files::read().find(|user| user.name == name),
            false => unistd::User::from_name(name).ok().flatten().map(User::from),
        }
    }

    /// The user with this id.
    pub fn with_id(uid: u32) -> Option<User> {
        match cfg!(target_feature = "crt-static") {
            true => Files::read().find(|user| user.uid == uid),
            false => unistd::User::from_uid(Uid::from_raw(uid)).ok().flatten().map(User::from),
        }
    }

    /// Makes this process theirs, with all their groups. Only system calls are made and nothing is allocated, so a process that was just
    /// forked may do so.
    ///
    /// # Errors
    /// The privilege is missing.
    pub fn take_over(&self) -> Result<(), Errno> {
        // SAFETY: the numbers are live, and there are as many as stated.
        Errno::result(unsafe { libc::setgroups(self.groups.len(), self.groups.as_ptr()) })?;
        let (gid, uid) = (Gid::from_raw(self.gid), Uid::from_raw(self.uid));
        unistd::setresgid(gid, gid, gid)?;
        unistd::setresuid(uid, uid, uid)
    }

    /// What a login sets in their environment.
    pub fn variables(&self) -> [(&'static str, &OsStr); 3] {
        [("HOME", self.home.as_os_str()), ("USER", self.name.as_ref()), ("LOGNAME", self.name.as_ref())]
    }
}

impl From<unistd::User> for User {
    fn from(user: unistd::User) -> User {
        let login = std::ffi::CString::new(user.name.clone()).unwrap_or_default();
        let groups = unistd::getgrouplist(&login, user.gid).unwrap_or_else(|_| vec![user.gid]);
        User {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            home: user.dir,
        }
    }
}

/// What `/etc/passwd` and `/etc/group` say: passwd(5), group(5).
struct Files {
    users: String,
    groups: String,
}

impl Files {
    fn read() -> Files {
        let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        Files { users: text(Path::new("/etc/passwd")), groups: text(Path::new("/etc/group")) }
    }

    fn find(&self, is_wanted: impl Fn(&User) -> bool) -> Option<User> {
        let mut user = self.users.lines().filter_map(of_line).find(is_wanted)?;
        user.groups = self.groups_of(&user);
        Some(user)
    }

    fn groups_of(&self, user: &User) -> Vec<u32> {
        let member_of = |line: &str| {
            let [_, _, gid, members] = line.split(':').collect::<Vec<_>>()[..] else { return None };
            members.split(',').any(|member| member == user.name).then(|| gid.parse().ok()).flatten()
        };
        let others = self.groups.lines().filter_map(member_of).filter(|gid| *gid != user.gid);
        std::iter::once(user.gid).chain(others).collect()
    }
}

fn of_line(line: &str) -> Option<User> {
    let [name, _, uid, gid, _, home, _] = line.split(':').collect::<Vec<_>>()[..] else { return None };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    Some(User { name: name.to_owned(), uid, gid, groups: vec![gid], home: PathBuf::from(home) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_say_what_the_library_says() {
        let files = Files::read();
        let names: Vec<String> = files.users.lines().filter_map(of_line).map(|user| user.name).collect();
        assert!(names.iter().any(|name| name == "root"), "{names:?}");
        for name in names {
            let of_files = files.find(|user| user.name == name).expect("its line was read");
            let mut of_library = User::named(&name).expect("the library knows who is in the file");
            assert_eq!(User::with_id(of_files.uid).map(|user| user.uid), Some(of_files.uid));
            let sorted = |user: &User| {
                let mut groups = user.groups.clone();
                groups.sort_unstable();
                groups
            };
            assert_eq!(sorted(&of_files), sorted(&of_library), "{name}");
            of_library.groups = of_files.groups.clone();
            assert_eq!(of_files, of_library);
        }
        assert!(User::named("nobody-is-called-so").is_none() && files.find(|user| user.name == "a:b").is_none());
    }

    #[test]
    fn broken_lines_are_nobody() {
        let users = "root:x:0:0\n:\nx:x:y:0:::\ngood:x:7:8:,:/home:/bin/sh\n".to_owned();
        let groups = "one:x:9:good,other\nbroken\ntwo:x:z:good\nown:x:8:good\n".to_owned();
        let files = Files { users, groups };
        let good = files.find(|_| true).expect("one line is whole");
        assert_eq!((good.name.as_str(), good.groups), ("good", vec![8, 9]));
    }
}
