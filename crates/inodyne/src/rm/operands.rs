//! From operands to deletes: what each operand is, whether it may be removed at all, and how it is removed.
//!
//! Files are removed at once; directories go to the parallel delete, together if the order cannot matter (with `-f`), or to the asking
//! one if a person may have to be asked.

use std::{
    ffi::{OsStr, OsString},
    io::IsTerminal,
    os::unix::ffi::{OsStrExt, OsStringExt},
    process::ExitCode,
    time::Instant,
};

use inodyne_tree::{
    RemoveOptions, RemoveReport, Removed, remove as remove_trees, remove_aside, remove_asking, remove_left_behind,
};
use rustix::{
    fs::{AtFlags, CWD, FileType, Stat, statat, unlinkat},
    io::Errno,
};

use super::{
    ask::{Person, confirm},
    messages::{Messages, text_of},
    options::{Ask, Options},
    overlap::Overlap,
    progress,
    signals::{self, CONTROL},
    summary::Summary,
    waiting::Waiting,
};

/// Removes all operands; the exit code says whether all went well.
pub fn remove(options: &Options, messages: &Messages) -> ExitCode {
    let asking = asks(options);
    // The delete that asks renames nothing aside, so --trash would be ignored.
    if asking && options.trash && !options.dry_run {
        messages.error("--trash needs -f where questions may be asked");
        return ExitCode::FAILURE;
    }
    if options.ask_once && !is_meant(options) {
        return ExitCode::SUCCESS;
    }
    let started = Instant::now();
    let mut run = Run {
        options,
        messages,
        waiting: Waiting::default(),
        through: OsString::new(),
        above: (OsString::new(), false),
        aside: Vec::new(),
        to_count: Vec::new(),
        summary: Summary::default(),
    };
    if !asking {
        signals::catch();
    }
    for operand in options.operands.iter().map(|operand| with_one_slash(operand)) {
        if CONTROL.is_stopped() {
            run.summary.unfinished.push(operand.into());
        } else {
            run.operand(operand, asking);
        }
    }
    run.count();
    run.remove_trees();
    run.remove_left_behind();
    let mut summary = run.summary;
    summary.close(&CONTROL, messages.errors(), started.elapsed());
    if CONTROL.is_stopped() {
        messages.error(&summary.interruption(messages));
    }
    summary.print(options, messages);
    messages.close();
    signals::die_of_it();
    if messages.errors() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a person may have to answer for single entries.
fn asks(options: &Options) -> bool {
    match options.ask {
        Ask::Always => true,
        Ask::Never => false,
        // Root may write everywhere, so nothing is protected from it.
        Ask::Protected => {
            let is_answered = options.presume_terminal || std::io::stdin().is_terminal();
            !options.ignore_missing && !rustix::process::geteuid().is_root() && is_answered
        }
    }
}

/// The one question of `-I`.
fn is_meant(options: &Options) -> bool {
    let count = options.operands.len();
    if count <= 3 && !options.recursive {
        return true;
    }
    let arguments = if count == 1 { "argument" } else { "arguments" };
    let recursively = if options.recursive { " recursively" } else { "" };
    confirm(&format!("remove {count} {arguments}{recursively}? "))
}

struct Run<'a> {
    options: &'a Options,
    messages: &'a Messages,
    waiting: Waiting,
    /// What precedes the last names of those waiting, if that leads through a link; empty otherwise. So they do not depend on one another.
    through: OsString,
    /// What precedes the last name of the previous operand, and whether that leads through a link: usually the same as for the next one.
    above: (OsString, bool),
    /// What `--trash` has removed without renaming it: leftovers of earlier runs are looked for beside it too.
    aside: Vec<OsString>,
    /// What a dry run counts once it knows all operands.
    to_count: Vec<(OsString, Stat)>,
    summary: Summary,
}

