//! What is tried: the cures of findings that can be tried at this place, then the settings that fit it, then the user's own
//! parameters.
//!
//! What costs durability is left out unless it is asked for, by name or by `--risky`.

use inodyne_experiment::tuner::Alternative;
use inodyne_lab::Tunable;
use inodyne_lab::catalogue::{CATALOGUE, Means};
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::tuning::{Risk, Set};

use super::live::Below;
use super::ways::{Base, Step};

/// Something that may be faster.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What it is, for the report.
    pub set: Set,
    /// What it changes.
    pub step: Step,
    /// The command with it.
    pub alternative: Alternative,
}

/// What the user wants tried.
pub struct Wanted<'a> {
    /// Only these, if there are any: `NAME` or `NAME=VALUE`.
    pub settings: &'a [String],
    /// Also what costs durability.
    pub risky: bool,
    /// For an existing directory, what is below its file system.
    pub live: Option<&'a Below>,
}

/// Checks the names of settings before anything runs.
///
/// # Errors
/// One is unknown; the text says which there are.
pub fn check(settings: &[String]) -> Result<(), String> {
    let unknown = settings.iter().map(|setting| split(setting).0).find(|name| Tunable::named(name).is_none());
    match unknown {
        Some(name) => {
            let names: Vec<&str> = CATALOGUE.iter().map(|tunable| tunable.name).collect();
            Err(format!("--setting {name}: there is no such setting; there are {}", names.join(", ")))
        }
        None => Ok(()),
    }
}

/// `NAME=VALUE`, or a name alone.
fn split(setting: &str) -> (&str, Option<&str>) {
    setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)))
}

/// All that is tried, beginning with what findings say.
///
/// # Errors
/// There is nothing to try here.
pub fn all(wanted: &Wanted<'_>, base: &Base, findings: &[Finding]) -> Result<Vec<Candidate>, String> {
    let found = of_findings(wanted, base, findings);
    let mut all = if wanted.settings.is_empty() { found.clone() } else { Vec::new() };
    for mut candidate in of_catalogue(wanted, base)? {
        let place = candidate.alternative.place.to_string();
        let is_same = |known: &Candidate| known.alternative.place.to_string() == place;
        let finding = found.iter().find(|known| is_same(known));
        candidate.set.finding = finding.and_then(|known| known.set.finding.clone());
        match all.iter().position(is_same) {
            // The catalogue knows more about it; because of the finding, it comes first.
            Some(index) => all[index] = candidate,
            None => all.push(candidate),
        }
    }
    all.retain(|candidate| !wanted.settings.is_empty() || wanted.risky || candidate.set.risk < Risk::Durability);
    all.extend(of_parameters(base));
    for candidate in &mut all {
        candidate.alternative.place = candidate.alternative.place.called(&candidate.set.written);
    }
    match all.is_empty() {
        true => Err(format!("no known setting fits {}", base.place)),
        false => Ok(all),
    }
}

/// Those that are settings of a place; a warm cache is not one, nor is another command.
fn of_findings(wanted: &Wanted<'_>, base: &Base, findings: &[Finding]) -> Vec<Candidate> {
    let cures =
        findings.iter().flat_map(|finding| finding.cures.iter().zip(&finding.cure).map(move |cure| (finding, cure)));
    let candidate = |(finding, (cure, text)): (&Finding, (&inodyne_model::cure::Cure, &String))| {
        let written = written(&cure.change)?;
        let known = known(&cure.change);
        let risk = match &cure.change {
            Change::Place(PlaceChange::Over(_)) => Risk::Durability,
            Change::Place(PlaceChange::Mount(option)) => {
                known.map_or(Risk::None, |tunable| tunable.risk(split(option).1.unwrap_or(option)))
            }
            _ => Risk::None,
        };
        let step = Step::Cure(cure.change.clone());
        // Of two values of a setting only one can be taken, wherever they come from.
        let name = known.map_or(finding.id.as_str(), |tunable| tunable.name).to_owned();
        let set = Set { name, written, risk, finding: Some(finding.id.clone()), permanent: text.clone() };
        Some(Candidate { set, alternative: base.with([&step]).ok()?, step })
    };
    let is_live = wanted.live.is_some();
    cures.filter(|_| !is_live).filter_map(candidate).collect()
}

