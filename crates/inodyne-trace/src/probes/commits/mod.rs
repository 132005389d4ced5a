//! Reads the table of journals.

mod contract;

use inodyne_model::Nanos;
use inodyne_model::block::{Commit, Journal, JournalKind};
use inodyne_model::trace::Trace;

use crate::devices;
use crate::map::pairs;
use crate::probe::{LOSING, Point, Probe, Program, Seen};
use contract::{CommitKey, JOURNAL_BTRFS, JOURNAL_JBD2, JOURNAL_XFS, Key, Row, Span};

/// The probe of journals.
#[derive(Default)]
pub struct Own;

/// ext3 is ext4 since Linux 4.3.
const JBD2: &str = "ext4";
const XFS: &str = "xfs";
const BTRFS: &str = "btrfs";

const fn of(filesystem: &'static str, name: &'static str, tracepoint: &'static str) -> Program {
    Program::new(name, Point::TracepointOf { filesystem, name: tracepoint })
}

const PROGRAMS: &[Program] = &[
    of(JBD2, "commits_locking", "jbd2_commit_locking"),
    of(JBD2, "commits_locking_again", "jbd2_commit_locking").on(LOSING).done(|bss| bss.commits_locking_again_done),
    of(JBD2, "commits_flushing", "jbd2_commit_flushing"),
    of(JBD2, "commits_flushing_again", "jbd2_commit_flushing").on(LOSING).done(|bss| bss.commits_flushing_again_done),
    of(JBD2, "commits_logging", "jbd2_commit_logging"),
    of(JBD2, "commits_logging_again", "jbd2_commit_logging").on(LOSING).done(|bss| bss.commits_logging_again_done),
    of(JBD2, "commits_committed", "jbd2_run_stats"),
    of(JBD2, "commits_committed_again", "jbd2_run_stats").on(LOSING).done(|bss| bss.commits_committed_again_done),
    of(JBD2, "commits_checkpointed", "jbd2_checkpoint_stats"),
    of(JBD2, "commits_checkpointed_again", "jbd2_checkpoint_stats").on(LOSING).done(|bss| bss.commits_checkpointed_again_done),
    of(XFS, "commits_xfs_write", "xlog_iclog_write"),
    of(XFS, "commits_xfs_write_again", "xlog_iclog_write").on(LOSING).done(|bss| bss.commits_xfs_write_again_done),
    of(XFS, "commits_xfs_force", "xfs_log_force"),
    of(XFS, "commits_xfs_force_again", "xfs_log_force").on(LOSING).done(|bss| bss.commits_xfs_force_again_done),
    of(XFS, "commits_xfs_full", "xfs_log_grant_sleep"),
    of(XFS, "commits_xfs_full_again", "xfs_log_grant_sleep").on(LOSING).done(|bss| bss.commits_xfs_full_again_done),
    of(BTRFS, "commits_btrfs", "btrfs_transaction_commit"),
    of(BTRFS, "commits_btrfs_again", "btrfs_transaction_commit").on(LOSING).done(|bss| bss.commits_btrfs_again_done),
];

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "journals"
    }

    fn without(&self) -> &'static str {
        "commits and checkpoints of journals are not counted"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let rows: Vec<(Key, Row)> = pairs(&seen.maps.journals)?;
        let kept = pairs(&seen.maps.commits_kept)?;
        let each = |key: &Key| commits(key, &kept, result.observed.started_ns);
        let with_commits = |(key, row): &(Key, Row)| Some(Journal { each: each(key), ..journal(key, row)? });
        let mut journals: Vec<Journal> = rows.iter().filter_map(with_commits).collect();
        journals.sort_by(|a, b| (std::cmp::Reverse(a.commits), &a.device).cmp(&(std::cmp::Reverse(b.commits), &b.device)));
        result.journals = journals;
        Ok(())
    }
}

