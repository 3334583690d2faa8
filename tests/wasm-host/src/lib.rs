//! A small proxy-wasm host (ABI 0.2.1) on wasmtime, which runs the real filter in the test's own process.
//!
//! Here is the state of one VM, all of it in its store: tests run in parallel and see nothing of one another. What the
//! filter does goes to the transcript; faults and the time are data that the test sets. Answers, statuses and the
//! order of things follow Envoy 1.40 and proxy-wasm-cpp-host (seen there with guests that log what they are answered).
//! Stricter than Envoy in one point: a call outside the allow-list is refused at load, not answered InternalFailure. No
//! socket, no clock and no route is here; every callback that the module exports is called.
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

mod config;
mod context;
mod fault;
mod guest;
mod imports;
pub mod kit;
pub mod life;
pub mod lives;
mod metrics;
pub mod module;
mod pairs;
mod stream;
pub mod transcript;
mod vm;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use wasmtime::{Memory, StoreLimits, StoreLimitsBuilder, TypedFunc};

pub use config::FilterFile;
pub use context::{CalloutAnswer, Context, LocalReply};
pub use fault::{Fault, Status};
pub use imports::ALLOWED;
pub use metrics::Metrics;
pub use module::{Filter, LoadError, check_fresh};
pub use vm::{Action, Vm, VmError};

use crate::transcript::{CallCount, Effect, Transcript};

/// A foreign function of the host: the status that it answers, and its result.
#[derive(Clone, Debug, Default)]
pub struct ForeignFunction {
    /// What it answers.
    pub status: Status,
    /// Handed to a guest that asks for a result; Envoy's `set_envoy_filter_state` has none.
    pub result: Vec<u8>,
}

/// The state of one VM. The public fields are the test's to set, before the start or between two callbacks.
pub struct Host {
    /// Time since the Unix epoch; it moves only when the test moves it.
    pub now: Duration,
    /// Clusters that exist: a callout to another one is answered BadArgument.
    pub clusters: BTreeSet<String>,
    /// Foreign functions that exist: another one is answered NotFound. `set_envoy_filter_state` does.
    pub foreign_functions: BTreeMap<String, ForeignFunction>,
    /// What `proxy_on_vm_start` reads.
    pub vm_configuration: Vec<u8>,
    /// What one callback may burn, about one unit for each instruction; beyond it the callback traps.
    pub fuel: u64,
    /// What the filter did.
    pub transcript: Transcript,
    /// How often the filter called the host.
    pub calls: CallCount,
    /// The metrics that the filter defined, and their values.
    pub metrics: Metrics,

    /// The host's own bookkeeping: nothing in it is a test's.
    pub running: Running,
}

/// What the host keeps for itself while its VM runs.
#[derive(Default)]
pub struct Running {
    faults: fault::Faults,
    contexts: BTreeMap<u32, Context>,
    /// The context that the running callback was made for.
    current: u32,
    /// The one that the guest chose instead, until the callback ends.
    effective: Option<u32>,
    /// While the guest starts or allocates: Envoy lets it log then, and makes any other call trap.
    restricted: bool,
    /// Contexts with something that takes effect after the callback.
    after_call: Vec<(u32, AfterCall)>,
    /// Callouts under way: token -> root context, which is the one that Envoy gives the answer to.
    callouts: BTreeMap<u32, u32>,
    last_token: u32,
    last_context: u32,
    limits: Limits,
    memory: Option<Memory>,
    allocate: Option<TypedFunc<u32, u32>>,
}

/// What a call asked for and Envoy does when the callback has returned.
#[derive(Debug)]
enum AfterCall {
    Reply(LocalReply),
    Reset,
}

/// No filter comes near; an allocation without end fails here instead of eating the machine.
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
    /// Lets every coming call of that name fail: `fault("proxy_http_call", Fault::Status(10))`.
    ///
    /// # Panics
    /// If there is no such call, or the fault means nothing to it.
    pub fn fault(&mut self, call: &str, fault: Fault) {
        self.running.faults.plan(call, None, fault);
    }

    /// Lets the `nth` coming call of that name fail, counted from 1, and no other.
    ///
    /// # Panics
    /// If there is no such call, or the fault means nothing to it.
    pub fn fault_nth(&mut self, call: &str, nth: u32, fault: Fault) {
        self.running.faults.plan(call, Some(nth), fault);
    }

    /// Takes all faults back.
    pub fn clear_faults(&mut self) {
        self.running.faults = fault::Faults::default();
    }

    /// The token of the newest callout under way; 0 for none.
    pub fn newest_callout(&self) -> u32 {
        self.running.callouts.last_key_value().map_or(0, |(token, _)| *token)
    }

    /// The context that a call means: the effective one while it exists, else the one of the callback.
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

    /// The root above the context that a call means: the owner of callouts.
    fn root(&self) -> Option<&Context> {
        self.running.contexts.get(&self.context()?.root)
    }

    fn record(&mut self, effect: Effect) {
        self.transcript.push(self.context_id(), effect);
    }
}
