//! One VM: its start, its configuration and its calls. The events of a request are in `stream.rs`.

use std::fmt;

use wasmtime::{Error, Instance, Store, Trap, Val};

use super::context::Context;
use super::{CALLBACKS, Filter, Host};
use crate::transcript::{LogLevel, Transcript};

/// Why a callback returned no result.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The guest trapped: a panic, no fuel, or an invalid memory access. The VM cannot be used any
    /// more, as in Envoy.
    #[error("{callback} trapped: {reason}; last log lines: {log:?}")]
    Trap { callback: String, reason: String, log: Vec<(LogLevel, String)> },
    /// The VM has trapped before and cannot be called.
    #[error("{callback} not called: the VM has trapped before")]
    Dead { callback: String },
    /// `proxy_on_vm_start` returned false.
    #[error("proxy_on_vm_start returned false")]
    Start,
    /// A callback that Envoy would not make: for an unknown or ended stream, or a token that is not
    /// in progress.
    #[error("{callback} for {id}: {reason}")]
    OutOfTurn { callback: &'static str, id: u32, reason: &'static str },
}

/// The action that a filter returns for headers or a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// 0: continue with the next filter.
    Continue,
    /// Any other value, and always after a local reply: wait.
    Pause,
}

/// Number of log lines in the error of a trap.
const LOG_LINES: usize = 10;

/// A filter with its own memory, as one worker thread of Envoy has it.
pub struct Vm {
    pub(super) store: Store<Host>,
    instance: Instance,
    /// The root context of new requests.
    pub(super) root: u32,
    configured: bool,
    dead: bool,
    /// The number of traps.
    pub traps: u32,
}

impl Vm {
    /// Instantiates the filter, creates the first root context, and starts the VM.
    ///
    /// # Errors
    /// `Trap` (also for a module without memory or allocator), `Start`.
    pub fn start(filter: &Filter, host: Host) -> Result<Self, VmError> {
        let mut store = Store::new(filter.module.engine(), host);
        store.limiter(|host| &mut host.running.limits.0);
        let fuel = store.data().fuel;
        let instance =
            store.set_fuel(fuel).and_then(|()| filter.linker.instantiate(&mut store, &filter.module));
        let instance = instance.map_err(|error| trap(&store, "instantiate", &error))?;
        // This is Envoy's order; the allocator of the Rust SDK is called malloc on
        // wasm32-unknown-unknown.
        let allocate = ["malloc", "proxy_on_memory_allocate"]
            .iter()
            .find_map(|name| instance.get_typed_func(&mut store, name).ok());
        let memory = instance.get_memory(&mut store, "memory");
        let (Some(memory), Some(allocate)) = (memory, allocate) else {
            let error = Error::msg("exports = memory, malloc or proxy_on_memory_allocate: missing");
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

    /// Configures the filter as Envoy does: the first plugin configuration goes to the first root
    /// context, each later one to a new root context in the same VM. If a root context accepts, it
    /// receives new requests; otherwise the previous one continues to receive them.
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

    pub fn root(&self) -> u32 {
        self.root
    }

    /// Calls any export with any arguments, in any order: `call("proxy_on_delete", &[99])`. The first
    /// argument is also the current context of the guest's calls. Returns `None` if the export is
    /// missing or has no result.
    ///
    /// # Errors
    /// `Trap` (also for the wrong number of arguments), `Dead`.
    pub fn call(&mut self, callback: &str, arguments: &[i32]) -> Result<Option<i32>, VmError> {
        let answer = self.invoke(callback, arguments)?;
        self.run_deferred()?;
        Ok(answer)
    }

    /// Returns whether the module has that export.
    pub fn exports(&mut self, name: &str) -> bool {
        self.instance.get_export(&mut self.store, name).is_some()
    }

    /// Returns the size of the guest's linear memory, in pages of 64 KiB.
    pub fn memory_pages(&self) -> u64 {
        self.store.data().running.memory.map_or(0, |memory| memory.size(&self.store))
    }

    /// Returns the size of the guest's linear memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_pages() << 16
    }

    /// Returns the fuel that the last callback used, about one unit per instruction; equal in every
    /// run.
    pub fn fuel_used(&self) -> u64 {
        self.store.data().fuel.saturating_sub(self.store.get_fuel().unwrap_or(0))
    }

    pub fn host(&self) -> &Host {
        self.store.data()
    }

    /// Returns the host's state, to set faults, time and counters.
    pub fn host_mut(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// Returns bytes of the guest's linear memory; `None` if any are outside.
    pub fn memory(&self, pointer: u32, size: u32) -> Option<&[u8]> {
        let start = usize::try_from(pointer).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.store.data().running.memory?.data(&self.store).get(start..end)
    }

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

    /// Runs one callback. The actions that it requested are not performed yet.
    pub(super) fn invoke(&mut self, callback: &str, arguments: &[i32]) -> Result<Option<i32>, VmError> {
        if self.dead {
            return Err(VmError::Dead { callback: callback.to_owned() });
        }
        if callback.starts_with("proxy_on_") && !CALLBACKS.contains(&callback) {
            return Ok(None);
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

/// Converts an ID for the guest.
pub(super) fn number(id: u32) -> i32 {
    id.cast_signed()
}

/// Converts a length for the guest.
pub(super) fn size<T>(items: &[T]) -> i32 {
    i32::try_from(items.len()).expect("less than 2 GiB")
}

fn trap(store: &Store<Host>, callback: &str, error: &Error) -> VmError {
    let reason = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            format!("out of fuel after {} units: an endless loop?", store.data().fuel)
        }
        _ => error.root_cause().to_string(),
    };
    let mut log = store.data().transcript.log();
    let log = log.split_off(log.len().saturating_sub(LOG_LINES));
    VmError::Trap { callback: callback.to_owned(), reason, log }
}

#[cfg(test)]
mod tests;
