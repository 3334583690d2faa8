//! One VM: started, configured, called. What a request's life looks like is in `stream.rs`.

use std::fmt;

use wasmtime::{Instance, Store, Trap, Val};

use super::context::Context;
use super::{Filter, Host};
use crate::transcript::{LogLevel, Transcript};

/// Why a callback gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The guest trapped: a panic, fuel gone, memory overrun. The VM is dead, as in Envoy.
    #[error("{callback} trapped: {reason}; last log lines: {log:?}")]
    Trap { callback: String, reason: String, log: Vec<(LogLevel, String)> },
    /// Nothing is called in a VM that trapped before.
    #[error("{callback} not called: the VM has trapped before")]
    Dead { callback: String },
    /// `proxy_on_vm_start` answered false.
    #[error("proxy_on_vm_start refused to start")]
    Start,
    /// A callback of Envoy's that the test made out of turn: an unknown or ended stream, a token that is not under way.
    #[error("{callback} for {id}: {reason}")]
    OutOfTurn { callback: &'static str, id: u32, reason: &'static str },
}

/// What a filter answers to a head or a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// 0: goes on to the next filter.
    Continue,
    /// Anything else, and always when the filter replied itself: waits.
    Pause,
}

/// The log lines that a trap's error carries.
const LOG_LINES: usize = 10;

/// A filter in its own memory, as one worker thread of Envoy has it.
pub struct Vm {
    pub(super) store: Store<Host>,
    instance: Instance,
    /// The root that new requests belong to.
    pub(super) root: u32,
    configured: bool,
    dead: bool,
    /// How often the guest trapped.
    pub traps: u32,
}

impl Vm {
    /// Instantiates the filter, creates the first root context, starts the VM.
    ///
    /// # Errors
    /// `Trap` (also for a module without memory or allocator), `Start`.
    pub fn start(filter: &Filter, host: Host) -> Result<Self, VmError> {
        let mut store = Store::new(filter.instance.module().engine(), host);
        store.limiter(|host| &mut host.running.limits.0);
        let fuel = store.data().fuel;
        let instance = store.set_fuel(fuel).and_then(|()| filter.instance.instantiate(&mut store));
        let instance = instance.map_err(|error| trap(&store, "instantiate", &error))?;
        // Envoy's order: the Rust SDK's allocator is called malloc on wasm32-unknown-unknown.
        let allocate = ["malloc", "proxy_on_memory_allocate"]
            .iter()
            .find_map(|name| instance.get_typed_func(&mut store, name).ok());
        let memory = instance.get_memory(&mut store, "memory");
        let (Some(memory), Some(allocate)) = (memory, allocate) else {
            let error = wasmtime::Error::msg("exports = memory, malloc or proxy_on_memory_allocate: missing");
            return Err(trap(&store, "instantiate", &error));
        };
        store.data_mut().running.memory = Some(memory);
        store.data_mut().running.allocate = Some(allocate);
        let mut vm = Self { store, instance, root: 0, configured: false, dead: false, traps: 0 };
        vm.store.data_mut().running.restricted = true;
        let entry = if vm.exports("_initialize") { "_initialize" } else { "_start" };
        vm.invoke(entry, &[])?;
        vm.store.data_mut().running.restricted = false;
        vm.root = vm.create_root(&[])?;
        Ok(vm)
    }

    /// Gives a plugin configuration to the filter: the first one to the root of the start, each later one to a new root
    /// in the same VM, as Envoy does. A root that accepts gets the requests from now on; one that refuses gets none, and
    /// the one before it stays.
    ///
    /// # Errors
    /// `Trap`, `Dead`, `Start`.
    pub fn configure(&mut self, configuration: &[u8]) -> Result<bool, VmError> {
        let root = if self.configured { self.create_root(configuration)? } else { self.root };
        self.configured = true;
        self.context_mut(root).plugin_configuration = Some(configuration.to_vec());
        let answer = self.invoke("proxy_on_configure", &[number(root), size(configuration)]);
        self.context_mut(root).plugin_configuration = None;
        let accepted = answer?.is_none_or(|accepted| accepted != 0);
        if accepted {
            self.root = root;
        }
        Ok(accepted)
    }

