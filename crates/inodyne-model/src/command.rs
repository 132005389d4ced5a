//! A command and the conditions under which it runs: everything that is needed to run it again elsewhere.
//!
//! Recordings keep it, so that a cure is tried under the conditions under which the trouble was seen. Words, paths and scripts
//! are bytes to the system; in JSON, anything in them that is not UTF-8 is replaced.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A command to run, or one that was run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The name used in reports: the words joined by spaces, quoted for a shell where needed.
    pub label: String,
    /// The words; the first is looked up in PATH unless it has a slash.
    #[serde(with = "texts")]
    pub argv: Vec<OsString>,
    /// Where it starts, below the place; none for the place itself.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "path")]
    pub cwd: Option<PathBuf>,
    /// Variables set in its environment by the user. Whatever else is in it is not kept, since it may hold secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "variables")]
    pub env: BTreeMap<OsString, OsString>,
    /// The login name of the user that it runs as, where that is not the user who called inodyne.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Shell command that runs in the place before each run, not measured.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "script")]
    pub prepare: Option<OsString>,
    /// Shell command that runs in the place after each run, not measured.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "script")]
    pub cleanup: Option<OsString>,
    /// Where its standard input comes from.
    #[serde(default, skip_serializing_if = "Stdin::is_empty")]
    pub stdin: Stdin,
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stdin {
    /// It is empty, so that no run misses what an earlier one has read.
    #[default]
    Empty,
    /// The same as inodyne's own; what was read is not kept.
    Inherited,
}

impl Stdin {
    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        *self == Stdin::Empty
    }
}

impl CommandSpec {
    /// A command without conditions, named by its words.
    pub fn new(argv: Vec<OsString>) -> CommandSpec {
        CommandSpec { label: label(&argv), argv, ..CommandSpec::default() }
    }

    /// Everything in it in which the user may name files.
    pub fn words(&self) -> impl Iterator<Item = &OsString> {
        self.argv.iter().chain(self.env.values()).chain(&self.prepare).chain(&self.cleanup)
    }

    /// The words as a shell would need them: exactly what runs.
    pub fn quoted(&self) -> String {
        self.argv.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    }
}

/// What reports call it: the script of a shell as the user wrote it, otherwise the quoted words.
fn label(argv: &[OsString]) -> String {
    match argv {
        [shell, option, script] if shell == "/bin/sh" && option == "-c" => script.to_string_lossy().into_owned(),
        _ => argv.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" "),
    }
}

/// A word as a shell would need it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The words of a command written as a line: plain words as they are, so that the start of a shell is not measured; anything
/// else is a script for `/bin/sh`. None where there are no words.
pub fn words(line: &str) -> Option<Vec<OsString>> {
    let is_plain = line.chars().all(|c| c.is_alphanumeric() || " %+,-./:=@_^".contains(c));
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let first = words.first()?.to_string_lossy();
    // `NAME=value command` sets a variable, and a name without a slash may be a shell builtin.
    if is_plain && !first.contains('=') && !BUILTINS.contains(&first.as_ref()) {
        return Some(words);
    }
    Some(vec!["/bin/sh".into(), "-c".into(), line.into()])
}

/// Words that only a shell knows, or knows better (POSIX.1-2024, "Shell Command Language", 2.15 and 1.7).
const BUILTINS: [&str; 22] = [
    ".", ":", "alias", "bg", "cd", "command", "eval", "exec", "exit", "export", "fg", "jobs", "read", "readonly",
    "set", "shift", "times", "trap", "type", "ulimit", "umask", "wait",
];

/// A path as text.
fn path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// Words as text.
mod texts {
    use super::*;

    pub(super) fn serialize<S: Serializer>(words: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(words.iter().map(|word| word.to_string_lossy()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(OsString::from).collect())
    }
}

/// Variables as an object of strings.
mod variables {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        variables: &BTreeMap<OsString, OsString>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(variables.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy())))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<OsString, OsString>, D::Error> {
        let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(texts.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// A script as text.
mod script {
    use super::*;

    pub(super) fn serialize<S: Serializer>(script: &Option<OsString>, serializer: S) -> Result<S::Ok, S::Error> {
        script.as_ref().map(|script| script.to_string_lossy()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OsString>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(OsString::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_an_older_recording_reads_and_is_written_as_it_was() {
        let json = r#"{"label":"find .","argv":["find","."]}"#;
        let command: CommandSpec = serde_json::from_str(json).unwrap();
        assert_eq!(command, CommandSpec::new(vec!["find".into(), ".".into()]));
        assert_eq!(serde_json::to_string(&command).unwrap(), json);
    }

    #[test]
    fn conditions_come_back_from_json() {
        let command = CommandSpec {
            cwd: Some("below".into()),
            env: [("LC_ALL".into(), "C".into())].into(),
            user: Some("nobody".to_owned()),
            prepare: Some("rm -f x".into()),
            cleanup: Some("rm x".into()),
            stdin: Stdin::Inherited,
            ..CommandSpec::new(vec!["find".into()])
        };
        let json = r#"{"label":"find","argv":["find"],"cwd":"below","env":{"LC_ALL":"C"},"user":"nobody","prepare":"rm -f x","cleanup":"rm x","stdin":"inherited"}"#;
        assert_eq!(serde_json::to_string(&command).unwrap(), json);
        assert_eq!(serde_json::from_str::<CommandSpec>(json).unwrap(), command);
    }

    #[test]
    fn a_directory_whose_name_is_no_text_is_written() {
        use std::os::unix::ffi::OsStringExt;
        let cwd = Some(OsString::from_vec(b"caf\xe9".to_vec()).into());
        let json = serde_json::to_string(&CommandSpec { cwd, ..CommandSpec::new(vec!["ls".into()]) }).unwrap();
        let read: CommandSpec = serde_json::from_str(&json).unwrap();
        assert_eq!(read.cwd, Some("caf\u{fffd}".into()));
    }

    #[test]
    fn a_label_is_what_the_user_wrote() {
        let label = |words: &[&str]| CommandSpec::new(words.iter().map(OsString::from).collect()).label;
        assert_eq!(label(&["/bin/sh", "-c", "find . | wc -l"]), "find . | wc -l");
        assert_eq!(label(&["find", ".", "-name", "*.c"]), "find . -name '*.c'");
        assert_eq!(label(&["echo", "it's", ""]), r"echo 'it'\''s' ''");
    }

    #[test]
    fn a_shell_only_where_it_is_needed() {
        let of = |text: &str| words(text).map(|words| words.len());
        assert_eq!(of("find . -size +1k"), Some(4));
        assert_eq!(of("find . | wc -l"), Some(3));
        assert_eq!(of("A=1 env"), Some(3));
        assert_eq!(of("cd tree"), Some(3));
        assert_eq!(of("  "), None);
    }
}
