//! `memory-pressure`: the kernel looks for memory to free, or waits for it, while the command waits.

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::limit::LimitKind;
use inodyne_model::stack::{Stack, function_name};

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time memory is no problem.
const LEAST_SHARE: f64 = 0.1;
/// Samples and waits: for a command of a few milliseconds, one sample is a tenth.
const LEAST_SEEN: u64 = 10;
/// What was evicted is read again as well; the time for that is not counted, so the saving may be larger.
const UNCERTAIN: f64 = 0.4;

/// Functions of reclaim, of compaction, and of a cgroup at its limit.
fn reclaims(function: &str) -> bool {
    matches!(
        function,
        "shrink_node"
            | "shrink_lruvec"
            | "shrink_slab"
            | "try_to_free_pages"
            | "try_to_free_mem_cgroup_pages"
            | "do_try_to_free_pages"
            | "try_charge_memcg"
            | "mem_cgroup_handle_over_high"
            | "__mem_cgroup_handle_over_high"
            | "try_to_compact_pages"
            | "do_swap_page"
    )
}

/// Functions that free memory, or wait, because a cgroup is at its limit.
fn is_of_group(function: &str) -> bool {
    matches!(
        function_name(function),
        "try_to_free_mem_cgroup_pages"
            | "__mem_cgroup_handle_over_high"
            | "mem_cgroup_handle_over_high"
            | "mem_cgroup_oom_synchronize"
    )
}

/// Functions that free memory because somebody wrote to `drop_caches` or `memory.reclaim` (fs/drop_caches.c, mm/vmscan.c): none is short.
fn frees_on_request(function: &str) -> bool {
    matches!(
        function_name(function),
        "drop_slab" | "drop_pagecache_sb" | "drop_caches_sysctl_handler" | "memory_reclaim" | "user_proactive_reclaim"
    )
}

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let waiting = case.waiting(|waited| waited.cause == Cause::Memory && !waited.passes(frees_on_request));
    let is_reclaim = |stack: &Stack| {
        let holds = |function: fn(&str) -> bool| stack.symbols().map(function_name).any(function);
        holds(reclaims) && !holds(frees_on_request)
    };
    let working = case.sampled_where(|_, stack| is_reclaim(stack));
    let time = waiting.clone().and(working.clone());
    let share = case.share(&time);
    if share < LEAST_SHARE || time.count < LEAST_SEEN {
        return None;
    }
    // Above memory.high it is mostly made to wait, and hardly works.
    let working_for_group = case.sampled_where(|_, stack| is_reclaim(stack) && stack.symbols().any(is_of_group));
    let waiting_for_group = case.waiting(|waited| {
        waited.cause == Cause::Memory && !waited.passes(frees_on_request) && waited.passes(is_of_group)
    });
    let limit = working_for_group.ns + waiting_for_group.ns > time.ns / 2.0;
    let mut evidence = vec![format!(
        "{} on a CPU to free memory (from samples), {} waiting for it",
        seconds(working.ns),
        seconds(waiting.ns)
    )];
    evidence.push(match limit {
        true => {
            match case.trace.limits.iter().filter(|limit| limit.kind == LimitKind::Memory).min_by_key(|l| l.value) {
                Some(limit) => format!("its cgroup allows it {limit}: {}", limit.file),
                None => "the limit of its cgroup is what it runs into (memory.max, memory.high)".to_owned(),
            }
        }
        false => format!("the machine has {:.1} GB in all", case.recording.host.memory_bytes as f64 / 1e9),
    });
    evidence.extend(brought_again(case));
    Some(
        Diagnosed {
            title: format!("Memory is short: {} of the time goes into finding some", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: advice(&[
                "give it more: a higher memory.max or memory.high of its cgroup (docker run --memory), or a larger machine",
                "or let it use less: fewer workers at once, smaller caches; read past the cache (O_DIRECT, POSIX_FADV_DONTNEED) what is read once",
            ]),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// `12.4 MB of files that it had read were evicted, and read again`; none where nothing was.
fn brought_again(case: &Case<'_>) -> Option<String> {
    let again = case.trace.page_cache.as_ref()?.again_bytes();
    (again > 0).then(|| format!("{:.1} MB of files that it had read were evicted, and read again", again as f64 / 1e6))
}
