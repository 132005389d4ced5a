//! The command with some settings: how each is applied to the place and the words that it begins with.

use inodyne_experiment::tuner::Alternative;
use inodyne_lab::{PlaceSpec, Tunable};
use inodyne_model::command::CommandSpec;
use inodyne_model::cure::Change;

use crate::parameters::{self, Given, Parameter, Variant};

/// What turns one way to run the command into another.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A known setting at a value.
    Known(&'static str, String),
    /// A file under /sys or /proc/sys.
    File {
        /// The file.
        file: String,
        /// Its value.
        value: String,
    },
    /// What a finding says.
    Cure(Change),
    /// One of the user's own parameters at a value.
    Parameter(String, String),
}

/// The command as it is, and what its parameters can be.
#[derive(Debug)]
pub struct Base {
    /// The place.
    pub place: PlaceSpec,
    /// The command; its words, and what is around it, may hold parameters.
    command: CommandSpec,
    /// Their first values are the current ones.
    pub parameters: Vec<Parameter>,
}

impl Base {
    /// A base.
    ///
    /// # Errors
    /// A parameter appears nowhere, or is given twice.
    pub fn new(place: PlaceSpec, command: CommandSpec, parameters: &[Parameter]) -> Result<Base, String> {
        let around = [command.prepare.as_ref(), command.cleanup.as_ref()];
        parameters::check(parameters, &[Given::Words(&command.argv)], around)?;
        Ok(Base { place, command, parameters: parameters.to_vec() })
    }

    /// Without any step.
    pub fn as_it_is(&self) -> Alternative {
        self.with([]).expect("nothing is changed")
    }

    /// With these steps, one after the other.
    ///
    /// # Errors
    /// One of them cannot be taken here; the text says why.
    pub fn with<'a>(&self, steps: impl IntoIterator<Item = &'a Step>) -> Result<Alternative, String> {
        let mut place = self.place.clone();
        let mut values: Vec<Parameter> = self.parameters.iter().map(|one| one.only(one.first())).collect();
        for step in steps {
            let changed = match step {
                Step::Known(name, value) => match Tunable::named(name) {
                    Some(tunable) => tunable.apply(&place, value),
                    None => continue,
                },
                Step::File { file, value } => place.with_setting(file, value),
                Step::Cure(Change::Place(change)) => place.changed(change),
                Step::Cure(Change::Setting { file, value }) => place.with_setting(file, value),
                Step::Cure(_) => return Err("it is not a setting of a place".to_owned()),
                Step::Parameter(name, value) => {
                    values.iter_mut().filter(|one| one.name() == name).for_each(|one| *one = one.only(value));
                    continue;
                }
            };
            place = changed.map_err(|error| error.to_string())?;
        }
        Ok(Alternative { place, command: self.command_with(&values)? })
    }

    /// The command with a value for each parameter.
    fn command_with(&self, values: &[Parameter]) -> Result<CommandSpec, String> {
        let around = [self.command.prepare.as_ref(), self.command.cleanup.as_ref()];
        let variants = parameters::variants(Given::Words(&self.command.argv), around, values)?;
        let Variant { argv, prepare, cleanup, .. } = variants.into_iter().next().ok_or("a command is empty")?;
        let CommandSpec { label, argv, .. } = CommandSpec::new(argv);
        Ok(CommandSpec { label, argv, prepare, cleanup, ..self.command.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::parameter;

    #[test]
    fn steps_add_up() {
        let command = CommandSpec::new(["make", "-j{jobs}"].map(Into::into).to_vec());
        let base = Base::new("ext4".parse().unwrap(), command, &[parameter("jobs=1,4").unwrap()]).unwrap();
        assert_eq!(base.as_it_is().command.argv, ["make", "-j1"]);
        let steps = [
            Step::Known("atime", "noatime".to_owned()),
            Step::Parameter("jobs".to_owned(), "4".to_owned()),
            Step::Known("commit", "60".to_owned()),
        ];
        let both = base.with(&steps).unwrap();
        assert_eq!(both.command.argv, ["make", "-j4"]);
        assert_eq!(both.place.to_string(), "ext4:mount=noatime,commit=60");
        assert!(base.with(&[Step::Known("agcount", "4".to_owned())]).is_err());
    }
}
