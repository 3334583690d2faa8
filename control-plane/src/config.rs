//! From arguments and environment to checked values; the only file that reads the environment.

mod discovery;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::{Args, Color, FormatArg, InjectArgs, WebhookArgs};
use injector::flags::SettingsArgs;
use injector::settings::Settings;
use injector::stream::Format;
use serving::exit::Failure;

pub use discovery::{DiscoveryConfig, Output, StoreConfig, WorkloadsConfig};

/// The namespace of this Pod, by the downward API.
const POD_NAMESPACE: &str = "POD_NAMESPACE";
/// The namespace of the shipped manifests.
const NAMESPACE: &str = "app-health-system";
/// Set to anything: no colours (<https://no-color.org>).
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

/// Reads and checks the template, and the values that fit together.
fn settings(args: SettingsArgs) -> Result<Settings, Failure> {
    let text = args.template.as_deref().map(read_template).transpose()?;
    check(args, text.as_deref())
}

/// [`SettingsArgs::check`], as an exit code.
fn check(args: SettingsArgs, template: Option<&str>) -> Result<Settings, Failure> {
    args.check(template).map_err(Failure::Settings)
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
            settings: self::settings(settings)?,
            filenames: filename,
            recursive,
            target,
            format,
            strict,
        })
    }
}

/// The template's file, and how to make settings of it again.
#[derive(Debug, Clone)]
pub struct TemplateFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it held at first.
    pub text: String,
    args: SettingsArgs,
}

impl TemplateFile {
    /// The settings with another text in the file.
    pub fn settings(&self, text: &str) -> Result<Settings, Failure> {
        check(self.args.clone(), Some(text))
    }
}

/// A certificate that somebody else makes.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// With tls.crt and tls.key.
    pub directory: PathBuf,
    /// Who signs client certificates; absent: none are asked for.
    pub client_ca: Option<PathBuf>,
    /// The name that a client must have.
    pub client_name: Option<String>,
}

/// A certificate of our own.
#[derive(Debug, Clone)]
pub struct SelfSigned {
    /// What it is good for: `<service>.<namespace>.svc`.
    pub names: Vec<String>,
    /// As in [`CertificateFiles`].
    pub client_ca: Option<PathBuf>,
    /// As in [`CertificateFiles`].
    pub client_name: Option<String>,
}

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Certificates {
    /// From files.
    Files(CertificateFiles),
    /// From a CA in a Secret.
    SelfSigned(SelfSigned),
}

/// What `webhook` does.
#[derive(Debug)]
pub struct WebhookConfig {
    /// How Pods are injected.
    pub settings: Settings,
    /// Present: the template may change.
    pub template: Option<TemplateFile>,
    /// Of the reviews.
    pub address: SocketAddr,
    /// Of metrics and health.
    pub monitoring_address: SocketAddr,
    /// Of the reviews' server.
    pub certificates: Certificates,
    /// This Pod's namespace, and the name of the webhook's configuration.
    pub cluster: (String, String),
    /// How long a terminating webhook goes on accepting.
    pub shutdown_grace: Duration,
}

impl WebhookConfig {
    /// Reads the template; certificates are read later.
    pub fn new(args: WebhookArgs, environment: &Environment) -> Result<Self, Failure> {
        let WebhookArgs {
            mut settings,
            address,
            monitoring_address,
            cert_dir,
            client_ca,
            client_name,
            webhook_config,
            service,
            namespace,
            shutdown_grace,
        } = args;
        let of_pod = environment.get(POD_NAMESPACE).and_then(OsStr::to_str).map(str::to_owned);
        let namespace = namespace.or(of_pod).unwrap_or_else(|| NAMESPACE.to_owned());
        settings.ignored_namespaces.push(namespace.clone());
        let certificates = match cert_dir {
            Some(directory) => Certificates::Files(CertificateFiles { directory, client_ca, client_name }),
            None => {
                let name = format!("{service}.{namespace}.svc");
                let names =
                    vec![name.clone(), format!("{name}.cluster.local"), format!("{service}.{namespace}")];
                Certificates::SelfSigned(SelfSigned { names, client_ca, client_name })
            }
        };
        let (settings, template) = match settings.template.clone() {
            None => (check(settings, None)?, None),
            Some(path) => {
                let text = read_template(&path)?;
                let file = TemplateFile { path, text, args: settings };
                (file.settings(&file.text)?, Some(file))
            }
        };
        Ok(Self {
            settings,
            template,
            address,
            monitoring_address,
            certificates,
            cluster: (namespace, webhook_config),
            shutdown_grace,
        })
    }
}