impl Run<'_> {
    fn operand(&mut self, operand: &OsStr, asking: bool) {
        // It may be in, or reached through, a directory that is removed before it: GNU rm then finds it missing. Or it is the link
        // through which one that waits is reached.
        let above = above(operand);
        if above != self.above.0 {
            self.above = (above.to_owned(), leads_through_link(above));
        }
        let through = if self.above.1 { above } else { OsStr::new("") };
        let is_apart = !ends_in_dots(operand) && !goes_up(operand) && through == self.through;
        if !is_apart || self.waiting.has_to_do_with(operand) {
            self.remove_trees();
            self.through = through.to_owned();
        }
        let stat = match statat(CWD, operand, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // The link exists, but is not the directory that the slash asks for.
            Err(Errno::NOENT) if is_link(without_slash(operand)) => {
                return self.messages.cannot_remove(operand, Errno::NOTDIR);
            }
            Err(errno) => return self.messages.cannot_remove(operand, errno),
        };
        if is_directory(&stat) && !self.may_remove(operand, &stat) {
            return;
        }
        if asking {
            let mut person = Person { ask: self.options.ask, messages: self.messages };
            remove_asking(operand, &self.how(), &CONTROL, self.messages, &mut person);
            if CONTROL.is_stopped() {
                self.summary.unfinished.push(operand.into());
            }
        } else if self.options.dry_run {
            self.to_count.push((operand.into(), stat));
        } else {
            self.remove(operand, &stat);
        }
    }

    /// Counts what a dry run found that may be removed.
    fn count(&mut self) {
        let all = std::mem::take(&mut self.to_count);
        let directories = all.iter().map(|(_, stat)| stat).filter(|stat| is_directory(stat));
        let mut overlap = Overlap::new(directories, self.options.cross_mounts);
        for (operand, stat) in &all {
            if !overlap.has(operand) {
                self.remove(operand, stat);
            }
        }
    }

    fn remove(&mut self, operand: &OsStr, stat: &Stat) {
        if !is_directory(stat) {
            self.unlink(operand, stat);
        } else if !self.options.recursive {
            self.rmdir(operand);
        } else {
            self.waiting.add(operand);
            // A later operand may be in this one; then GNU rm says that it is missing.
            if !self.options.ignore_missing {
                self.remove_trees();
            }
        }
    }

    /// Whether a directory may be removed by what the options say.
    fn may_remove(&self, operand: &OsStr, stat: &Stat) -> bool {
        let Options { recursive, empty_directories, preserve_root, preserve_all_roots, .. } = self.options;
        let refuse = |errno| {
            self.messages.error(&format!("cannot remove {}: {}", self.messages.quote(operand), text_of(errno)));
            false
        };
        if !recursive && !empty_directories {
            return refuse(Errno::ISDIR);
        }
        if !recursive && has_entries(operand) {
            return refuse(Errno::NOTEMPTY);
        }
        let (bytes, trimmed) = (operand.as_bytes(), without_slash(operand).as_bytes());
        if ends_in_dots(operand) {
            let skipped = self.messages.quote(operand);
            self.messages.error(&format!("refusing to remove '.' or '..' directory: skipping {skipped}"));
            return false;
        }
        if *preserve_root && is_root(stat) {
            let same = if bytes == b"/" { "" } else { " (same as '/')" };
            let name = self.messages.quote(operand);
            self.messages.error(&format!("it is dangerous to operate recursively on {name}{same}"));
            self.messages.note("use --no-preserve-root to override this failsafe");
            return false;
        }
        if *preserve_all_roots && !self.is_on_device_of_parent(operand, stat) {
            return false;
        }
        if trimmed.is_empty() {
            return refuse(Errno::BUSY);
        }
        // With a slash after it, a link means what it leads to. That is outside, so it is left alone.
        if trimmed.len() < bytes.len() && is_link(OsStr::from_bytes(trimmed)) {
            return refuse(Errno::NOTDIR);
        }
        true
    }

    /// What `--preserve-root=all` wants to know.
    fn is_on_device_of_parent(&self, operand: &OsStr, stat: &Stat) -> bool {
        let slash: &[u8] = if operand.as_bytes().ends_with(b"/") { b"" } else { b"/" };
        let parent = OsString::from_vec([operand.as_bytes(), slash, b".."].concat());
        match statat(CWD, &parent, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(parent) if parent.st_dev == stat.st_dev => return true,
            Ok(_) => {
                self.messages.other_device(operand);
                self.messages.note("and --preserve-root=all is in effect");
            }
            Err(_) => {
                let [parent, operand] = [&*parent, operand].map(|path| self.messages.quote(path));
                self.messages.error(&format!("failed to stat {parent}: skipping {operand}"));
            }
        }
        false
    }

    fn unlink(&mut self, operand: &OsStr, stat: &Stat) {
        if self.options.dry_run {
            CONTROL.count_allocated(stat);
        } else if let Err(errno) = unlinkat(CWD, operand, AtFlags::empty()) {
            return self.messages.cannot_remove(operand, errno);
        }
        self.summary.files += 1;
        self.note_beside(operand);
        self.messages.say_removed(operand, Removed::File);
    }

    fn rmdir(&mut self, operand: &OsStr) {
        if !self.options.dry_run
            && let Err(errno) = unlinkat(CWD, operand, AtFlags::REMOVEDIR)
        {
            return self.messages.cannot_remove(operand, errno);
        }
        self.summary.directories += 1;
        self.note_beside(operand);
        self.messages.say_removed(operand, Removed::Directory);
    }

    /// Removes the waiting directories.
    fn remove_trees(&mut self) {
        let trees = self.waiting.take();
        if trees.is_empty() {
            return;
        }
        let how = self.how();
        let report: RemoveReport = progress::shown(self.options.progress, &CONTROL, || {
            if self.options.trash && !self.options.dry_run {
                remove_aside(&trees, &how, &CONTROL, self.messages)
            } else {
                remove_trees(&trees, &how, &CONTROL, self.messages)
            }
        });
        self.summary.add(report);
    }

    fn note_beside(&mut self, operand: &OsStr) {
        if self.options.trash && !self.options.dry_run {
            self.aside.push(operand.into());
        }
    }

    /// Removes what earlier runs with `--trash` left beside operands that were not trees. What was beside trees was removed with them.
    fn remove_left_behind(&mut self) {
        if !self.aside.is_empty() && !CONTROL.is_stopped() {
            self.summary.add(remove_left_behind(&self.aside, &self.how(), &CONTROL, self.messages));
        }
    }

    fn how(&self) -> RemoveOptions {
        RemoveOptions {
            strategy: self.options.strategy,
            threads: self.options.threads,
            cross_mounts: self.options.cross_mounts,
            one_device: self.options.one_file_system,
            dry_run: self.options.dry_run,
            only_empty: !self.options.recursive,
        }
    }
}

