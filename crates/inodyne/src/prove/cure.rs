//! Which findings' cures can be applied, and how: a place made otherwise, another state of the caches, another command.

use inodyne_lab::{MadePlace, PlaceSpec, Where};
use inodyne_model::Nanos;
use inodyne_model::finding::Finding;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};

use super::split;
use crate::cli::ProveArguments;

/// One way to run the command.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The place, as the user would write it.
    pub place: String,
    pub data: Option<String>,
    /// As `--cache` takes it.
    pub cache: &'static str,
    pub prepare: Option<String>,
    pub argv: Vec<String>,
    /// How it is expected to end: as in the recording.
    pub exit: Exit,
}

/// Both ways, and what the difference is.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub base: Variant,
    pub cured: Variant,
    pub how: String,
}

/// Reads all contents, so that they are in memory.
const READ_ALL: &str = "find . -type f -exec cat {} + >/dev/null";

/// What to try for this finding; one line where nothing can be.
pub fn trial(recording: &Recording, finding: &Finding, arguments: &ProveArguments) -> Result<Trial, String> {
    if finding.bound {
        return Err("it says what limits and knows no cure".to_owned());
    }
    let base = base(recording, finding, arguments)?;
    let with = |cured: Variant, how: String| Ok(Trial { base: base.clone(), cured, how });
    if let Some(instead) = &arguments.instead {
        let argv = ["/bin/sh", "-c", instead].map(str::to_owned).to_vec();
        return with(Variant { argv, ..base.clone() }, format!("instead: {instead}"));
    }
    let at = |place: String| {
        let how = format!("{place} instead of {}", base.place);
        with(Variant { place, ..base.clone() }, how)
    };
    match finding.id.as_str() {
        "dtype-missing" if base.place.contains("^filetype") => at(base.place.replace("^filetype", "filetype")),
        "cold-metadata" => {
            with(Variant { cache: "warm", ..base.clone() }, "warm caches instead of cold ones".to_owned())
        }
        "cold-data" => {
            let prepare = match &base.prepare {
                Some(before) => format!("{before}\n{READ_ALL}"),
                None => READ_ALL.to_owned(),
            };
            let warm = Variant { cache: "warm", prepare: Some(prepare), ..base.clone() };
            with(warm, "contents in memory instead of cold".to_owned())
        }
        // A volatile overlay passes O_SYNC and O_DSYNC on to the file below (fs/overlayfs/file.c): seen on 6.18.
        "sync-bound" if !calls_sync(recording, finding) => {
            Err("its writes are synchronous themselves, which no place can ignore: give --instead".to_owned())
        }
        "sync-bound" => {
            let place = format!("overlay:lower=[{}],mount=volatile", base.place);
            with(Variant { place, ..base.clone() }, "syncs ignored, by a volatile overlay".to_owned())
        }
        "copy-up" => at(below(&base.place)?),
        "single-stream" => {
            let workers = recording.host.cpus.clamp(2, inodyne_analyse::MOST_WORKERS) as usize;
            let argv = split::over(&base.argv, workers)?;
            with(
                Variant { argv, ..base.clone() },
                format!("{workers} processes side by side, each with its part of the files"),
            )
        }
        "write-throttled" | "queue-full" if base.place.contains("set=") => at(without_settings(&base.place)),
        "journal-wait" if base.place.contains("-J size=") => at(with_larger_journal(&base.place)),
        _ => Err(format!(
            "its cure cannot be applied to {} by itself: give the command that does better with --instead",
            base.place
        )),
    }
}

/// Whether most of the waiting is in calls of their own, such as `fsync`, and not in synchronous writes.
fn calls_sync(recording: &Recording, finding: &Finding) -> bool {
    let calls = recording.traces.get(finding.trace).map_or(&[][..], |trace| &trace.syscalls);
    let blocked = |names: &[&str]| -> Nanos {
        calls.iter().filter(|call| names.contains(&call.name.as_str())).map(|call| call.blocked_ns).sum()
    };
    blocked(&["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"])
        > blocked(&["write", "pwrite64", "writev", "pwritev", "pwritev2"])
}