    /// The root that new requests belong to.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Calls any export with any numbers, in any order: `call("proxy_on_done", &[99])`. The first one is the context
    /// that the guest's calls then mean. None for an export that is missing, or answers nothing.
    ///
    /// # Errors
    /// `Trap` (also for the wrong number of arguments), `Dead`.
    pub fn call(&mut self, callback: &str, arguments: &[i32]) -> Result<Option<i32>, VmError> {
        let answer = self.invoke(callback, arguments)?;
        self.after_call()?;
        Ok(answer)
    }

    /// Whether the module has that export.
    pub fn exports(&mut self, name: &str) -> bool {
        self.instance.get_export(&mut self.store, name).is_some()
    }

    /// The guest's linear memory, in pages of 64 KiB.
    pub fn memory_pages(&self) -> u64 {
        self.store.data().running.memory.map_or(0, |memory| memory.size(&self.store))
    }

    /// The guest's linear memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_pages() << 16
    }

    /// What the last callback burned, about one unit for each instruction: the same in every run.
    pub fn fuel_used(&self) -> u64 {
        self.store.data().fuel.saturating_sub(self.store.get_fuel().unwrap_or(0))
    }

    /// The host's state.
    pub fn host(&self) -> &Host {
        self.store.data()
    }

    /// The host's state, for faults, the time and the counters.
    pub fn host_mut(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// Bytes of the guest's linear memory; None when they are not all inside.
    pub fn memory(&self, pointer: u32, size: u32) -> Option<&[u8]> {
        let start = usize::try_from(pointer).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.store.data().running.memory?.data(&self.store).get(start..end)
    }

    /// What the filter did so far.
    pub fn transcript(&self) -> &Transcript {
        &self.store.data().transcript
    }

    pub(super) fn new_context(&mut self, root: Option<u32>) -> u32 {
        let host = self.store.data_mut();
        host.running.last_context += 1;
        let id = host.running.last_context;
        host.running.contexts.insert(id, Context { root: root.unwrap_or(id), ..Context::default() });
        id
    }

    /// Runs one callback. What it asked for is still to be done.
    pub(super) fn invoke(&mut self, callback: &str, arguments: &[i32]) -> Result<Option<i32>, VmError> {
        if self.dead {
            return Err(VmError::Dead { callback: callback.to_owned() });
        }
        let Some(function) = self.instance.get_func(&mut self.store, callback) else { return Ok(None) };
        let host = self.store.data_mut();
        host.running.current = arguments.first().map_or(0, |context| context.cast_unsigned());
        host.running.effective = None;
        let fuel = host.fuel;
        let arguments: Vec<Val> = arguments.iter().map(|argument| Val::I32(*argument)).collect();
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        let done =
            self.store.set_fuel(fuel).and_then(|()| function.call(&mut self.store, &arguments, &mut results));
        if let Err(error) = done {
            self.dead = true;
            self.traps += 1;
            return Err(trap(&self.store, callback, &error));
        }
        Ok(results.first().and_then(Val::i32))
    }

    fn create_root(&mut self, configuration: &[u8]) -> Result<u32, VmError> {
        let root = self.new_context(None);
        self.context_mut(root).plugin_configuration = Some(configuration.to_vec());
        let created = self.invoke("proxy_on_context_create", &[number(root), 0]);
        self.context_mut(root).plugin_configuration = None;
        created?;
        let vm_configuration = size(&self.store.data().vm_configuration);
        match self.invoke("proxy_on_vm_start", &[number(root), vm_configuration])? {
            Some(0) => Err(VmError::Start),
            _ => Ok(root),
        }
    }

    fn context_mut(&mut self, id: u32) -> &mut Context {
        self.store.data_mut().running.contexts.entry(id).or_default()
    }
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vm").field("root", &self.root).field("traps", &self.traps).finish_non_exhaustive()
    }
}

/// An id as the guest takes it.
pub(super) fn number(id: u32) -> i32 {
    id.cast_signed()
}

/// A length as the guest takes it.
pub(super) fn size<T>(items: &[T]) -> i32 {
    i32::try_from(items.len()).expect("less than 2 GiB")
}

fn trap(store: &Store<Host>, callback: &str, error: &wasmtime::Error) -> VmError {
    let reason = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => format!("out of fuel after {} units: an endless loop?", store.data().fuel),
        _ => error.root_cause().to_string(),
    };
    let mut log = store.data().transcript.log();
    let log = log.split_off(log.len().saturating_sub(LOG_LINES));
    VmError::Trap { callback: callback.to_owned(), reason, log }
}

#[cfg(test)]
mod tests;
