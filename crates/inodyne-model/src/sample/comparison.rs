//! The start of an application on ext4 and on an overlay of it, and a build that gets slower: for comparisons.

use crate::Nanos;
use crate::place::Place;
use crate::recording::Recording;
use crate::run::{CacheState, Exit, Run};
use crate::trace::Trace;

use super::{command, empty, ext4, find_trace, ms, run};

/// Numbers around 1, `part` to either side, that look like noise and are always the same.
fn noise(n: u32, part: f64) -> f64 {
    // The mixing at the end of MurmurHash3: neighbouring numbers are unrelated.
    let mix = |x: u32, shift: u32, factor: u32| (x ^ (x >> shift)).wrapping_mul(factor);
    let mixed = mix(mix(n.wrapping_add(1), 16, 0x85eb_ca6b), 13, 0xc2b2_ae35);
    1.0 + part * (2.0 * f64::from(mixed ^ (mixed >> 16)) / f64::from(u32::MAX) - 1.0)
}

fn scaled(ns: &mut Nanos, factor: f64) {
    *ns = Nanos((ns.0 as f64 * factor).round() as u64);
}

/// A trace in which the kernel's part of a call takes `factor` times as long.
fn with_call(mut trace: Trace, name: &str, factor: f64) -> Trace {
    let root = &mut trace.observed.threads[0];
    let before = root.kernel_ns[name];
    let after = root.kernel_ns.get_mut(name).map_or(Nanos::ZERO, |ns| {
        scaled(ns, factor);
        *ns
    });
    let moved = |ns: Nanos| Nanos(ns.0 + after.0 - before.0);
    (root.ended_ns, root.scheduler_cpu_ns) = (moved(root.ended_ns), moved(root.scheduler_cpu_ns));
    trace.wall_ns = moved(trace.wall_ns);
    for call in trace.by_comm.iter_mut().flat_map(|comm| &mut comm.syscalls).filter(|call| call.name == name) {
        (call.cpu_ns, call.wall_ns) = (moved(call.cpu_ns), moved(call.wall_ns));
    }
    trace
}

/// Fifty blocks on ext4 and an overlay, cold and warm; eight more of each traced.
pub fn overlay_recording() -> Recording {
    let mut recording = empty();
    let overlay = Place { label: "overlay".to_owned(), fs: "overlay".to_owned(), ..ext4("", &[]) };
    recording.places = vec![ext4("ext4", &[]), overlay];
    recording.commands = vec![command("python manage.py check")];
    for (cache, time, slower) in [(CacheState::Cold, 368.0, 1.12), (CacheState::Warm, 281.0, 1.001)] {
        for block in 0..50 {
            for (place, factor) in [(0, 1.0), (1, slower)] {
                let n = block * 2 + place as u32;
                let late = if n % 37 == 5 { 1.6 } else { 1.0 };
                let wall = ms(time * factor * late * noise(n, 0.03));
                recording.push_run(Run { block, ..run(place, cache, false, wall) });
            }
        }
        for block in 50..58 {
            for (place, factor) in [(0, 1.0), (1, if cache == CacheState::Cold { 1.3 } else { 1.002 })] {
                let n = block * 2 + place as u32;
                let trace = find_trace(place, cache, false);
                let trace = with_call(trace, "newfstatat", factor * noise(n, 0.02));
                let trace = with_call(trace, "getdents64", noise(n + 1, 0.05));
                recording.push_run(Run { block, ..run(place, cache, true, trace.wall_ns) });
                recording.traces.push(trace);
            }
        }
    }
    recording
}

/// A copy to ext4 and to xfs, 20 blocks: to exit there is no difference, to durable xfs is slower, and ext4 gets slower
/// run by run.
pub fn durable_recording() -> Recording {
    let mut recording = empty();
    recording.places =
        vec![ext4("ext4", &[]), Place { label: "xfs".to_owned(), fs: "xfs".to_owned(), ..ext4("", &[]) }];
    recording.commands = vec![command("cp -a linux copy")];
    for block in 0..20 {
        let aging = 1.0 + 0.01 * f64::from(block);
        for (place, flush) in [(0, 300.0 * aging), (1, 700.0)] {
            let n = block * 2 + place as u32;
            let wall = ms(500.0 * noise(n, 0.01));
            let durable_ns = Some(wall + ms(flush * noise(n + 100, 0.02)));
            recording.push_run(Run { block, durable_ns, ..run(place, CacheState::AsIs, false, wall) });
        }
    }
    recording
}

/// Three commands in one place, 20 blocks: the second gets slower run by run, the third fails twice and has two modes.
pub fn commands_recording() -> Recording {
    let mut recording = empty();
    recording.places = vec![ext4("ext4", &[])];
    recording.commands =
        vec![command("cp -a linux copy"), command("tar xf linux.tar"), command("rsync -a linux/ copy|new")];
    for block in 0..20 {
        let aging = 1.0 + 0.02 * f64::from(block);
        let modes = if block % 3 == 1 { 1.4 } else { 1.0 };
        for (at, time) in [900.0, 410.0 * aging, 1_300.0 * modes].into_iter().enumerate() {
            let wall = ms(time * noise(block * 3 + at as u32, 0.015));
            let exit = if at == 2 && block % 9 == 4 { Exit::Code(23) } else { Exit::Code(0) };
            recording.push_run(Run { block, command: at, exit, ..run(0, CacheState::AsIs, false, wall) });
        }
    }
    recording
}