fn journal(key: &Key, row: &Row) -> Option<Journal> {
    let kind = match key.kind {
        JOURNAL_JBD2 => JournalKind::Jbd2,
        JOURNAL_XFS => JournalKind::XfsLog,
        JOURNAL_BTRFS => JournalKind::Btrfs,
        _ => return None,
    };
    let device = devices::number(key.device);
    let only = |kinds: &[JournalKind], value: u64| kinds.contains(&kind).then_some(value);
    let (jbd2, xfs) = ([JournalKind::Jbd2], [JournalKind::XfsLog]);
    Some(Journal {
        name: devices::name(&device),
        device,
        kind,
        commits: row.commits,
        handles: only(&jbd2, row.handles),
        blocks: only(&jbd2, row.blocks),
        locked_ns: only(&jbd2, row.locked_ns).map(Nanos),
        flushing_ns: only(&jbd2, row.flushing_ns).map(Nanos),
        logging_ns: only(&jbd2, row.logging_ns).map(Nanos),
        longest_ns: only(&jbd2, row.longest_ns).map(Nanos),
        checkpoints: only(&jbd2, row.checkpoints),
        checkpointed: only(&jbd2, row.checkpointed),
        forces: only(&xfs, row.forces),
        waits_for_space: only(&xfs, row.full),
        each: Vec::new(),
    })
}

/// The commits of a journal that were kept, in chronological order, since the command's start.
fn commits(of: &Key, kept: &[(CommitKey, Span)], started: Nanos) -> Vec<Commit> {
    let own = kept.iter().filter(|(key, _)| (key.device, key.kind) == (of.device, of.kind));
    let mut numbered: Vec<(u64, Commit)> = own.map(|(key, span)| (key.number, commit(span, started))).collect();
    numbered.sort_by_key(|(number, commit)| (commit.to_ns, *number));
    numbered.into_iter().map(|(_, commit)| commit).collect()
}

fn commit(span: &Span, started: Nanos) -> Commit {
    let since = |at: u64| Nanos(at).saturating_sub(started);
    let known = |value: u64| (value > 0).then_some(value);
    Commit { from_ns: known(span.began).map(since), to_ns: since(span.ended), blocks: known(span.blocks) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_journal_key(to: *mut Key);
        fn host_plant_journal_row(to: *mut Row);
        fn host_plant_commit_key(to: *mut CommitKey);
        fn host_plant_commit_span(to: *mut Span);
    }

    #[test]
    fn every_part_of_a_journal_reaches_its_meaning() {
        let (key, row): (Key, Row) = (planted(host_plant_journal_key), planted(host_plant_journal_row));
        let expected = Journal {
            device: "259:2".to_owned(),
            name: "259:2".to_owned(),
            kind: JournalKind::Jbd2,
            commits: 501,
            handles: Some(502),
            blocks: Some(503),
            locked_ns: Some(Nanos(504)),
            flushing_ns: Some(Nanos(505)),
            logging_ns: Some(Nanos(506)),
            longest_ns: Some(Nanos(507)),
            checkpoints: Some(508),
            checkpointed: Some(509),
            forces: None,
            waits_for_space: None,
            each: Vec::new(),
        };
        assert_eq!(journal(&key, &row), Some(expected));
        let of_kind = |row: &Row, kind| journal(&Key { kind, ..key }, row);
        every_field_counts("journal_key", key, &[], |key| journal(key, &row));
        every_field_counts("journal_row", row, &["began", "since"], |row| {
            [JOURNAL_JBD2, JOURNAL_XFS].map(|kind| of_kind(row, kind))
        });
    }

    #[test]
    fn every_part_of_a_commit_reaches_its_meaning() {
        let (key, span): (CommitKey, Span) = (planted(host_plant_commit_key), planted(host_plant_commit_span));
        let of = planted(host_plant_journal_key);
        let told = |key: CommitKey, span: Span| commits(&of, &[(key, span)], Nanos(500));
        let expected = Commit { from_ns: Some(Nanos(21)), to_ns: Nanos(31), blocks: Some(522) };
        assert_eq!(told(key, span), [expected]);
        let later = |number| (CommitKey { number, ..key }, Span { blocks: number, ..span });
        every_field_counts("commit_key", key, &["number"], |key| told(*key, span));
        every_field_counts("commit_span", span, &[], |span| told(key, *span));
        // Those that end at the same instant are in the order of their numbers.
        let blocks: Vec<_> = commits(&of, &[later(2), later(1)], Nanos(500)).iter().map(|one| one.blocks).collect();
        assert_eq!(blocks, [Some(1), Some(2)]);
        let instant = told(key, Span { began: 0, blocks: 0, ..span });
        assert_eq!(instant, [Commit { from_ns: None, to_ns: Nanos(31), blocks: None }]);
    }
}
