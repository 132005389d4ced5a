//! The threads, where there is more than one: the root, then those with most CPU time.

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::observed::ROOT;
use inodyne_model::trace::{ThreadLedger, Trace};

use super::builder::{Column, Html};
use super::colours;
use crate::text::ledger::parts;
use crate::text::threads::mostly;
use crate::units::{duration, seconds};

/// Threads that have a row; a page is not for thousands.
pub(super) const MOST_THREADS: usize = 40;

/// The threads in the order in which they are shown.
pub(super) fn ordered(trace: &Trace) -> Vec<&ThreadLedger> {
    let mut threads: Vec<&ThreadLedger> = trace.threads.iter().collect();
    threads.sort_by_key(|thread| (thread.number != ROOT, Reverse(cpu(thread)), Reverse(thread.lifetime_ns)));
    threads
}

fn time_in(thread: &ThreadLedger, of: impl Fn(&Row) -> bool) -> Nanos {
    thread.rows.iter().filter(|row| of(row)).map(|row| row.ns).sum()
}

fn cpu(thread: &ThreadLedger) -> Nanos {
    time_in(thread, |row| matches!(row.kind, RowKind::User | RowKind::Kernel))
}

pub(super) fn show(page: &mut Html, trace: &Trace) {
    if trace.threads.len() < 2 {
        return;
    }
    page.element("h3", &[], &format!("Threads: {}", Grouped(trace.threads.len() as u64)));
    let threads = ordered(trace);
    let longest = threads.iter().map(|thread| thread.lifetime_ns).max().unwrap_or_default();
    let number = |heading| Column::number(heading).sorting();
    let columns = [
        Column::text("command").sorting(),
        number("pid"),
        number("tid"),
        number("life s"),
        number("cpu s"),
        number("ready s"),
        number("blocked s"),
        Column::text("mostly"),
        Column::drawn("its life"),
    ];
    page.table("threads", &columns, |page| {
        page.inside("tbody", &[], |page| {
            for thread in threads.iter().take(MOST_THREADS) {
                row(page, thread, longest);
            }
        });
    });
    if threads.len() > MOST_THREADS {
        let rest = threads.len() - MOST_THREADS;
        page.element(
            "p",
            &[("class", "dim")],
            &format!("{} threads with less CPU time are not listed.", Grouped(rest as u64)),
        );
    }
}

fn row(page: &mut Html, thread: &ThreadLedger, longest: Nanos) {
    page.inside("tr", &[], |page| {
        page.element("th", &[("scope", "row")], &thread.comm);
        let mut number = |value: u64, shown: &str| {
            page.element("td", &[("class", "n"), ("data-v", &value.to_string())], shown);
        };
        number(thread.pid.into(), &thread.pid.to_string());
        number(thread.tid.into(), &thread.tid.to_string());
        let ready = time_in(thread, |row| row.kind == RowKind::Runqueue);
        let blocked = time_in(thread, |row| row.kind == RowKind::Blocked);
        for ns in [thread.lifetime_ns, cpu(thread), ready, blocked] {
            number(ns.0, &seconds(ns, longest));
        }
        page.element("td", &[], &thread.rows.first().map_or_else(String::new, mostly));
        page.inside("td", &[("class", "bar")], |page| {
            let width = format!("width:{:.3}%", thread.lifetime_ns.share_of(longest) * 100.0);
            page.inside("div", &[("class", "stacked small"), ("style", &width)], |page| {
                for row in &thread.rows {
                    let style = format!("width:{:.3}%", row.ns.share_of(thread.lifetime_ns) * 100.0);
                    let class = format!("c-{}", colours::of_row(row.kind, row.cause));
                    let words = parts(row);
                    let title = format!("{} {}: {}", words.subject, words.what, duration(row.ns));
                    page.element("span", &[("class", &class), ("style", &style), ("title", &title)], "");
                }
            });
        });
    });
}
