//! Words in braces that stand for others: `{archive}` for a value of the study, `{linux}` for the directory of an input,
//! `{inodyne}` for this program.
//!
//! Braces have a meaning in shells and in find, so only `{name}` with a name made of lowercase letters, digits and dashes is one of ours,
//! and not if a `$` comes before it. What looks like one but is not is a mistake, so that a misspelled name is not run.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use super::file::Text;
use super::mistake::Mistake;

/// What stands for what.
#[derive(Debug, Default)]
pub struct Dictionary<'a> {
    /// Values of the study; they may name inputs.
    pub values: BTreeMap<&'a str, &'a Text>,
    /// Directories of inputs, and this program.
    pub fixed: BTreeMap<&'a str, String>,
}

impl Dictionary<'_> {
    /// The text with everything filled in, and the names of `fixed` that were needed for it.
    pub fn put_in(&self, text: &Text) -> Result<(String, BTreeSet<String>), Mistake> {
        let mut used = BTreeSet::new();
        let done = self.replace(text.get_ref(), true, &mut used).map_err(|problem| Mistake::of(text, problem))?;
        Ok((done, used))
    }

    fn replace(&self, text: &str, with_values: bool, used: &mut BTreeSet<String>) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let name = after.split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
            match name.filter(|_| !before.ends_with('$')) {
                None => {
                    out.push('{');
                    rest = after;
                }
                Some(name) => {
                    rest = &after[name.len() + 1..];
                    if let Some(fixed) = self.fixed.get(name) {
                        used.insert(name.to_owned());
                        out.push_str(fixed);
                    } else if let Some(value) = self.values.get(name).filter(|_| with_values) {
                        out.push_str(&self.replace(value.get_ref(), false, used)?);
                    } else {
                        return Err(self.unknown(name, with_values));
                    }
                }
            }
        }
        Ok(out + rest)
    }

    fn unknown(&self, name: &str, with_values: bool) -> String {
        let values = self.values.keys().filter(|_| with_values);
        let there: Vec<String> = values.chain(self.fixed.keys()).map(|name| format!("{{{name}}}")).collect();
        format!("{{{name}}} stands for nothing: there are {}; write {{ {name} }} to mean the braces", there.join(", "))
    }
}

/// Whether it can be the name of a value or an input.
pub fn is_name(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_of_name)
}

/// A text without a place in the file, for tests and defaults.
#[cfg(test)]
pub fn text(text: &str) -> Text {
    Spanned::new(0..0, text.to_owned())
}

/// The same text with other contents, at the same place in the file.
pub fn instead(text: &Text, contents: String) -> Text {
    Spanned::new(text.span(), contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_replaced() {
        let (archive, count) = (text("{linux}/part.tar"), text("20"));
        let dictionary = Dictionary {
            values: [("archive", &archive), ("count", &count)].into(),
            fixed: [("linux", "/cache/linux".to_owned()), ("inodyne", "/bin/inodyne".to_owned())].into(),
        };
        let put_in =
            |of: &str| dictionary.put_in(&text(of)).map(|(text, used)| (text, used.into_iter().collect::<Vec<_>>()));
        let all = |text: &str, used: &[&str]| Ok((text.to_owned(), used.iter().map(|u| (*u).to_owned()).collect()));
        assert_eq!(put_in("tar xf {archive} -C {count}"), all("tar xf /cache/linux/part.tar -C 20", &["linux"]));
        assert_eq!(put_in("{inodyne} rm"), all("/bin/inodyne rm", &["inodyne"]));
        for plain in ["find . -exec cat {} +", "echo ${count} { print } {A} {", "awk '{ print $1 }'"] {
            assert_eq!(put_in(plain), all(plain, &[]));
        }
        assert!(put_in("{lniux}").is_err());
        assert!(Dictionary::default().put_in(&text("{a}")).is_err());
    }

    #[test]
    fn a_value_does_not_lead_to_another() {
        let (a, b) = (text("{b}"), text("{a}"));
        let dictionary = Dictionary { values: [("a", &a), ("b", &b)].into(), ..Dictionary::default() };
        assert!(dictionary.put_in(&text("{a}")).is_err());
    }
}
