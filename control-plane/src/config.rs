//! From arguments and environment to checked values; the only file that reads the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::{Args, Color, FormatArg, InjectArgs, SettingsArgs};
use crate::exit::Failure;
use crate::inject::settings::{Settings, may_be_status_port};
use crate::inject::stream::Format;
use crate::inject::template::Template;

/// Set to anything: no colours (https://no-color.org).
const NO_COLOR: &str = "NO_COLOR";

/// The process' environment as a value, so that tests have their own.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The real one.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// `name`'s value; an empty one counts as absent.
    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The command line of this process. clap reads the flags' twins itself; here those that are empty are hidden from it, so that an empty
    /// one counts as absent.
    pub fn args_of_process(&self) -> Result<Args, clap::Error> {
        let mut command = self.without_empty_twins(Args::command());
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    fn without_empty_twins(&self, command: Command) -> Command {
        let is_empty = |name: &OsStr| self.0.get(name).is_some_and(|value| value.is_empty());
        command.mut_subcommands(|command| {
            command.mut_args(|flag| {
                if flag.get_env().is_some_and(is_empty) { flag.env(Resettable::Reset) } else { flag }
            })
        })
    }
}

impl Settings {
    /// Reads and checks the template, and the values that fit together.
    pub fn new(args: SettingsArgs) -> Result<Self, Failure> {
        let text = args.template.as_deref().map(read_template).transpose()?;
        Self::with_template(args, text.as_deref())
    }

    /// The same with the text of the template; `None` is the built-in one.
    pub fn with_template(args: SettingsArgs, text: Option<&str>) -> Result<Self, Failure> {
        let SettingsArgs {
            sidecar_name,
            mode,
            template: _, // `text`
            image,
            sidecar_mode,
            hold,
            rewrite_probes,
            status_port,
            ignored_namespaces,
        } = args;
        let name = sidecar_name.as_bytes();
        let label = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        if name.is_empty() || name.len() > 63 || !name.iter().all(label) {
            return Err(Failure::Settings(format!(
                "--sidecar-name = {sidecar_name:?}: must be a container's name"
            )));
        }
        if status_port != 0 && !may_be_status_port(status_port) {
            return Err(Failure::Settings(format!(
                "--status-port = {status_port}: is another port of the proxy"
            )));
        }
        let template = match text {
            None => Template::built_in(&sidecar_name, image.as_deref()),
            Some(text) => Template::parse(text, &sidecar_name, image.as_deref()),
        };
        let template = template.map_err(|error| Failure::Settings(error.to_string()))?;
        Ok(Self {
            sidecar_name,
            mode,
            template,
            sidecar_mode,
            hold,
            rewrite_probes,
            status_port,
            ignored_namespaces,
        })
    }
}

fn read_template(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| Failure::Settings(format!("--template = {}: {error}", file.display())))
}

/// What `inject` does with what it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// All documents to stdout.
    Stdout,
    /// All documents to this file.
    File(PathBuf),
    /// Each file gets its own back.
    InPlace,
    /// Nothing is written; differences to stdout, perhaps in colour.
    Diff(bool),
    /// Nothing is written; a line for each document to stdout.
    DryRun,
}

/// What `inject` does.
#[derive(Debug)]
pub struct InjectConfig {
    /// How Pods are injected.
    pub settings: Settings,
    /// Files, directories, `-`.
    pub filenames: Vec<PathBuf>,
    /// Directories with their subdirectories.
    pub recursive: bool,
    /// Where it goes.
    pub target: Target,
    /// Absent: each document as it came.
    pub format: Option<Format>,
    /// A warning is an error.
    pub strict: bool,
}

impl InjectConfig {
    /// Refuses what cannot go together.
    pub fn new(args: InjectArgs, environment: &Environment) -> Result<Self, Failure> {
        let InjectArgs {
            settings,
            filename,
            recursive,
            output,
            in_place,
            format,
            diff,
            color,
            dry_run,
            strict,
        } = args;
        let colored = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => environment.get(NO_COLOR).is_none() && std::io::stdout().is_terminal(),
        };
        let target = match (output, in_place, diff, dry_run) {
            (Some(file), ..) => Target::File(file),
            (None, true, ..) => Target::InPlace,
            (None, _, true, _) => Target::Diff(colored),
            (None, _, _, true) => Target::DryRun,
            (None, ..) => Target::Stdout,
        };
        if target == Target::InPlace && filename.iter().any(|name| name == Path::new("-")) {
            return Err(Failure::Usage(
                "--in-place: stdin has no place; name files with --filename".to_owned(),
            ));
        }
        let format = match format {
            FormatArg::Auto => None,
            FormatArg::Yaml => Some(Format::Yaml),
            FormatArg::Json => Some(Format::Json),
        };
        Ok(Self {
            settings: Settings::new(settings)?,
            filenames: filename,
            recursive,
            target,
            format,
            strict,
        })
    }
}
