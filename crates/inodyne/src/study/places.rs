//! The places of a study: from names to descriptions. A place may lie over another one that it names; what would lie over
//! itself, or over nothing, is a mistake.

use std::collections::BTreeSet;

use inodyne_lab::{Kind, MadePlace, PlaceSpec, Where};

use super::file::{Place, Text};
use super::mistake::Mistake;
use super::words::Dictionary;

/// A place with its description, as the lab reads it.
#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    pub spec: PlaceSpec,
    /// Names of inputs in its description.
    pub used: BTreeSet<String>,
}

impl Named {
    /// Whether inodyne makes it.
    pub fn is_made(&self) -> bool {
        self.spec.is_made()
    }

    /// Whether it is a tmpfs, which loses everything along with its caches.
    pub fn is_tmpfs(&self) -> bool {
        matches!(self.spec.place(), Where::Made(made) if made.kind == Kind::Tmpfs)
    }
}

/// All places, in the order of the file.
pub fn all(places: &[Place], dictionary: &Dictionary<'_>) -> Result<Vec<Named>, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let mut named = Vec::new();
    for (at, place) in places.iter().enumerate() {
        if let Some(first) = places[..at].iter().find(|other| other.name.get_ref() == place.name.get_ref()) {
            mistakes
                .push(Mistake::of(&place.name, format_args!("there is a place '{}' already", first.name.get_ref())));
        }
        match one(place, places, dictionary) {
            Ok(place) => named.push(place),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(named) } else { Err(mistakes) }
}

fn one(place: &Place, places: &[Place], dictionary: &Dictionary<'_>) -> Result<Named, Mistake> {
    let name = place.name.get_ref();
    if name.is_empty() || name.contains(|c: char| !c.is_alphanumeric() && !"-_.+".contains(c)) {
        return Err(Mistake::of(&place.name, format_args!("'{name}' is not a name: use letters, digits, - _ . +")));
    }
    let mut used = BTreeSet::new();
    let described = described(place, places, dictionary, &mut Vec::new(), &mut used)?;
    let spec = parsed(&place.at, &format!("{name}={described}"))?;
    Ok(Named { name: name.clone(), spec, used })
}

/// The description of a place with what it lies over filled in. `above` are the places over it.
fn described(
    place: &Place,
    places: &[Place],
    dictionary: &Dictionary<'_>,
    above: &mut Vec<String>,
    used: &mut BTreeSet<String>,
) -> Result<String, Mistake> {
    let (mut at, words) = put_in(&place.at, dictionary)?;
    used.extend(words);
    let plain = parsed_plain(&place.at, &at, place.over.is_some())?;
    if let (None, Some(value)) = (&plain, place.settings.values().next()) {
        return Err(Mistake::of(value, format_args!("settings need a place that is made here, and '{at}' is none")));
    }
    if let Some(over) = &place.over {
        let name = over.get_ref();
        above.push(place.name.get_ref().clone());
        if above.contains(name) {
            let circle = format!("{} over {name}", above.join(" over "));
            return Err(Mistake::of(over, format_args!("places in a circle: {circle}")));
        }
        let unknown = || Mistake::of(over, format_args!("there is no place '{name}': {}", there(places)));
        let below = places.iter().find(|place| place.name.get_ref() == name).ok_or_else(unknown)?;
        let below = described(below, places, dictionary, above, used)?;
        let kind = plain.map(|made| made.kind);
        at = over_another(&at, kind, &below)
            .ok_or_else(|| Mistake::of(over, format_args!("'{at}' lies over nothing: only overlay and bind do")))?;
    }
    for (file, value) in &place.settings {
        let (value, words) = put_in(value, dictionary)?;
        used.extend(words);
        at = with_option(&at, &format!("set={file}={value}"));
    }
    Ok(at)
}

/// The text with everything filled in, and the names of paths that were. A path becomes part of a description there, so it must not hold
/// what a description gives a meaning.
fn put_in(text: &Text, dictionary: &Dictionary<'_>) -> Result<(String, BTreeSet<String>), Mistake> {
    let (filled, words) = dictionary.put_in(text)?;
    let path = |name: &String| dictionary.fixed.get(name.as_str());
    match words.iter().filter_map(path).find(|path| path.contains([',', '[', ']', '\'', '"', '\\'])) {
        Some(path) => Err(Mistake::of(
            text,
            format_args!(
                "{path} has a comma, bracket, quote or backslash, which mean something in a place: move it elsewhere"
            ),
        )),
        None => Ok((filled, words)),
    }
}

/// Checks that it is well formed; the lab cannot yet tell for a bind mount that has no place to show.
fn parsed_plain(text: &Text, at: &str, has_over: bool) -> Result<Option<MadePlace>, Mistake> {
    let (kind, _) = at.split_once(':').unwrap_or((at, ""));
    let completed =
        if has_over && kind == Kind::Bind.name() { over_another(at, Some(Kind::Bind), "ext4") } else { None };
    let spec = parsed(text, completed.as_deref().unwrap_or(at))?;
    if spec.label().is_some() {
        return Err(Mistake::of(text, format_args!("'{at}' has a label: the place has its name")));
    }
    Ok(match spec.place() {
        Where::Made(made) => Some(made.clone()),
        _ => None,
    })
}

fn parsed(text: &Text, at: &str) -> Result<PlaceSpec, Mistake> {
    at.parse().map_err(|error: inodyne_lab::LabError| Mistake::of(text, error))
}

/// `overlay:layers=2` over `ext4` is `overlay:lower=[ext4],layers=2`.
fn over_another(at: &str, kind: Option<Kind>, below: &str) -> Option<String> {
    let option = match kind? {
        Kind::Overlay => format!("lower=[{below}]"),
        Kind::Bind => format!("[{below}]"),
        _ => return None,
    };
    Some(match at.split_once(':') {
        Some((kind, options)) => format!("{kind}:{option},{options}"),
        None => format!("{at}:{option}"),
    })
}

fn with_option(at: &str, option: &str) -> String {
    let separator = if at.contains(':') { ',' } else { ':' };
    format!("{at}{separator}{option}")
}

/// `there are slow, fast`
pub fn there(places: &[Place]) -> String {
    let names: Vec<&str> = places.iter().map(|place| place.name.get_ref().as_str()).collect();
    format!("there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::words::text;
    use super::*;

    fn place(name: &str, at: &str, over: Option<&str>) -> Place {
        Place { name: text(name), at: text(at), over: over.map(text), settings: BTreeMap::new() }
    }

    fn specs(places: &[Place]) -> Result<Vec<String>, Vec<Mistake>> {
        let named = all(places, &Dictionary::default())?;
        Ok(named.into_iter().map(|place| place.spec.to_string()).collect())
    }

    #[test]
    fn one_place_lies_over_another() {
        let mut base = place("base", "ext4:size=1G", None);
        base.settings.insert("/proc/sys/vm/dirty_ratio".to_owned(), text("5"));
        let over = [
            base,
            place("overlay", "overlay:layers=2", Some("base")),
            place("shown", "bind", Some("base")),
            place("readonly", "bind:mount=ro", Some("base")),
            place("deep", "overlay", Some("overlay")),
        ];
        let base = "ext4:size=1G,set=/proc/sys/vm/dirty_ratio=5";
        assert_eq!(
            specs(&over).unwrap(),
            [
                format!("base={base}"),
                format!("overlay=overlay:lower=[{base}],layers=2"),
                format!("shown=bind:[{base}]"),
                format!("readonly=bind:[{base}],mount=ro"),
                format!("deep=overlay:lower=[overlay:lower=[{base}],layers=2]"),
            ]
        );
    }

    #[test]
    fn the_path_of_an_input_is_no_option() {
        let told = |path: &str| {
            let dictionary = Dictionary { fixed: [("linux", path.to_owned())].into(), ..Dictionary::default() };
            let named = all(&[place("shown", "bind:{linux}", None)], &dictionary);
            named.map(|named| named[0].spec.to_string()).map_err(|mistakes| format!("{mistakes:?}"))
        };
        assert_eq!(told("/cache/linux").as_deref(), Ok("shown=bind:/cache/linux"));
        for path in ["/x,set=/proc/sys/kernel/core_pattern=|/evil", "/x,mount=ro", "/x]", "/it's"] {
            assert!(told(path).is_err_and(|told| told.contains("mean something in a place")), "{path}");
        }
    }

    #[test]
    fn circles_and_unknown_places_are_mistakes() {
        let wrong = |places: &[Place]| {
            let mistakes = specs(places).unwrap_err();
            mistakes.iter().map(|mistake| format!("{mistake:?}")).collect::<Vec<_>>().join("\n")
        };
        assert!(wrong(&[place("a", "overlay", Some("a"))]).contains("a over a"));
        let circle = [place("a", "overlay", Some("b")), place("b", "overlay", Some("a"))];
        assert!(wrong(&circle).contains("a over b over a"), "{}", wrong(&circle));
        assert!(wrong(&[place("a", "overlay", Some("c"))]).contains("no place 'c'"));
        assert!(wrong(&[place("a", "ext4", None), place("b", "ext4", Some("a"))]).contains("only overlay and bind"));
        assert!(wrong(&[place("a", "ext5:size=1G", None)]).contains("ext5"));
        assert!(wrong(&[place("a", "x=ext4", None)]).contains("has a label"));
        assert!(wrong(&[place("a", "ext4", None), place("a", "xfs", None)]).contains("already"));
        assert!(wrong(&[place("a b", "ext4", None)]).contains("is not a name"));
        let mut here = place("here", ".", None);
        here.settings.insert("/proc/sys/vm/dirty_ratio".to_owned(), text("5"));
        assert!(wrong(&[here]).contains("settings need a place that is made here"));
    }
}
