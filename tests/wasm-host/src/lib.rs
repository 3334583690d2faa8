//! A small proxy-wasm host (ABI 0.2.1) on wasmtime that runs the real filter in the process of the
//! test.
//!
//! The state of a VM is in its store, so that tests can run in parallel without affecting each
//! other. The effects of the filter are recorded in the transcript; tests set faults and the time.
//! Results, statuses and the order of callbacks follow Envoy 1.40 and proxy-wasm-cpp-host, where
//! they were observed with guests that log the results of their calls. The host is stricter than
//! Envoy in one point: a module that imports a call outside the allow-list is rejected when it is
//! loaded, instead of the call returning InternalFailure. The host has no sockets, clock or routes;
//! it calls every callback that the module exports.
//!
//! ```no_run
//! use wasm_host::{Action, Filter, Host, Vm, transcript::headers};
//!
//! let filter = Filter::load()?;
//! let mut vm = Vm::start(&filter, Host::default())?;
//! assert!(vm.configure(b"{}")?);
//! let (context, action) = vm.request(headers([(":method", "GET"), (":path", "/other")]), true)?;
//! assert_eq!(action, Action::Continue);
//! vm.finish(context)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compiled;
mod config;
mod context;
mod fault;
mod guest;
mod header_map;
mod imports;
mod metrics;
pub mod module;
pub mod scenario;
pub mod scenarios;
mod stream;
pub mod transcript;
mod vm;
pub mod wat_guest;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use wasmtime::{Memory, StoreLimits, StoreLimitsBuilder, TypedFunc};

pub use config::FilterFile;
pub use context::{CalloutAnswer, Context, LocalReply};
pub use fault::{Fault, Status};
pub use imports::{ALLOWED, CALLBACKS};
pub use metrics::Metrics;
pub use module::{Filter, LoadError, check_fresh};
pub use vm::{Action, Vm, VmError};

use crate::transcript::{CallCount, Effect, Transcript};

/// A foreign function of the host.
#[derive(Clone, Debug, Default)]
pub struct ForeignFunction {
    /// The status that it returns.
    pub status: Status,
    /// The result for a guest that asks for one; Envoy's `set_envoy_filter_state` has none.
    pub result: Vec<u8>,
}

/// The state of one VM. Tests set the public fields before the start or between two callbacks.
pub struct Host {
    /// Time since the Unix epoch; only the test changes it.
    pub now: Duration,
    /// The known clusters; a callout to another one returns BadArgument.
    pub clusters: BTreeSet<String>,
    /// The known foreign functions, including `set_envoy_filter_state`; others return NotFound.
    pub foreign_functions: BTreeMap<String, ForeignFunction>,
    /// The configuration that `proxy_on_vm_start` reads.
    pub vm_configuration: Vec<u8>,
    /// Limit for one callback, about one unit per instruction; a callback that exceeds it traps.
    pub fuel: u64,
    /// The effects of the filter's calls.
    pub transcript: Transcript,
    /// Counts of the filter's host calls.
    pub calls: CallCount,
    /// The metrics that the filter defined, and their values.
    pub metrics: Metrics,

    /// Internal state of the host, not for tests.
    pub running: Running,
}

/// Internal state of the host while its VM runs.
#[derive(Default)]
pub struct Running {
    faults: fault::Faults,
    contexts: BTreeMap<u32, Context>,
    /// The context for which the callback runs.
    current: u32,
    /// The effective context that the guest has set, until the callback returns.
    effective: Option<u32>,
    /// True while the guest starts or allocates: Envoy then allows it to log, and any other call
    /// traps.
    restricted: bool,
    /// Contexts with an action that is deferred until the callback returns.
    deferred: Vec<(u32, DeferredAction)>,
    /// Callouts in progress: token to root context, to which Envoy delivers the response.
    callouts: BTreeMap<u32, u32>,
    last_token: u32,
    last_context: u32,
    limits: Limits,
    memory: Option<Memory>,
    allocate: Option<TypedFunc<u32, u32>>,
}

/// An action that a call requests and Envoy performs after the callback.
#[derive(Debug)]
enum DeferredAction {
    Reply(LocalReply),
    Reset,
}

/// Far above the needs of a filter; an endless allocation fails here instead of exhausting the
/// memory of the machine.
const MAX_MEMORY: usize = 64 << 20;

struct Limits(StoreLimits);

impl Default for Limits {
    fn default() -> Self {
        Self(StoreLimitsBuilder::new().memory_size(MAX_MEMORY).build())
    }
}

impl Default for Host {
    fn default() -> Self {
        Self {
            now: Duration::from_secs(1_700_000_000),
            clusters: BTreeSet::new(),
            foreign_functions: BTreeMap::from([(
                "set_envoy_filter_state".to_owned(),
                ForeignFunction::default(),
            )]),
            vm_configuration: Vec::new(),
            fuel: 1_000_000_000,
            transcript: Transcript::default(),
            calls: CallCount::default(),
            metrics: Metrics::default(),
            running: Running::default(),
        }
    }
}

impl Host {
    /// Makes every further call of that name fail: `fault("proxy_http_call", Fault::Status(10))`.
    ///
    /// # Panics
    /// If there is no such call, or the fault does not apply to it.
    pub fn fault(&mut self, call: &str, fault: Fault) {
        self.running.faults.plan(call, None, fault);
    }

    /// Makes only the `nth` further call of that name fail, counted from 1.
    ///
    /// # Panics
    /// If there is no such call, or the fault does not apply to it.
    pub fn fault_nth(&mut self, call: &str, nth: u32, fault: Fault) {
        self.running.faults.plan(call, Some(nth), fault);
    }

    pub fn clear_faults(&mut self) {
        self.running.faults = fault::Faults::default();
    }

    /// Returns the token of the newest callout in progress; 0 if there is none.
    pub fn newest_callout(&self) -> u32 {
        self.running.callouts.last_key_value().map_or(0, |(token, _)| *token)
    }

    /// Returns the context to which calls apply: the effective one while it exists, otherwise that
    /// of the callback.
    fn context_id(&self) -> u32 {
        self.running
            .effective
            .filter(|id| self.running.contexts.contains_key(id))
            .unwrap_or(self.running.current)
    }

    fn context(&self) -> Option<&Context> {
        self.running.contexts.get(&self.context_id())
    }

    fn context_mut(&mut self) -> Option<&mut Context> {
        let id = self.context_id();
        self.running.contexts.get_mut(&id)
    }

    /// Returns the root context above [`Host::context_id`], which owns callouts.
    fn root(&self) -> Option<&Context> {
        self.running.contexts.get(&self.context()?.root)
    }

    fn record(&mut self, effect: Effect) {
        self.transcript.push(self.context_id(), effect);
    }
}
