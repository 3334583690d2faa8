//! Turns arguments and environment variables into validated configuration.

mod discovery;
mod explain;
mod lint;

use std::ffi::OsStr;
use std::fs;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use address::Cidr;

use crate::args::{Color, FormatArg, InjectArgs, WebhookArgs};
use injector::flags::SettingsArgs;
use injector::kinds::Kinds;
use injector::settings::Settings;
use injector::yaml_documents::Format;
use serving::environment::Environment;
use serving::exit::Failure;

pub use discovery::WorkloadsConfig;
pub use explain::ExplainConfig;
pub use lint::{LintConfig, LintInput, Scope};

/// Name of the variable that holds this Pod's namespace, set through the downward API.
const POD_NAMESPACE: &str = "POD_NAMESPACE";
/// Namespace of the shipped manifests.
const NAMESPACE: &str = "app-health-system";
/// Any value disables colors (<https://no-color.org>).
const NO_COLOR: &str = "NO_COLOR";

/// Reads the template and validates the combination of values.
fn settings(args: SettingsArgs) -> Result<Settings, Failure> {
    let text = args.template.as_deref().map(read_template).transpose()?;
    check(args, text.as_deref())
}

fn check(args: SettingsArgs, template: Option<&str>) -> Result<Settings, Failure> {
    args.check(template).map_err(Failure::Settings)
}

fn read_template(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| Failure::Settings(format!("--template = {}: {error}", file.display())))
}

/// The destination of the result of `inject`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTarget {
    Stdout,
    File(PathBuf),
    /// Each input file is overwritten with its own documents.
    InPlace,
    /// Nothing is written; the diff goes to stdout, colorized if true.
    Diff(bool),
    /// Nothing is written; one line for each document goes to stdout.
    DryRun,
}

/// Configuration of `inject`.
#[derive(Debug)]
pub struct InjectConfig {
    pub settings: Settings,
    pub kinds: Kinds,
    /// Files, directories, or `-` for stdin.
    pub filenames: Vec<PathBuf>,
    /// Whether subdirectories are included.
    pub recursive: bool,
    pub target: OutputTarget,
    /// Output format; `None` keeps the format of each document.
    pub format: Option<Format>,
    /// Whether a warning counts as an error.
    pub strict: bool,
}

impl InjectConfig {
    /// Rejects flags that cannot be combined.
    pub fn new(args: InjectArgs, environment: &Environment) -> Result<Self, Failure> {
        let InjectArgs {
            settings,
            kinds,
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
            (Some(file), ..) => OutputTarget::File(file),
            (None, true, ..) => OutputTarget::InPlace,
            (None, _, true, _) => OutputTarget::Diff(colored),
            (None, _, _, true) => OutputTarget::DryRun,
            (None, ..) => OutputTarget::Stdout,
        };
        if target == OutputTarget::InPlace && filename.iter().any(|name| name == Path::new("-")) {
            return Err(Failure::Usage(
                "--in-place: cannot be used with stdin; name files with --filename".to_owned(),
            ));
        }
        let format = match format {
            FormatArg::Auto => None,
            FormatArg::Yaml => Some(Format::Yaml),
            FormatArg::Json => Some(Format::Json),
        };
        Ok(Self {
            settings: self::settings(settings)?,
            kinds: kinds.kinds(),
            filenames: filename,
            recursive,
            target,
            format,
            strict,
        })
    }
}

/// File of the sidecar template, with the arguments that are needed to build the settings again.
#[derive(Debug, Clone)]
pub struct TemplateFile {
    pub path: PathBuf,
    /// Content of the file at startup.
    pub text: String,
    args: SettingsArgs,
}

impl TemplateFile {
    /// Builds the settings with new content of the file.
    pub fn settings(&self, text: &str) -> Result<Settings, Failure> {
        check(self.args.clone(), Some(text))
    }
}

/// Certificate files that are managed outside of this process.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// Contains tls.crt and tls.key.
    pub directory: PathBuf,
    /// CA of client certificates; `None`: no client certificate is requested.
    pub client_ca: Option<PathBuf>,
    /// Common name or subject alternative name that a client certificate must have.
    pub client_name: Option<String>,
}

/// A certificate that this process issues itself.
#[derive(Debug, Clone)]
pub struct SelfSigned {
    /// DNS names of the certificate: `<service>.<namespace>.svc` and variants.
    pub names: Vec<String>,
    /// See [`CertificateFiles`].
    pub client_ca: Option<PathBuf>,
    /// See [`CertificateFiles`].
    pub client_name: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Certificates {
    Files(CertificateFiles),
    /// Signed by a CA that is stored in a Secret.
    SelfSigned(SelfSigned),
}

impl Certificates {
    pub fn client_ca(&self) -> Option<&Path> {
        match self {
            Self::Files(files) => files.client_ca.as_deref(),
            Self::SelfSigned(own) => own.client_ca.as_deref(),
        }
    }
}

/// Configuration of `webhook`.
#[derive(Debug)]
pub struct WebhookConfig {
    pub settings: Settings,
    /// Present if the template comes from a file, which is then reloaded on changes.
    pub template: Option<TemplateFile>,
    /// Address of the HTTPS server.
    pub address: SocketAddr,
    /// Address of metrics and health.
    pub monitoring_address: SocketAddr,
    pub certificates: Certificates,
    /// Addresses of the API servers, if they are known.
    pub api_server_addresses: Vec<Cidr>,
    /// This Pod's namespace.
    pub namespace: String,
    /// Name of the MutatingWebhookConfiguration.
    pub webhook_configuration: String,
    /// How long connections are still accepted after SIGTERM.
    pub shutdown_grace: Duration,
}

impl WebhookConfig {
    /// Validates the flags and reads the template. Certificates are read later.
    pub fn new(args: WebhookArgs, environment: &Environment) -> Result<Self, Failure> {
        let WebhookArgs {
            mut settings,
            address,
            monitoring_address,
            cert_dir,
            client_ca,
            client_name,
            api_server_address,
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
            api_server_addresses: api_server_address,
            namespace,
            webhook_configuration: webhook_config,
            shutdown_grace,
        })
    }
}