/// An operand with all but the first of its trailing slashes removed. `//` stays, as in GNU rm.
fn with_one_slash(operand: &OsStr) -> &OsStr {
    let bytes = operand.as_bytes();
    if bytes.len() <= 2 {
        return operand;
    }
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(1, |last| bytes.len().min(last + 2));
    OsStr::from_bytes(&bytes[..end])
}

/// What precedes an operand's last name; empty if nothing does.
fn above(operand: &OsStr) -> &OsStr {
    let bytes = without_slash(operand).as_bytes();
    OsStr::from_bytes(bytes.iter().rposition(|&byte| byte == b'/').map_or(&b""[..], |slash| &bytes[..slash]))
}

/// Whether the path, or a leading part of it, is a link.
fn leads_through_link(path: &OsStr) -> bool {
    let bytes = path.as_bytes();
    let ends = (1..=bytes.len()).filter(|&at| bytes[at - 1] != b'/' && bytes.get(at).is_none_or(|&next| next == b'/'));
    ends.map(|end| OsStr::from_bytes(&bytes[..end])).any(is_link)
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// An operand without its trailing slashes; empty for the root.
fn without_slash(operand: &OsStr) -> &OsStr {
    let bytes = operand.as_bytes();
    OsStr::from_bytes(bytes.iter().rposition(|&byte| byte != b'/').map_or(&b""[..], |last| &bytes[..=last]))
}

/// Whether it leads through a directory that it is not in: `d/../a`.
fn goes_up(operand: &OsStr) -> bool {
    operand.as_bytes().split(|byte| *byte == b'/').any(|name| name == b"..")
}

/// Whether the last name is `.` or `..`.
fn ends_in_dots(operand: &OsStr) -> bool {
    matches!(without_slash(operand).as_bytes().rsplit(|&byte| byte == b'/').next(), Some(b"." | b".."))
}

fn is_root(stat: &Stat) -> bool {
    statat(CWD, c"/", AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|root| (root.st_dev, root.st_ino) == (stat.st_dev, stat.st_ino))
}

fn is_link(path: &OsStr) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

fn has_entries(directory: &OsStr) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::super::options::{Parsed, parse};
    use super::*;

    #[test]
    fn trash_is_refused_where_questions_may_be_asked() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let tree = place.path().join("tree");
        std::fs::create_dir(&tree).expect("made");
        for more in [&["-ri"][..], &["-i", "-d"]] {
            let arguments = more.iter().map(OsString::from).chain(["--trash".into(), tree.clone().into()]);
            let Parsed::Remove(options) = parse(arguments) else { panic!("a mistake") };
            let messages = Messages::new(&options);
            remove(&options, &messages);
            assert_eq!((messages.errors(), tree.exists()), (1, true));
        }
    }
}
