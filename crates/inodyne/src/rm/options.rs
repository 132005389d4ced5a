//! The command line of `rm`, parsed as GNU rm parses its own.
//!
//! Scripts rely on bundled options, options after operands, abbreviated long options and on which of two conflicting options wins, so all
//! of that is here. Options that GNU rm does not know must be spelled out in full: no abbreviation that works there means something else
//! here. The text of `--help` comes from [`super::RmArgs`]; a test compares the two.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use inodyne_tree::Strategy;

use super::quote::{locale_is_utf8, quote, quote_if_needed};

/// When to ask before removing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Never,
    /// For what is write-protected, if a person is there to answer.
    Protected,
    Always,
}

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub operands: Vec<OsString>,
    pub recursive: bool,
    pub empty_directories: bool,
    pub ignore_missing: bool,
    pub ask: Ask,
    pub ask_once: bool,
    pub verbose: bool,
    pub one_file_system: bool,
    pub preserve_root: bool,
    /// Also an operand on a different device from its parent. Nothing on the command line takes this back, as in GNU rm.
    pub preserve_all_roots: bool,
    /// Asks as if stdin were a terminal, which GNU rm's own tests rely on.
    pub presume_terminal: bool,
    pub cross_mounts: bool,
    pub dry_run: bool,
    pub trash: bool,
    pub json: bool,
    pub progress: bool,
    pub strategy: Option<Strategy>,
    pub threads: Option<usize>,
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    Remove(Options),
    Help,
    Version,
    /// Text for stderr, without the program's name; the exit code is 1.
    Mistake(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    None,
    Optional,
    Required,
}

/// Long options: name, value, whether GNU rm has it. In the order in which GNU lists ambiguous ones.
const LONG: [(&str, Value, bool); 18] = [
    ("force", Value::None, true),
    ("interactive", Value::Optional, true),
    ("one-file-system", Value::None, true),
    ("no-preserve-root", Value::None, true),
    ("preserve-root", Value::Optional, true),
    ("-presume-input-tty", Value::None, true),
    ("recursive", Value::None, true),
    ("dir", Value::None, true),
    ("verbose", Value::None, true),
    ("help", Value::None, true),
    ("version", Value::None, true),
    ("cross-mounts", Value::None, false),
    ("dry-run", Value::None, false),
    ("json", Value::None, false),
    ("progress", Value::None, false),
    ("strategy", Value::Required, false),
    ("threads", Value::Required, false),
    ("trash", Value::None, false),
];

/// Parses what follows `rm`.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Parsed {
    parse_arguments(&arguments.into_iter().collect::<Vec<_>>()).unwrap_or_else(|other| *other)
}

impl Options {
    fn new() -> Self {
        Self {
            operands: Vec::new(),
            recursive: false,
            empty_directories: false,
            ignore_missing: false,
            ask: Ask::Protected,
            ask_once: false,
            verbose: false,
            one_file_system: false,
            preserve_root: true,
            preserve_all_roots: false,
            presume_terminal: false,
            cross_mounts: false,
            dry_run: false,
            trash: false,
            json: false,
            progress: false,
            strategy: None,
            threads: None,
        }
    }

    fn short(&mut self, letter: u8) -> bool {
        match letter {
            b'd' => self.empty_directories = true,
            b'f' => (self.ask, self.ignore_missing, self.ask_once) = (Ask::Never, true, false),
            b'i' => (self.ask, self.ignore_missing, self.ask_once) = (Ask::Always, false, false),
            b'I' => (self.ask, self.ignore_missing, self.ask_once) = (Ask::Protected, false, true),
            b'r' | b'R' => self.recursive = true,
            b'v' => self.verbose = true,
            _ => return false,
        }
        true
    }

