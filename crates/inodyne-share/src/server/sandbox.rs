//! What the host's process gives up before it serves anybody: the machine's network and its inter-process communication (namespaces), all
//! files but those beneath the shared directory (landlock), system calls that no request needs (seccomp), and those of root's rights that
//! are not about files (capabilities). Should a guest find a bug in this program, what is left is all there is to reach.
//!
//! All apply to the calling thread and those it starts later. Where the kernel does not have one of them, or the user may not use it, the
//! share is served without it, and `share status` says so.

use std::{collections::BTreeMap, env::consts::ARCH, os::fd::OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, capabilities, set_capabilities, unshare_unsafe};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::Owners;

/// What a process that serves files has no use for: other programs, other processes, new connections, mounts, namespaces, and the
/// kernel's own affairs.
const REFUSED: [i64; 35] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_io_uring_setup,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
];

/// Namespaces of its own. `packaging/systemd/inodyne-share@.service` allows these.
const APART: UnshareFlags = UnshareFlags::NEWNET.union(UnshareFlags::NEWIPC).union(UnshareFlags::NEWUTS);

/// Gives it up. Returns the names of what applies now.
pub(super) fn enter(root: &OwnedFd) -> Vec<String> {
    let mut holds = Vec::new();
    // SAFETY: descriptors and the working directory stay shared with other threads; nothing that Rust counts on changes.
    if unsafe { unshare_unsafe(APART) }.is_ok() {
        holds.push("namespaces".to_owned());
    }
    if matches!(only_beneath(root), Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced)) {
        holds.push("landlock".to_owned());
    }
    if refuse_calls().is_ok() {
        holds.push("seccomp".to_owned());
    }
    holds
}

/// Keeps only those of root's rights that are about files. Returns whether there were others. To be called once nothing that needs them is left
/// to be opened.
pub(super) fn keep_rights_to_files(owners: Owners) -> bool {
    let mut in_force = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID;
    let kept = match owners {
        // Attributes `security.` and `trusted.`.
        Owners::Keep => {
            in_force |= CapabilitySet::SETFCAP | CapabilitySet::SYS_ADMIN;
            in_force
        }
        // With this in force a set-user-id program would stay one when a guest that is not trusted writes into it: the kernel clears the
        // bits for all others, whatever the guest asks. Only `setting_group_id` needs it.
        Owners::Squash => {
            let kept = in_force;
            in_force.remove(CapabilitySet::FSETID);
            kept
        }
    };
    let Ok(has) = capabilities(None) else { return false };
    if kept.contains(has.permitted) && in_force.contains(has.effective) {
        return false;
    }
    let keeps = CapabilitySets {
        effective: has.effective & in_force,
        permitted: has.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, keeps).is_ok()
}

/// Changes the mode of a directory that is to have the set-group-id bit. Without the right that is not in force otherwise, the kernel would
/// silently leave the bit out where the directory's group is none of this process.
pub(super) fn setting_group_id<T>(change: impl FnOnce() -> T) -> T {
    let has = capabilities(None).ok().filter(|has| (has.permitted - has.effective).contains(CapabilitySet::FSETID));
    let Some(has) = has else { return change() };
    // It is this thread's alone.
    let _ = set_capabilities(None, CapabilitySets { effective: has.effective | CapabilitySet::FSETID, ..has });
    let changed = change();
    let _ = set_capabilities(None, has);
    changed
}

fn only_beneath(root: &OwnedFd) -> Result<RulesetStatus, RulesetError> {
    let files = AccessFs::from_all(ABI::V5);
    let rules = Ruleset::default()
        .handle_access(files)?
        .handle_access(AccessNet::from_all(ABI::V5))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rule(PathBeneath::new(root, files))?;
    Ok(rules.restrict_self()?.ruleset)
}

