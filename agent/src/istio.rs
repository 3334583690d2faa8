//! The commands of Istio's agent: `proxy`, `request`, and those that it executes itself.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use istio_agent::contract::{Contract, NotOurs};
use istio_agent::stock_agent::{self, FALLBACK, NAME, OFF, STOCK_AGENT};

use crate::app;
use crate::args::{Fallback, ProxyArgs};
use crate::config::istio_sidecar::write_bootstrap;
use crate::config::{Environment, RunConfig};
use agent_output::exit::{self, Failure};
use agent_output::stderr;

const PATH: &str = "PATH";
/// The version of Istio if neither the environment nor its agent says one.
const UNKNOWN_VERSION: &str = "unknown";
/// Commands of Istio's agent that have a counterpart here.
const COMMANDS: [&str; 3] = ["proxy", "request", "wait"];

/// Runs in the place of Istio's agent.
///
/// # Errors
/// What ended the agent, or why neither it nor Istio's agent can run.
pub fn proxy(args: ProxyArgs, environment: &Environment) -> Result<(), Failure> {
    let ProxyArgs { stock_agent, fallback, words } = args;
    let stock = StockAgent { given: stock_agent, fallback };
    let folder =
        std::fs::canonicalize(".").map_err(|error| Failure::Os(format!("working directory: {error}")))?;
    match sidecar(&words, environment, &folder, &stock) {
        Ok(config) => app::run(config),
        Err(Refusal::Failed(failure)) => Err(failure),
        Err(Refusal::NotOurs(reason)) => {
            let words: Vec<String> = std::iter::once("proxy".to_owned()).chain(words).collect();
            Err(stock.execute(&reason, &words, environment))
        }
    }
}

/// Why there is no sidecar.
enum Refusal {
    /// Istio's agent has to run.
    NotOurs(NotOurs),
    /// Istio's agent would not run either.
    Failed(Failure),
}

impl From<NotOurs> for Refusal {
    fn from(reason: NotOurs) -> Self {
        Self::NotOurs(reason)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Reads the configuration. It needs the bootstrap to be a file, which is written before.
fn sidecar(
    words: &[String],
    environment: &Environment,
    folder: &Path,
    stock: &StockAgent,
) -> Result<RunConfig, Refusal> {
    let version = || {
        let stock = stock.find(environment).ok();
        stock.and_then(|stock| stock_agent::version(&stock)).unwrap_or_else(|| UNKNOWN_VERSION.to_owned())
    };
    let contract = Contract::read(words, environment.texts(), folder, version)?;
    write_bootstrap(&contract)?;
    let mut config = RunConfig::of_istio(&contract, environment)?;
    if contract.sources.istio_version == UNKNOWN_VERSION {
        config.warnings.push(
            "the version of Istio is unknown, so that istiod sends configuration for the newest Envoy; set \
             ISTIO_META_ISTIO_VERSION"
                .to_owned(),
        );
    }
    Ok(config)
}

/// Executes Istio's agent if this program was called by its name, with a command that only it has.
pub fn exec_other_commands(environment: &Environment) -> Option<Failure> {
    let mut words = Environment::words();
    let is_called =
        words.next().is_some_and(|program| Path::new(&program).file_name() == Some(OsStr::new(NAME)));
    let words: Vec<String> = words.map(lossy).collect();
    let command = words.first().map(String::as_str).unwrap_or_default();
    if !is_called || COMMANDS.contains(&command) {
        return None;
    }
    let reason = NotOurs::Invalid(format!("{NAME} {command}: only Istio's agent has this command"));
    let is_off = environment.get(FALLBACK) == Some(OsStr::new(OFF));
    let fallback = if is_off { Fallback::Off } else { Fallback::On };
    let given = environment.get(STOCK_AGENT).map(PathBuf::from);
    Some(StockAgent { given, fallback }.execute(&reason, &words, environment))
}

fn lossy(word: OsString) -> String {
    word.to_string_lossy().into_owned()
}

/// Istio's agent.
struct StockAgent {
    /// Its path, if it is not looked up.
    given: Option<PathBuf>,
    fallback: Fallback,
}

impl StockAgent {
    fn find(&self, environment: &Environment) -> Result<PathBuf, String> {
        stock_agent::find(self.given.as_deref(), environment.get(PATH).unwrap_or_default())
    }

    /// Executes the agent in our place. Returns only if that is not possible.
    fn execute(&self, reason: &NotOurs, words: &[String], environment: &Environment) -> Failure {
        if self.fallback == Fallback::Off {
            return Failure::Usage(format!(
                "{reason}; {FALLBACK} = {OFF}, so that Istio's agent is not executed"
            ));
        }
        let program = match self.find(environment) {
            Ok(program) => program,
            Err(error) => return Failure::Usage(format!("{reason}; Istio's agent is not executed: {error}")),
        };
        exit::stderr_line(&format!("{reason}; executing {}", program.display()));
        // Lines that are still queued would be lost.
        stderr::flush();
        let error = stock_agent::exec(&program, words);
        Failure::NotExecutable(format!("{}: {error}", program.display()))
    }
}