    fn long(&mut self, name: &str, value: Option<&OsStr>, written: &str) -> Result<(), Box<Parsed>> {
        match name {
            "force" => _ = self.short(b'f'),
            "recursive" => _ = self.short(b'r'),
            "dir" => _ = self.short(b'd'),
            "verbose" => _ = self.short(b'v'),
            "interactive" => self.interactive(value)?,
            "one-file-system" => self.one_file_system = true,
            // So dangerous that it must be deliberate.
            "no-preserve-root" if written != name => {
                return mistake("you may not abbreviate the --no-preserve-root option".into());
            }
            "no-preserve-root" => self.preserve_root = false,
            "preserve-root" => match value {
                Some(other) if other != "all" => {
                    return mistake(format!("unrecognized --preserve-root argument: {}", quoted(other)));
                }
                all => (self.preserve_root, self.preserve_all_roots) = (true, self.preserve_all_roots || all.is_some()),
            },
            "-presume-input-tty" => self.presume_terminal = true,
            "help" => return Err(Box::new(Parsed::Help)),
            "version" => return Err(Box::new(Parsed::Version)),
            "cross-mounts" => self.cross_mounts = true,
            "dry-run" => self.dry_run = true,
            "json" => self.json = true,
            "progress" => self.progress = true,
            "trash" => self.trash = true,
            "strategy" => {
                let name = value.unwrap_or_default();
                self.strategy = Strategy::ALL.into_iter().find(|strategy| name == strategy.name());
                if self.strategy.is_none() && name != "auto" {
                    let names = Strategy::ALL.map(Strategy::name).join(", ");
                    return usage(format!("no strategy {}: there are auto, {names}", quoted(name)));
                }
            }
            "threads" => {
                let text = value.unwrap_or_default();
                match text.to_str().and_then(|text| text.parse().ok()) {
                    Some(threads @ 1..=1024) => self.threads = Some(threads),
                    _ => return usage(format!("--threads takes a number from 1 to 1024, not {}", quoted(text))),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn interactive(&mut self, value: Option<&OsStr>) -> Result<(), Box<Parsed>> {
        const WORDS: [(&str, u8); 6] =
            [("never", 0), ("no", 0), ("none", 0), ("once", b'I'), ("always", b'i'), ("yes", b'i')];
        let text = value.map_or("always".into(), |value| value.to_string_lossy());
        let matching: Vec<_> = WORDS.iter().filter(|(word, _)| word.starts_with(&*text)).collect();
        let exact = matching.iter().find(|(word, _)| *word == text);
        let same = matching.iter().all(|(_, letter)| *letter == matching[0].1);
        match exact.or(matching.first().filter(|_| same)) {
            Some((_, 0)) => (self.ask, self.ask_once) = (Ask::Never, false),
            Some((_, letter)) => _ = self.short(*letter),
            None => {
                let kind = if matching.is_empty() { "invalid" } else { "ambiguous" };
                return usage(format!(
                    "{kind} argument {} for {}\nValid arguments are:\n  - {}\n  - {}\n  - {}",
                    quoted(OsStr::new(&*text)),
                    quoted(OsStr::new("--interactive")),
                    ["never", "no", "none"].map(|word| quoted(OsStr::new(word))).join(", "),
                    quoted(OsStr::new("once")),
                    ["always", "yes"].map(|word| quoted(OsStr::new(word))).join(", "),
                ));
            }
        }
        Ok(())
    }
}

fn parse_arguments(arguments: &[OsString]) -> Result<Parsed, Box<Parsed>> {
    let mut options = Options::new();
    let in_order = std::env::var_os("POSIXLY_CORRECT").is_some();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == b"--" {
            options.operands.extend(rest.cloned());
            break;
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            let equals = long.iter().position(|&byte| byte == b'=');
            let written = String::from_utf8_lossy(&long[..equals.unwrap_or(long.len())]).into_owned();
            let whole = String::from_utf8_lossy(long);
            let (name, takes) = find_long(&written, &whole).map_err(|text| hyphen_hint(text, arguments))?;
            let mut value = equals.map(|at| OsString::from_vec(long[at + 1..].to_vec()));
            match takes {
                Value::None if value.is_some() => {
                    return Err(hyphen_hint(format!("option '--{name}' doesn't allow an argument"), arguments));
                }
                Value::Required if value.is_none() => {
                    value = rest.next().cloned();
                    if value.is_none() {
                        return Err(hyphen_hint(format!("option '--{name}' requires an argument"), arguments));
                    }
                }
                _ => {}
            }
            options.long(name, value.as_deref(), &written)?;
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            for &letter in &bytes[1..] {
                if !options.short(letter) {
                    let shown = String::from_utf8_lossy(&[letter]).into_owned();
                    return Err(hyphen_hint(format!("invalid option -- '{shown}'"), arguments));
                }
            }
        } else {
            options.operands.push(argument.clone());
            if in_order {
                options.operands.extend(rest.cloned());
                break;
            }
        }
    }
    if options.operands.is_empty() && !options.ignore_missing {
        return usage("missing operand".into());
    }
    Ok(Parsed::Remove(options))
}

/// The option that `written` is or abbreviates, or what is wrong with it. Messages repeat it with its value, as `whole`.
fn find_long(written: &str, whole: &str) -> Result<(&'static str, Value), String> {
    let option = |&(name, value, _): &(&'static str, Value, bool)| (name, value);
    if let Some(exact) = LONG.iter().find(|(name, ..)| *name == written) {
        return Ok(option(exact));
    }
    let candidates: Vec<_> = LONG.iter().filter(|(name, _, gnu)| *gnu && name.starts_with(written)).collect();
    match candidates[..] {
        [one] => Ok(option(one)),
        [] => Err(format!("unrecognized option '--{whole}'")),
        _ => {
            let names: String = candidates.iter().map(|(name, ..)| format!(" '--{name}'")).collect();
            Err(format!("option '--{whole}' is ambiguous; possibilities:{names}"))
        }
    }
}

/// A mistake in the options, and if a file of that name exists, how it would be removed.
fn hyphen_hint(text: String, arguments: &[OsString]) -> Box<Parsed> {
    let file = arguments.iter().find(|argument| {
        argument.len() > 1 && argument.as_bytes().starts_with(b"-") && std::fs::symlink_metadata(argument).is_ok()
    });
    let hint = file.map_or_else(String::new, |file| {
        let plain = quote_if_needed(file.as_bytes(), locale_is_utf8());
        format!("\nTry 'inodyne rm ./{plain}' to remove the file {}.", quoted(file))
    });
    Box::new(Parsed::Mistake(format!("{text}{hint}\n{TRY}")))
}

const TRY: &str = "Try 'inodyne rm --help' for more information.";

fn usage<T>(text: String) -> Result<T, Box<Parsed>> {
    mistake(format!("{text}\n{TRY}"))
}

fn mistake<T>(text: String) -> Result<T, Box<Parsed>> {
    Err(Box::new(Parsed::Mistake(text)))
}

fn quoted(text: &OsStr) -> String {
    quote(text.as_bytes(), locale_is_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Options {
        match parse(arguments.iter().map(OsString::from)) {
            Parsed::Remove(options) => options,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn the_last_of_contrary_options_wins() {
        assert_eq!(options(&["-fi", "x"]).ask, Ask::Always);
        assert_eq!(options(&["-i", "x", "-f"]).ask, Ask::Never);
        assert!(options(&["-iI", "x"]).ask_once);
        assert!(!options(&["-If", "x"]).ask_once);
        assert!(options(&["-f", "--interactive=never", "x"]).ignore_missing);
        assert!(!options(&["-f", "--interactive=once", "x"]).ignore_missing);
    }

    #[test]
    fn options_may_follow_operands_and_be_abbreviated() {
        let options = options(&["a", "-rf", "--verb", "b", "--", "-c"]);
        assert_eq!(options.operands, ["a", "b", "-c"]);
        assert!(options.recursive && options.verbose && options.ignore_missing);
    }

    #[test]
    fn own_options_are_never_abbreviated() {
        assert!(options(&["--d", "x"]).empty_directories);
        assert!(options(&["--no-preserve-root", "--pre", "x"]).preserve_root);
        for argument in ["--dry", "--thr=2", "--tras", "--js"] {
            assert!(matches!(parse([argument.into(), "x".into()]), Parsed::Mistake(_)), "{argument}");
        }
        assert_eq!(options(&["--threads=2", "--strategy", "steal", "x"]).threads, Some(2));
    }

    #[test]
    fn protection_of_all_roots_is_never_taken_back() {
        for later in ["--preserve-root", "--no-preserve-root"] {
            let options = options(&["--preserve-root=all", later, "x"]);
            assert!(options.preserve_all_roots);
            assert_eq!(options.preserve_root, later == "--preserve-root");
        }
    }

    #[test]
    fn what_is_wrong_with_a_value_is_said_in_one_line() {
        let mistake = |arguments: [&str; 2]| match parse(arguments.map(OsString::from)) {
            Parsed::Mistake(text) => text.lines().next().unwrap_or_default().to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            mistake(["--strategy=x\ny", "a"]),
            "no strategy 'x'$'\\n''y': there are auto, groups, single, steal, wide"
        );
        assert_eq!(mistake(["--threads=0", "a"]), "--threads takes a number from 1 to 1024, not '0'");
    }

    #[test]
    fn help_names_every_option() {
        use clap::CommandFactory;
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            args: crate::rm::RmArgs,
        }
        let command = Cli::command();
        let mut documented: Vec<_> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
        let mut parsed: Vec<_> = LONG.iter().map(|(name, ..)| *name).filter(|name| !name.starts_with('-')).collect();
        parsed.retain(|name| *name != "version" && *name != "help");
        documented.sort_unstable();
        parsed.sort_unstable();
        assert_eq!(documented, parsed);
    }
}
