//! What the disks of several cases did while their traced runs lasted, side by side: how much, why, and what was committed.

use std::collections::BTreeMap;

use inodyne_model::block::{BlockIo, Bound, BoundBy, Disk, IoPath};
use inodyne_model::load::Load;
use inodyne_model::trace::Trace;

use super::block::Page;
use super::table::{Column, Table};
use super::value::{Cell, Value};
use super::{block_io, journals};

/// Paths through the kernel that have a column.
const MOST_PATHS: usize = 4;

/// What a case did with the disk it worked with.
struct Worked<'a> {
    name: &'a str,
    bound: &'a Bound,
    load: Load,
    /// The part of the bytes that was moved for each path.
    shares: BTreeMap<IoPath, f64>,
}

/// Cases that moved nothing have no row; nothing is shown if none moved anything.
pub(super) fn show(page: &mut Page<'_>, traces: &[(String, &Trace)]) {
    let worked: Vec<Worked<'_>> = traces.iter().filter_map(|(name, trace)| Worked::of(name, trace)).collect();
    if !worked.is_empty() {
        page.heading("What the disks did in the traced runs");
        page.table(amounts(&worked));
        page.heading("Why the kernel issued the requests, as shares of the bytes");
        page.table(paths(&worked));
    }
    if let Some(table) = journals::beside(traces) {
        page.heading(journals::HEADING);
        page.table(table);
    }
}

impl<'a> Worked<'a> {
    fn of(name: &'a str, trace: &'a Trace) -> Option<Worked<'a>> {
        let block = trace.block.as_ref()?;
        let bound = block.bound.as_ref()?;
        let disk = block_io::disk_of(block, bound)?;
        let load = Load::of(disk, &block.paths, trace.wall_ns);
        let is_any = load.amount.bytes > 0;
        is_any.then(|| Worked { name, bound, shares: shares(block, disk, load.amount.bytes), load })
    }

    fn share(&self, path: IoPath) -> f64 {
        self.shares.get(&path).copied().unwrap_or_default()
    }
}

/// The shares of what [`Load`] counts.
fn shares(block: &BlockIo, disk: &Disk, all: u64) -> BTreeMap<IoPath, f64> {
    let mut shares = BTreeMap::new();
    for row in block.paths.iter().filter(|row| row.disk == disk.number && row.moves()) {
        *shares.entry(row.path).or_default() += row.amount.bytes as f64 / all as f64;
    }
    shares
}

fn amounts(worked: &[Worked<'_>]) -> Table {
    let headings = ["requests", "bytes", "mean", "a second", "busy", "at once"].map(Column::number);
    let columns = [Column::text("").naming().yielding()].into_iter().chain(headings);
    let mut table = Table::new("disks", columns.chain([Column::text("what bounds it")]));
    for Worked { name, bound, load, .. } in worked {
        table.row([
            Cell::of(*name),
            Cell::grouped(load.amount.requests),
            Cell::of(Value::Bytes(load.amount.bytes)),
            Cell::of(Value::Bytes(load.amount.mean_bytes())),
            Cell::rate_of_bytes(load.bytes_per_s),
            Cell::share(load.busy),
            Cell::of(format!("{:.1}", load.depth)),
            Cell::of(bounds(bound.by)),
        ]);
    }
    table
}

/// In a few words: the place says which disk it is.
fn bounds(by: BoundBy) -> &'static str {
    match by {
        BoundBy::NotTheDevice => "not the device",
        BoundBy::Latency => "its latency",
        BoundBy::Throughput => "its throughput",
        BoundBy::Journal => "the journal",
    }
}

/// The paths that have the largest parts, and all others as the rest. Each row sums to one.
fn paths(worked: &[Worked<'_>]) -> Table {
    let of_all = |path: IoPath| worked.iter().map(|one| one.share(path)).sum::<f64>();
    let mut shown: Vec<IoPath> = IoPath::ALL.iter().copied().filter(|path| of_all(*path) > 0.0).collect();
    shown.sort_by(|a, b| of_all(*b).total_cmp(&of_all(*a)));
    shown.truncate(MOST_PATHS);
    let headings = shown.iter().map(|path| path.words()).chain(["the rest"]).map(Column::number);
    let mut table = Table::new("paths", [Column::text("").naming().yielding()].into_iter().chain(headings));
    for one in worked {
        let parts: Vec<f64> = shown.iter().map(|path| one.share(*path)).collect();
        let rest = (1.0 - parts.iter().sum::<f64>()).max(0.0);
        table.row([Cell::of(one.name)].into_iter().chain(parts.into_iter().chain([rest]).map(Cell::share)));
    }
    table
}
