//! Reads the table of samples.

use inodyne_model::observed::{BlockedSample, Sample};
use inodyne_model::stack::StackId;

use crate::intf::SampleKey;
use crate::names;

/// All samples, on a CPU and off it, each in a fixed order.
pub fn read(pairs: Vec<(SampleKey, u64)>) -> (Vec<Sample>, Vec<BlockedSample>) {
    let (off, on): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| key.blocked != 0);
    let sample = |(key, count): (SampleKey, u64)| Sample {
        thread: key.thread,
        syscall: names::call(key.call),
        user_mode: key.user_mode != 0,
        stack: StackId(key.stack),
        user_stack: StackId(key.user_stack),
        count,
    };
    let blocked = |(key, count): (SampleKey, u64)| BlockedSample {
        thread: key.thread,
        syscall: names::call(key.call),
        user_stack: StackId(key.user_stack),
        count,
    };
    let mut samples: Vec<Sample> = on.into_iter().map(sample).collect();
    let mut blocked_samples: Vec<BlockedSample> = off.into_iter().map(blocked).collect();
    samples.sort_by_cached_key(|one| (one.thread, one.syscall.clone(), one.user_mode, one.stack, one.user_stack));
    blocked_samples.sort_by_cached_key(|one| (one.thread, one.syscall.clone(), one.user_stack));
    (samples, blocked_samples)
}
