//! Deleting trees.
//!
//! `strategy` decides how, `engine` does it: tasks on the [pool](crate::pool), one for each directory (`read`) and one
//! for each batch of names handed to another worker (`names`); `finish` removes directories whose last entry is gone.
//! `order` sorts entries where that saves work, `node` is a directory on its way out, `open` the only place where directories are opened,
//! `dir_fd_cache` keeps few of them open at a time, `adapt` finds out how many workers are best. `trash` renames before it deletes, and
//! `mounts` knows what must not be renamed. `asking` is the other, slow way, for a person who wants to be asked. Failures are reported to
//! an [`Observer`] and never end a delete.

mod adapt;
mod asking;
mod control;
mod dir_fd_cache;
mod engine;
mod finish;
mod gate;
mod groups;
mod mounts;
mod names;
mod node;
mod open;
mod order;
mod read;
mod report;
mod strategy;
mod trash;

use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr, OsString},
    os::unix::ffi::OsStrExt,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

pub use asking::{Decide, Question, remove_asking};
pub use control::Control;
pub use report::{Failure, Observer, Reason, RemoveReport, Removed};
use rustix::{fs::AtFlags, io::Errno};
pub use strategy::Strategy;
pub use trash::{remove_aside, remove_left_behind};

use self::{
    engine::Engine,
    node::Node,
    open::{Crossing, Identity},
    strategy::Plan,
};

/// How to delete.
#[derive(Clone, Debug, Default)]
pub struct RemoveOptions {
    /// Instead of what suits the file system.
    pub strategy: Option<Strategy>,
    /// At most this many removing threads.
    pub threads: Option<usize>,
    /// Also empty file systems that are mounted below an operand.
    pub cross_mounts: bool,
    /// Also stay on the device where it changes without a mount, as between the subvolumes of a btrfs.
    pub one_device: bool,
    /// Count what would be removed and leave it.
    pub dry_run: bool,
    /// Leave directories that hold something. Only [`remove_asking`] heeds this: the others are for trees.
    pub only_empty: bool,
}

/// Removes directories with all they hold.
///
/// An operand is taken as written: links above its last name are followed, its last name must be a directory. Entries
/// that cannot be removed are reported to `observer`; all others are removed nevertheless.
pub fn remove(
    operands: &[OsString],
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
) -> RemoveReport {
    remove_known(operands, &BTreeMap::new(), options, control, observer)
}

/// Like [`remove`], but an operand for which there is an identity is only removed if it is still that directory.
fn remove_known(
    operands: &[OsString],
    known: &BTreeMap<OsString, Identity>,
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
) -> RemoveReport {
    let started = Instant::now();
    let mut report = RemoveReport::empty(options.dry_run);
    let before = (control.files(), control.directories(), control.failures(), control.allocated_bytes());
    let mut rest = operands;
    while let Some(first) = rest.first() {
        // Operands on one file system run together; the usual case is all of them.
        let device = device(first);
        let together = rest.iter().position(|operand| self::device(operand) != device).unwrap_or(rest.len());
        let (now, later) = rest.split_at(together.max(1));
        remove_on_one_file_system(now, known, options, control, observer, &mut report);
        rest = later;
    }
    report.files = control.files() - before.0;
    report.directories = control.directories() - before.1;
    report.failures = control.failures() - before.2;
    report.allocated_bytes = options.dry_run.then(|| control.allocated_bytes() - before.3);
    report.wall = started.elapsed();
    report
}

fn device(operand: &OsStr) -> Option<u64> {
    rustix::fs::statat(rustix::fs::CWD, operand, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_dev)
}

fn remove_on_one_file_system(
    operands: &[OsString],
    known: &BTreeMap<OsString, Identity>,
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
    report: &mut RemoveReport,
) {
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    let mut base: Option<Arc<Node>> = None;
    for (number, operand) in operands.iter().enumerate() {
        let (prefix, name, slashes) = node::split_operand(operand.as_bytes());
        let same = base.take().filter(|base| base.name.to_bytes() == prefix);
        let place = base.insert(same.unwrap_or_else(|| Node::base(prefix)));
        match CString::new(name) {
            Ok(name) if !name.is_empty() => {
                let only = known.get(operand).copied();
                nodes.push(Node::operand(place, name, number, !slashes.is_empty(), only));
            }
            _ => {
                control.failures.fetch_add(1, Ordering::Relaxed);
                observer.failed(&Failure { path: operand, reason: Reason::Refused(Errno::INVAL) });
            }
        }
    }
    // An operand that cannot be opened is reported when its turn comes.
    let root = nodes.iter().find_map(|node| node.open(Crossing::Allowed).ok());
    let plan = Plan::new(root.as_ref(), options.strategy, options.threads);
    report.plans.push((plan.file_system, plan.strategy, plan.threads()));
    drop((base, root));
    Engine::new(plan, options, control, observer, operands.len()).run(nodes, operands, report);
}