fn refuse_calls() -> Result<(), seccompiler::Error> {
    let rules: BTreeMap<_, _> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::ErrorKind,
        net::TcpListener,
        os::{fd::AsRawFd, unix::fs::symlink},
        process::Command,
        thread,
    };

    use super::*;
    use crate::server::export::Export;

    /// With any namespace less, systemd would refuse them all.
    #[test]
    fn the_unit_allows_the_namespaces() {
        let unit = include_str!("../../../../packaging/systemd/inodyne-share@.service");
        let allowed = unit.lines().find_map(|line| line.strip_prefix("RestrictNamespaces=")).unwrap();
        let kinds = [("net", UnshareFlags::NEWNET), ("ipc", UnshareFlags::NEWIPC), ("uts", UnshareFlags::NEWUTS)];
        let kind = |name: &str| kinds.iter().find(|(kind, _)| *kind == name).unwrap().1;
        assert_eq!(allowed.split(' ').map(kind).collect::<UnshareFlags>(), APART, "{allowed}");
    }

    /// Whatever way a mistake would take: by a path, by a link, by another process.
    #[test]
    fn nothing_outside_of_the_directory_can_be_reached() {
        let directory = tempfile::tempdir().unwrap();
        let above = directory.path().to_owned();
        let path = move |name: &str| above.join(name);
        fs::create_dir_all(path("shared/one")).unwrap();
        fs::create_dir(path("shared/two")).unwrap();
        fs::write(path("secret"), "secret").unwrap();
        symlink(path("secret"), path("shared/link")).unwrap();
        let root = Export::open_root(&path("shared")).unwrap();
        // Only this thread is restricted.
        thread::spawn(move || {
            let holds = enter(&root);
            assert_eq!(holds, ["namespaces", "landlock", "seccomp"], "of this kernel, for root");
            assert!(keep_rights_to_files(Owners::Squash));
            let kept = capabilities(None).unwrap();
            assert!(
                kept.permitted.contains(CapabilitySet::FOWNER) && !kept.permitted.contains(CapabilitySet::SYS_ADMIN)
            );
            assert!(!keep_rights_to_files(Owners::Squash), "there is nothing left to be given up");
            let during = setting_group_id(|| capabilities(None).unwrap());
            assert_eq!(during.effective.difference(kept.effective), CapabilitySet::FSETID);
            assert_eq!(capabilities(None).unwrap(), kept);
            let denied = |result: std::io::Result<()>, what: &str| {
                assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied), "{what}");
            };
            denied(fs::read(path("secret")).map(drop), "a file beside it");
            denied(fs::read(path("shared/link")).map(drop), "through a link");
            denied(fs::read(path("shared/../secret")).map(drop), "through ..");
            denied(fs::read_dir("/").map(drop), "a directory above");
            denied(fs::write(path("new"), ""), "a new file");
            denied(fs::remove_file(path("secret")), "a deletion");
            let moved = fs::rename(path("secret"), path("shared/secret")).map_err(|error| error.kind());
            assert!(matches!(moved, Err(ErrorKind::PermissionDenied | ErrorKind::CrossesDevices)), "{moved:?}");
            denied(fs::read_to_string("/proc/self/environ").map(drop), "of itself");
            denied(Command::new("/bin/true").status().map(drop), "another program");
            denied(TcpListener::bind("127.0.0.1:0").map(drop), "a connection");

            fs::write(path("shared/one/file"), "inside").unwrap();
            fs::rename(path("shared/one/file"), path("shared/two/file")).unwrap();
            fs::hard_link(path("shared/two/file"), path("shared/one/again")).unwrap();
            let file = fs::File::open(path("shared/one/again")).unwrap();
            assert_eq!(fs::read_to_string(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap(), "inside");
            fs::File::options().write(true).open(path("shared/two/file")).unwrap().set_len(3).unwrap();
            fs::remove_dir_all(path("shared/two")).unwrap();
            thread::spawn(move || denied(fs::read(path("secret")).map(drop), "another thread")).join().unwrap();
        })
        .join()
        .unwrap();
    }
}