/// The known setting to which a change gives another value.
fn known(change: &Change) -> Option<&'static Tunable> {
    let is_meant = |tunable: &&'static Tunable| match (change, tunable.means) {
        (Change::Place(PlaceChange::Feature(name)), Means::MkfsFeature | Means::MkfsValue("-O")) => {
            tunable.values.iter().any(|value| value.text == name)
        }
        (Change::Place(PlaceChange::Mkfs { option, parameter, .. }), Means::Mkfs { option: of, parameter: known }) => {
            (option.as_str(), parameter.as_str()) == (of, known)
        }
        (Change::Place(PlaceChange::Mount(option)), Means::Mount(known)) => split(option).0 == known,
        (Change::Place(PlaceChange::Mount(option)), Means::MountWord) => {
            tunable.values.iter().any(|value| value.text == option)
        }
        (Change::Place(PlaceChange::WithoutSettings(names)), Means::Queue(known) | Means::Vm(known)) => {
            names.iter().any(|name| name == known)
        }
        (Change::Setting { file, .. }, Means::Queue(known)) => *file == format!("/sys/block/LOOP/queue/{known}"),
        (Change::Setting { file, .. }, Means::Vm(known)) => *file == format!("/proc/sys/vm/{known}"),
        _ => false,
    };
    CATALOGUE.into_iter().find(is_meant)
}

/// A change of a place as a user would write it; none for other changes.
fn written(change: &Change) -> Option<String> {
    Some(match change {
        Change::Place(PlaceChange::Feature(name)) => format!("-O {name}"),
        Change::Place(PlaceChange::Mkfs { option, parameter, value }) => format!("{option} {parameter}={value}"),
        Change::Place(PlaceChange::Mount(option)) => option.clone(),
        Change::Place(PlaceChange::WithoutSettings(names)) => format!("{} as the machine has it", names.join(", ")),
        Change::Place(PlaceChange::Over(options)) => format!("an overlay over it ({options})"),
        Change::Place(PlaceChange::Below) => "without the overlay".to_owned(),
        Change::Setting { file, value } => format!("{}={value}", file.rsplit('/').next().unwrap_or(file)),
        Change::Cache(_) | Change::Command(_) | Change::Advice { .. } => return None,
    })
}

/// The settings that fit, or those that were asked for, whether or not they fit.
fn of_catalogue(wanted: &Wanted<'_>, base: &Base) -> Result<Vec<Candidate>, String> {
    let mut all = Vec::new();
    let mut add = |tunable: &'static Tunable, value: &str| {
        let file = match (wanted.live, tunable.means) {
            (Some(below), Means::Queue(name)) => {
                let file = below.file(name);
                // A scheduler is refused even where there is none.
                let is_met = file.is_some() || name == "scheduler";
                if let Some(why) = tunable.means.not_undone().filter(|_| is_met) {
                    return Err(format!("it {why}"));
                }
                Some(file.ok_or_else(|| format!("what is below {} has no {name} to be set", base.place))?)
            }
            _ => None,
        };
        let permanent = match (wanted.live, tunable.means) {
            (Some(Below::Mount(_)), Means::Queue(name)) => {
                format!("after each mount: echo {value} >/sys/class/bdi/$(mountpoint -d DIRECTORY)/{name}")
            }
            _ => tunable.permanent(&base.place, value),
        };
        let step = match file {
            Some(file) => Step::File { file: file.display().to_string(), value: value.to_owned() },
            None => Step::Known(tunable.name, value.to_owned()),
        };
        let set = Set {
            name: tunable.name.to_owned(),
            written: tunable.written(value),
            risk: tunable.risk(value),
            finding: None,
            permanent,
        };
        let alternative = base.with([&step])?;
        all.push(Candidate { set, step, alternative });
        Ok(())
    };
    let known = |tunable: &'static Tunable| -> Vec<&str> {
        match wanted.live {
            Some(_) if tunable.means.is_live() => tunable.values.iter().map(|value| value.text).collect(),
            _ => tunable.values_for(&base.place).map(|value| value.text).collect(),
        }
    };
    if wanted.settings.is_empty() {
        for tunable in CATALOGUE {
            for value in known(tunable) {
                // What cannot be set here was not asked for.
                let _: Result<(), String> = add(tunable, value);
            }
        }
    }
    for setting in wanted.settings {
        let (name, value) = split(setting);
        let Some(tunable) = Tunable::named(name) else { continue };
        let values = value.map_or_else(|| known(tunable), |value| vec![value]);
        if values.is_empty() {
            return Err(format!("--setting {name}: {} has nothing that it applies to", base.place));
        }
        for value in values {
            add(tunable, value).map_err(|problem| format!("--setting {setting}: {problem}"))?;
        }
    }
    Ok(all)
}

