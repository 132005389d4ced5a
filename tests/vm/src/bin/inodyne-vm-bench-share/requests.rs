//! What each place asks of the host: counted by tracepoints of the guest's kernel, in a round that is not timed. Some of the share's requests
//! are answered by its mounter in the guest; the host has counted how many came to it.

use std::collections::BTreeMap;

use inodyne_vm::Vm;
use inodyne_vm::share::{Share, tell_within};

use crate::places::{Counted, PLACES, SHARE, SHARE_OVER_VSOCK, Servers};
use crate::{Failed, PATIENCE, WORK};

/// How often each request was made, by its name.
pub type Requests = BTreeMap<String, u64>;

/// Names by number.
type Names = [(u32, &'static str)];

/// include/uapi/linux/fuse.h; those that are waited for.
const FUSE: [(u32, &str); 34] = [
    (1, "lookup"),
    (3, "getattr"),
    (4, "setattr"),
    (5, "readlink"),
    (6, "symlink"),
    (8, "mknod"),
    (9, "mkdir"),
    (10, "unlink"),
    (11, "rmdir"),
    (12, "rename"),
    (13, "link"),
    (14, "open"),
    (15, "read"),
    (16, "write"),
    (17, "statfs"),
    (18, "release"),
    (20, "fsync"),
    (21, "setxattr"),
    (22, "getxattr"),
    (23, "listxattr"),
    (24, "removexattr"),
    (25, "flush"),
    (26, "init"),
    (27, "opendir"),
    (28, "readdir"),
    (29, "releasedir"),
    (30, "fsyncdir"),
    (34, "access"),
    (35, "create"),
    (43, "fallocate"),
    (44, "readdirplus"),
    (45, "rename2"),
    (46, "lseek"),
    (52, "statx"),
];

/// include/net/9p/9p.h.
const NINEP: [(u32, &str); 30] = [
    (8, "statfs"),
    (12, "lopen"),
    (14, "lcreate"),
    (16, "symlink"),
    (18, "mknod"),
    (20, "rename"),
    (22, "readlink"),
    (24, "getattr"),
    (26, "setattr"),
    (30, "xattrwalk"),
    (32, "xattrcreate"),
    (40, "readdir"),
    (50, "fsync"),
    (52, "lock"),
    (54, "getlock"),
    (70, "link"),
    (72, "mkdir"),
    (74, "renameat"),
    (76, "unlinkat"),
    (100, "version"),
    (102, "auth"),
    (104, "attach"),
    (108, "flush"),
    (110, "walk"),
    (112, "open"),
    (114, "create"),
    (116, "read"),
    (118, "write"),
    (120, "clunk"),
    (122, "remove"),
];

impl Counted {
    /// The tracepoint, its field, and the names of what is in it.
    fn parts(self) -> Option<(&'static str, &'static str, &'static Names)> {
        match self {
            Counted::No => None,
            Counted::Fuse => Some(("fuse/fuse_request_send", "opcode", &FUSE)),
            Counted::Ninep => Some(("9p/9p_client_req", "type", &NINEP)),
            Counted::Nfs => Some(("sunrpc/rpc_request", "procname", &[])),
        }
    }
}

/// What a piece of work asked.
#[derive(Default)]
pub struct Asked {
    /// By the guest's kernel.
    pub requests: Requests,
    /// How much of that came to the host, where it counts that.
    pub at_host: Option<u64>,
}

/// The requests of each piece of work; nothing where they cannot be counted.
pub fn of_round(vm: &mut Vm, servers: &Servers, share: &Share, at: usize) -> Result<Vec<Asked>, Failed> {
    let Some((event, field, names)) = PLACES[at].counted.parts() else { return Ok(Vec::new()) };
    servers.mount(vm, at)?;
    let mut counts = Vec::new();
    let is_share = [SHARE, SHARE_OVER_VSOCK].contains(&at);
    for (_, work) in WORK {
        let before = is_share.then(|| share.round_trips()).transpose()?;
        let lines = format!(
            "cd {}\nevent=/sys/kernel/tracing/events/{event}\necho 'hist:keys={field}:size=256' >$event/trigger\n\
             {{ {work}; }} >/dev/null\nsleep 0.3\ncat $event/hist; echo '!hist:keys={field}:size=256' >$event/trigger",
            PLACES[at].directory
        );
        let requests = counted(&tell_within(vm, &lines, PATIENCE)?, field, names);
        let after = is_share.then(|| share.round_trips()).transpose()?;
        counts.push(Asked { requests, at_host: after.zip(before).map(|(after, before)| after - before) });
    }
    servers.unmount(vm, at)?;
    Ok(counts)
}

/// Lines such as `{ opcode:         44 } hitcount:        101`, or with a name in place of the number.
fn counted(histogram: &str, field: &str, names: &Names) -> Requests {
    let line = |line: &str| {
        let rest = line.strip_prefix("{ ")?.strip_prefix(field)?.strip_prefix(':')?;
        let (key, count) = rest.split_once("} hitcount:")?;
        let key = key.trim();
        let name = match key.parse::<u32>() {
            Ok(key) => names
                .iter()
                .find(|(number, _)| *number == key)
                .map_or_else(|| format!("request {key}"), |(_, name)| (*name).into()),
            Err(_) => key.to_lowercase(),
        };
        Some((name, count.trim().parse().ok()?))
    };
    histogram.lines().filter_map(line).collect()
}
