//! Parameters of `inodyne compare` and `inodyne tune`: words in braces that stand for one value after another, like those of `hyperfine -L`.
//! Pure.

use std::ffi::OsString;

use inodyne_model::command::words;

/// A name and the values that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    name: String,
    values: Vec<String>,
}

/// The parts of one command that can hold parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The words of the command.
    pub argv: Vec<OsString>,
    /// What runs before each run.
    pub prepare: Option<OsString>,
    /// What runs after each run.
    pub cleanup: Option<OsString>,
    /// The values of parameters that do not appear in the command itself: `threads=1, size=4`. Empty if there are none.
    pub values_around: String,
}

/// A command as it was given.
#[derive(Debug, Clone, Copy)]
pub enum Given<'a> {
    /// As a line.
    Line(&'a str),
    /// As words.
    Words(&'a [OsString]),
}

/// Reads `threads=1,2,4`.
pub fn parameter(text: &str) -> Result<Parameter, String> {
    let (name, values) = text.split_once('=').unwrap_or_default();
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if name.is_empty() || name.contains(['{', '}']) || values.iter().any(String::is_empty) {
        return Err("write NAME=VALUE,VALUE: threads=1,2,4".to_owned());
    }
    match values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
        Some((_, twice)) => Err(format!("{twice} is there twice")),
        None => Ok(Parameter { name: name.to_owned(), values }),
    }
}

/// The command with every combination of values for the parameters that appear in it or in what is around it: the values of the last
/// parameter change fastest.
///
/// # Errors
/// The command is empty; the text says so.
pub fn variants(
    command: Given<'_>,
    around: [Option<&OsString>; 2],
    parameters: &[Parameter],
) -> Result<Vec<Variant>, String> {
    let mut choices = vec![Choice::default()];
    for parameter in parameters.iter().filter(|parameter| parameter.stands_in(command, around)) {
        let with = |choice: &Choice| parameter.values.iter().map(|value| choice.and(&parameter.name, value)).collect();
        choices = choices.iter().flat_map(|choice| -> Vec<Choice> { with(choice) }).collect();
    }
    let variant = |choice: &Choice| {
        let argv = match command {
            Given::Line(line) => words(&choice.put_into(line)).ok_or("a command is empty")?,
            Given::Words(words) => words.iter().map(|word| choice.put_into_word(word)).collect(),
        };
        let [prepare, cleanup] = around.map(|script| script.map(|script| choice.put_into_word(script)));
        Ok(Variant { argv, prepare, cleanup, values_around: choice.told(|name| !stands_in_command(name, command)) })
    };
    choices.iter().map(variant).collect()
}

/// Looks for a parameter that appears nowhere, or is given twice; the text says which.
///
/// # Errors
/// There is one.
pub fn check(parameters: &[Parameter], commands: &[Given<'_>], around: [Option<&OsString>; 2]) -> Result<(), String> {
    for (at, parameter) in parameters.iter().enumerate() {
        let name = &parameter.name;
        if parameters[..at].iter().any(|other| other.name == *name) {
            return Err(format!("-L {name} is there twice"));
        }
        if !commands.iter().any(|command| parameter.stands_in(*command, around)) {
            return Err(format!("-L {name}: {{{name}}} stands in no command"));
        }
    }
    Ok(())
}

impl Parameter {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value that is named first.
    pub fn first(&self) -> &str {
        &self.values[0]
    }

    /// The values after it.
    pub fn others(&self) -> &[String] {
        &self.values[1..]
    }

    /// The same with one value.
    pub fn only(&self, value: &str) -> Parameter {
        Parameter { name: self.name.clone(), values: vec![value.to_owned()] }
    }

    fn stands_in(&self, command: Given<'_>, around: [Option<&OsString>; 2]) -> bool {
        stands_in_command(&self.name, command)
            || around.into_iter().flatten().any(|script| stands_in_word(&self.name, script))
    }
}

fn stands_in_command(name: &str, command: Given<'_>) -> bool {
    match command {
        Given::Line(line) => line.contains(&in_braces(name)),
        Given::Words(words) => words.iter().any(|word| stands_in_word(name, word)),
    }
}

fn stands_in_word(name: &str, word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.contains(&in_braces(name)))
}

fn in_braces(name: &str) -> String {
    format!("{{{name}}}")
}

/// A value for each of some parameters.
#[derive(Debug, Clone, Default)]
struct Choice(Vec<(String, String)>);

impl Choice {
    fn and(&self, name: &str, value: &str) -> Choice {
        let more = [(name.to_owned(), value.to_owned())];
        Choice(self.0.iter().cloned().chain(more).collect())
    }

    fn put_into(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&in_braces(name), value))
    }

    /// A word that is not UTF-8 holds no parameters.
    fn put_into_word(&self, word: &OsString) -> OsString {
        word.to_str().map_or_else(|| word.clone(), |word| self.put_into(word).into())
    }

    /// The values of the parameters that are wanted.
    fn told(&self, wanted: impl Fn(&str) -> bool) -> String {
        let wanted = self.0.iter().filter(|(name, _)| wanted(name));
        wanted.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(line: &str, parameters: &[Parameter]) -> Vec<String> {
        let all = variants(Given::Line(line), [None, None], parameters).unwrap();
        let joined =
            |variant: &Variant| variant.argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        all.iter().map(joined).collect()
    }

    #[test]
    fn every_choice_of_values_is_a_command() {
        let parameters = ["n=1,2", "size=4K,8K"].map(|text| parameter(text).unwrap());
        let made = lines("copy -n {n} {size} {other}", &parameters);
        assert_eq!(made.len(), 4);
        assert_eq!(made[1], "/bin/sh -c copy -n 1 8K {other}");
        assert_eq!(lines("copy -n {n}", &parameters), ["copy -n 1", "copy -n 2"]);
        assert_eq!(lines("copy", &parameters), ["copy"]);
    }

    #[test]
    fn what_is_around_a_command_is_filled_as_well() {
        let prepare = OsString::from("make {n}");
        let parameters = [parameter("n=1,2").unwrap()];
        let words = ["find".into(), ".".into()];
        let made = variants(Given::Words(&words), [Some(&prepare), None], &parameters).unwrap();
        let told = made.iter().map(|variant| (variant.prepare.clone().unwrap(), variant.values_around.as_str()));
        assert_eq!(told.collect::<Vec<_>>(), [("make 1".into(), "n=1"), ("make 2".into(), "n=2")]);
        assert!(made.iter().all(|variant| variant.argv == words));
    }

    #[test]
    fn mistakes_are_told() {
        for text in ["n", "n=", "=1", "n=1,,2", "n=1,1", "{n}=1"] {
            assert!(parameter(text).is_err(), "{text}");
        }
        let [n, m] = ["n=1,2", "m=1"].map(|text| parameter(text).unwrap());
        let commands = [Given::Line("find {n}")];
        assert_eq!(check(std::slice::from_ref(&n), &commands, [None, None]), Ok(()));
        assert!(check(&[n.clone(), m], &commands, [None, None]).unwrap_err().contains("{m} stands in no command"));
        assert!(check(&[n.clone(), n], &commands, [None, None]).unwrap_err().contains("twice"));
    }
}