/// Every value but the first of each parameter.
fn of_parameters(base: &Base) -> Vec<Candidate> {
    let of_one = |parameter: &crate::parameters::Parameter| {
        let name = parameter.name().to_owned();
        let candidate = move |value: &String| {
            let step = Step::Parameter(name.clone(), value.clone());
            let written = format!("{name}={value}");
            let permanent = format!("run it with {written}");
            let set = Set { name: name.clone(), written, risk: Risk::None, finding: None, permanent };
            Some(Candidate { set, alternative: base.with([&step]).ok()?, step })
        };
        parameter.others().iter().filter_map(candidate).collect::<Vec<_>>()
    };
    base.parameters.iter().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::command::CommandSpec;
    use inodyne_model::cure::Cure;
    use inodyne_model::sample;

    use super::*;

    fn base(place: &str) -> Base {
        Base::new(place.parse().unwrap(), CommandSpec::new(vec!["find".into()]), &[]).unwrap()
    }

    fn tried(place: &str, settings: &[&str], risky: bool) -> Result<Vec<String>, String> {
        let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
        let wanted = Wanted { settings: &settings, risky, live: None };
        all(&wanted, &base(place), &[]).map(|all| all.into_iter().map(|one| one.set.written).collect())
    }

    #[test]
    fn what_costs_durability_is_tried_only_where_it_is_asked_for() {
        let has = |risky| tried("ext4", &[], risky).unwrap().contains(&"commit=60".to_owned());
        assert_eq!((has(false), has(true)), (false, true));
        assert_eq!(tried("ext4", &["commit=7"], false).unwrap(), ["commit=7"]);
        assert_eq!(tried("xfs", &["logbsize", "dirty_bytes=1"], false).unwrap(), ["logbsize=256k", "dirty_bytes=1"]);
    }

    #[test]
    fn what_cannot_be_tried_says_why() {
        assert!(tried("tmpfs", &["commit"], false).unwrap_err().contains("nothing that it applies to"));
        assert!(tried("tmpfs", &["commit=7"], false).unwrap_err().contains("has no ext3"));
        assert!(check(&["comit=7".to_owned()]).unwrap_err().contains("inode_readahead_blks"));
    }

    #[test]
    fn of_a_directory_that_is_there_only_what_it_has_is_tried() {
        let some_mount = std::fs::read_dir("/sys/class/bdi").unwrap().next().unwrap().unwrap().path();
        let mount = Below::Mount(some_mount.canonicalize().unwrap());
        let tried = |below: Below, setting: &str| {
            let settings = [setting.to_owned()];
            let wanted = Wanted { settings: &settings, risky: false, live: Some(&below) };
            let all = all(&wanted, &base("bind:/tmp"), &[]);
            all.map(|all| all.into_iter().map(|one| one.set.written).collect::<Vec<_>>())
        };
        let known = tried(mount.clone(), "read_ahead_kb").unwrap();
        assert!(known.len() > 1 && known.contains(&"read_ahead_kb=1024".to_owned()), "{known:?}");
        assert_eq!(tried(mount.clone(), "read_ahead_kb=7").unwrap(), ["read_ahead_kb=7"]);
        for setting in ["scheduler", "scheduler=none"] {
            assert!(tried(mount.clone(), setting).unwrap_err().contains("resets other settings of the queue"));
        }
        let queue = tempfile::tempdir().unwrap();
        for (name, says) in
            [("nr_requests", "resets other settings of the queue"), ("wbt_lat_usec", "from automatic to manual")]
        {
            std::fs::write(queue.path().join(name), "").unwrap();
            for setting in [name.to_owned(), format!("{name}=64")] {
                assert!(tried(Below::Disk(queue.path().into()), &setting).unwrap_err().contains(says));
            }
        }
        assert!(tried(mount.clone(), "nr_requests=64").unwrap_err().contains("has no nr_requests to be set"));
        assert!(tried(Below::Nothing, "read_ahead_kb").unwrap_err().contains("has no read_ahead_kb to be set"));
    }

    #[test]
    fn the_cure_of_a_finding_comes_first_and_the_catalogue_says_what_it_is() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let mut finding = recording.findings[0].clone();
        let mount = |option: &str| Change::Place(PlaceChange::Mount(option.to_owned()));
        finding.cures = vec![
            Cure { change: Change::advice(), answers: 0 },
            Cure { change: mount("inode_readahead_blks=256"), answers: 0 },
            Cure { change: mount("commit=120"), answers: 0 },
        ];
        finding.cure = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let wanted = Wanted { settings: &[], risky: false, live: None };
        let all = all(&wanted, &base("ext4"), &[finding.clone()]).unwrap();
        let first = &all[0].set;
        assert_eq!((first.name.as_str(), first.finding.as_ref()), ("inode_readahead_blks", Some(&finding.id)));
        assert!(first.permanent.starts_with("/etc/fstab"));
        assert!(all.iter().all(|one| one.set.written != "commit=120"));
        assert_eq!(all.iter().filter(|one| one.set.written == "inode_readahead_blks=256").count(), 1);
        // It is the cure of the finding also where it was asked for by name.
        let settings = ["inode_readahead_blks=256".to_owned()];
        let wanted = Wanted { settings: &settings, ..wanted };
        let all = super::all(&wanted, &base("ext4"), &[finding.clone()]).unwrap();
        assert_eq!((all.len(), all[0].set.finding.as_ref()), (1, Some(&finding.id)));
    }

    #[test]
    fn a_value_that_a_finding_advises_is_one_of_its_setting() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let mut finding = recording.findings[0].clone();
        let [mount, overlay] = ["data=ordered", "volatile"].map(str::to_owned);
        let [option, parameter, value] = ["-J", "size", "32"].map(str::to_owned);
        let read_ahead = Change::Setting { file: "/sys/block/LOOP/queue/read_ahead_kb".into(), value: "64".into() };
        finding.cures = [
            read_ahead,
            Change::Place(PlaceChange::Mkfs { option, parameter, value }),
            Change::Place(PlaceChange::Mount(mount)),
            Change::Place(PlaceChange::Over(overlay)),
        ]
        .map(|change| Cure { change, answers: 0 })
        .into();
        finding.cure = vec!["a".to_owned(); 4];
        let wanted = Wanted { settings: &[], risky: true, live: None };
        let all = all(&wanted, &base("ext4:mkfs=-J size=4,mount=data=journal"), &[finding.clone()]).unwrap();
        let of_finding: Vec<_> = all.iter().filter(|one| one.set.finding.is_some()).map(|one| &one.set).collect();
        let told: Vec<_> = of_finding.iter().map(|set| (set.name.as_str(), set.risk)).collect();
        let expected = [
            ("read_ahead_kb", Risk::None),
            ("journal-size", Risk::None),
            ("data", Risk::Durability),
            (finding.id.as_str(), Risk::Durability),
        ];
        assert_eq!(told, expected);
    }
}
