//! Validated configuration of `lint`.

use std::path::PathBuf;

use crate::args::lint::{LintArgs, LintFormat};
use lint::Options;
use serving::exit::Failure;

/// Configuration of `lint`.
#[derive(Debug)]
pub struct LintConfig {
    pub input: LintInput,
    pub options: Options,
    pub format: LintFormat,
    /// Whether a warning fails the command.
    pub strict: bool,
}

/// The documents that are linted: files, directories or a cluster.
#[derive(Debug, PartialEq, Eq)]
pub enum LintInput {
    Files {
        /// Files, directories, or `-` for stdin.
        filenames: Vec<PathBuf>,
        /// Directories that are read with their subdirectories.
        directories: Vec<PathBuf>,
    },
    Cluster(Scope),
}

/// Which objects of a cluster are linted.
#[derive(Debug, PartialEq, Eq)]
pub enum Scope {
    /// `None` is the namespace of the kubeconfig.
    Namespace(Option<String>),
    AllNamespaces,
}

impl LintConfig {
    /// Validates the flags and reads the template.
    pub fn new(args: LintArgs) -> Result<Self, Failure> {
        let LintArgs {
            filename,
            recursive,
            cluster,
            namespace,
            all_namespaces,
            format,
            strict,
            expect_pause,
            settings,
            kinds,
        } = args;
        let input = match (cluster, all_namespaces) {
            (true, true) => LintInput::Cluster(Scope::AllNamespaces),
            (true, false) => {
                if let Some(name) = namespace.as_deref().filter(|name| !is_namespace(name)) {
                    return Err(Failure::Usage(format!(
                        "--namespace = {name:?}: must contain only lower-case letters, digits and '-'"
                    )));
                }
                LintInput::Cluster(Scope::Namespace(namespace))
            }
            (false, _) if filename.is_empty() && recursive.is_empty() => {
                LintInput::Files { filenames: vec![PathBuf::from("-")], directories: recursive }
            }
            (false, _) => LintInput::Files { filenames: filename, directories: recursive },
        };
        let options = Options { settings: super::settings(settings)?, kinds: kinds.kinds(), expect_pause };
        Ok(Self { input, options, format, strict })
    }
}

fn is_namespace(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
