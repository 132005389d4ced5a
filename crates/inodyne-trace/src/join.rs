//! Joining threads that are already running: tells the kernel side which processes are wanted, and has it go through all tasks until none is new.

use std::collections::BTreeSet;
use std::io::Read;

use libbpf_rs::{Iter, MapCore, MapFlags};

use crate::skeleton::InodyneSkel;

/// Whom to join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// Every process but this one.
    All,
    /// These processes, with all their threads.
    Processes(Vec<u32>),
}

/// Rounds after which threads still being created are left to the next call. A round takes some milliseconds.
const MOST_ROUNDS: usize = 50;

/// Follows all threads of these processes that are not followed yet, and returns how many there were.
///
/// # Errors
/// The kernel refuses the iterator.
pub(crate) fn join(skeleton: &mut InodyneSkel<'static>, whom: &Whom) -> libbpf_rs::Result<u32> {
    match whom {
        Whom::All => skeleton.maps.bss_data.as_mut().expect("the object has global variables").join_all = 1,
        Whom::Processes(pids) => {
            // 0 stands for every process outside the PID namespace that inodyne is in.
            let wanted: BTreeSet<Vec<u8>> =
                pids.iter().filter(|pid| **pid != 0).map(|pid| pid.to_ne_bytes().to_vec()).collect();
            // A process that was wanted before may be gone, and another may have its number.
            let gone: Vec<Vec<u8>> = skeleton.maps.joining.keys().filter(|key| !wanted.contains(key)).collect();
            for key in gone {
                skeleton.maps.joining.delete(&key)?;
            }
            for pid in &wanted {
                skeleton.maps.joining.update(pid, &1u32.to_ne_bytes(), MapFlags::ANY)?;
            }
        }
    }
    let before = joined(skeleton);
    let link = skeleton.progs.follow_running.attach()?;
    for _ in 0..MOST_ROUNDS {
        let found = joined(skeleton);
        // The program runs while this is read, and prints nothing.
        Iter::new(&link)?.read_to_end(&mut Vec::new()).map_err(libbpf_rs::Error::from)?;
        if joined(skeleton) == found {
            break;
        }
    }
    Ok(joined(skeleton) - before)
}

fn joined(skeleton: &InodyneSkel<'static>) -> u32 {
    skeleton.maps.bss_data.as_ref().expect("the object has global variables").threads_joined
}