/// The command as it was.
fn base(recording: &Recording, finding: &Finding, arguments: &ProveArguments) -> Result<Variant, String> {
    let place = recording.places.get(finding.place).ok_or("its place is not in the recording")?;
    let command = recording.commands.get(finding.command).ok_or("its command is not in the recording")?;
    let trace = recording.traces.get(finding.trace).ok_or("its trace is not in the recording")?;
    let same = |run: &&inodyne_model::run::Run| {
        run.traced && (run.place, run.command, run.cache) == (trace.place, trace.command, trace.cache)
    };
    let exit = recording.runs.iter().find(same).map_or(Exit::Code(0), |run| run.exit);
    let cache = match trace.cache {
        CacheState::AsIs => "as-is",
        CacheState::Warm => "warm",
        CacheState::Cold => "cold",
    };
    Ok(Variant {
        place: described(place, arguments)?,
        data: arguments.data.clone().or_else(|| place.data.clone()),
        cache,
        prepare: arguments.prepare.clone(),
        argv: command.argv.clone(),
        exit,
    })
}

/// A command may be an `rm`: it is run again only in places made for it.
fn described(place: &Place, arguments: &ProveArguments) -> Result<String, String> {
    match (&arguments.place, &place.spec) {
        (Some(place), _) => Ok(place.clone()),
        // A recording is a file like any other: that it calls a directory made here is not believed.
        (None, Some(spec)) if place.made_here && is_made(spec) => Ok(spec.clone()),
        _ => Err(format!(
            "it was found in {}, where nothing is tried: give --at a place to make (such as ext4), and --data what to put into it",
            place.path.display()
        )),
    }
}

/// Whether nothing of the place was there before.
fn is_made(spec: &str) -> bool {
    spec.parse::<PlaceSpec>().is_ok_and(|spec| spec.is_all_made())
}

/// What an overlay lies over.
fn below(place: &str) -> Result<String, String> {
    let spec: PlaceSpec = place.parse().map_err(|error: inodyne_lab::LabError| error.to_string())?;
    match spec.place() {
        Where::Made(made) if made.kind == inodyne_lab::Kind::Overlay => {
            Ok(made.lower().map_or_else(|| "ext4".to_owned(), PlaceSpec::to_string))
        }
        _ => Err(format!("{place} is no overlay")),
    }
}

/// A place without the settings that were changed for it.
fn without_settings(place: &str) -> String {
    match place.parse::<PlaceSpec>().map(|spec| spec.place().clone()) {
        Ok(Where::Made(made)) => MadePlace::to_string(&made.without_settings()),
        _ => place.to_owned(),
    }
}

/// A place whose journal has 256 MB. Its size must admit that.
fn with_larger_journal(place: &str) -> String {
    let (before, after) = place.split_once("-J size=").unwrap_or((place, ""));
    let digits = after.chars().take_while(char::is_ascii_digit).count();
    format!("{before}-J size=256{}", &after[digits..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_made_otherwise() {
        assert_eq!(below("overlay:lower=[ext4:size=1G,mount=noatime]").unwrap(), "ext4:size=1G,mount=noatime");
        assert_eq!(below("overlay").unwrap(), "ext4");
        assert!(below("ext4").is_err());
        assert!(is_made("ext4:size=1G") && is_made("overlay:lower=xfs"));
        assert!(!is_made("/etc") && !is_made("bind:/etc") && !is_made("overlay:lower=/etc"));
        assert!(!is_made("bind:bind:/etc") && !is_made("overlay:lower=[bind:/etc]"));
        assert_eq!(with_larger_journal("ext4:size=1G,mkfs=-J size=1 -b 1024"), "ext4:size=1G,mkfs=-J size=256 -b 1024");
        assert_eq!(without_settings("ext4:size=1G,set=/proc/sys/vm/dirty_bytes=8388608"), "ext4:size=1G");
    }
}
