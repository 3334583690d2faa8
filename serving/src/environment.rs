//! The process environment as a value, and parsing of the command line together with it. This is the
//! only module that reads either.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::{Command, CommandFactory, Parser};

use crate::exit::Failure;

/// Environment variables. Tests provide their own.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Returns the environment of this process.
    pub fn from_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the value of `name`; an empty value counts as absent.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Like [`Self::get`], for a value that must be UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let wrong = |value: &OsStr| Failure::Usage(format!("{name} = {value:?}: must be UTF-8"));
        self.get(name).map(|value| value.to_str().ok_or_else(|| wrong(value))).transpose()
    }

    /// Returns all variables whose names and values are UTF-8.
    pub fn texts(&self) -> Vec<(String, String)> {
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        self.0.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
    }

    /// Parses the command line of this process.
    pub fn parse_args<A: Parser>(&self) -> Result<A, clap::Error> {
        self.args(Self::words())
    }

    /// Returns the words of the command line of this process, the program's name first.
    pub fn words() -> impl Iterator<Item = OsString> {
        std::env::args_os()
    }

    /// Parses the command line `words`, which starts with the program's name. clap reads the
    /// environment variables of flags itself; this method hides empty ones from it, so that an
    /// empty variable counts as absent.
    pub fn args<A: Parser>(&self, words: impl IntoIterator<Item = OsString>) -> Result<A, clap::Error> {
        let mut command = self.without_empty_variables(A::command());
        let matches = command.try_get_matches_from_mut(words)?;
        A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    fn without_empty_variables(&self, command: Command) -> Command {
        let is_empty = |name: &OsStr| self.0.get(name).is_some_and(|value| value.is_empty());
        command.mut_subcommands(|command| {
            command.mut_args(|flag| {
                if flag.get_env().is_some_and(is_empty) { flag.env(Resettable::Reset) } else { flag }
            })
        })
    }

    /// Returns the sorted names that begin with `prefix` but belong to no flag of `A`, separated by
    /// commas.
    pub fn unknown_variables<A: CommandFactory>(&self, prefix: &str) -> Option<String> {
        let args = A::command();
        let flags = args.get_subcommands().flat_map(|command| command.get_arguments());
        let known: BTreeSet<&OsStr> = flags.filter_map(|flag| flag.get_env()).collect();
        let names = self.0.keys().filter(|name| !known.contains(name.as_os_str()));
        let unknown: Vec<&str> =
            names.filter_map(|name| name.to_str()).filter(|name| name.starts_with(prefix)).collect();
        (!unknown.is_empty()).then(|| unknown.join(", "))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests;
