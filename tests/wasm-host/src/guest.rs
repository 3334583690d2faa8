//! The guest as a host call accesses it: its memory, its allocator, and the fault that the test
//! planned for this call.

use wasmtime::{AsContext, AsContextMut, Caller, Error, Memory};

use super::Host;
use super::fault::{Fault, Status};

pub(super) struct Guest<'a> {
    caller: Caller<'a, Host>,
    fault: Option<Fault>,
}

/// Why a call was not performed: a status for the guest, or an error that ends its VM.
pub(super) enum CallError {
    Status(Status),
    Trap(Error),
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Trap(error)
    }
}

/// Runs one host call: counts it, applies a planned fault, and converts the result into the status
/// for the guest.
pub(super) fn call<'a>(
    mut caller: Caller<'a, Host>,
    name: &'static str,
    work: impl FnOnce(&mut Guest<'a>) -> Result<(), CallError>,
) -> Result<u32, Error> {
    let host = caller.data_mut();
    host.calls.add(name);
    if host.running.restricted && name != "proxy_log" {
        return Err(Error::msg(format!(
            "{name} called while starting or allocating, when only proxy_log is allowed"
        )));
    }
    let fault = host.running.faults.next(name);
    match fault {
        Some(Fault::Status(status)) => return Ok(status),
        Some(Fault::Trap) => return Err(Error::msg(format!("planned trap in {name}"))),
        _ => {}
    }
    match work(&mut Guest { caller, fault }) {
        Ok(()) => Ok(Status::Ok as u32),
        Err(CallError::Status(status)) => Ok(status as u32),
        Err(CallError::Trap(error)) => Err(error),
    }
}

impl Guest<'_> {
    pub(super) fn host(&mut self) -> &mut Host {
        self.caller.data_mut()
    }

    /// Reads bytes of the guest's memory; InvalidMemoryAccess if any are outside.
    pub(super) fn read(&self, pointer: u32, size: u32) -> Result<Vec<u8>, CallError> {
        let memory = self.memory()?;
        let start = index(pointer);
        let bytes = memory.data(self.caller.as_context()).get(start..start + index(size));
        Ok(bytes.ok_or(Status::InvalidMemoryAccess)?.to_vec())
    }

    /// Like `read`, for names. Bytes that are not UTF-8 are replaced by a character that no known
    /// name contains.
    pub(super) fn read_text(&self, pointer: u32, size: u32) -> Result<String, CallError> {
        Ok(String::from_utf8_lossy(&self.read(pointer, size)?).into_owned())
    }

    /// Writes into the guest's memory; InvalidMemoryAccess if the bytes do not fit.
    pub(super) fn write(&mut self, pointer: u32, bytes: &[u8]) -> Result<(), CallError> {
        let memory = self.memory()?;
        let start = index(pointer);
        let target = memory.data_mut(self.caller.as_context_mut()).get_mut(start..start + bytes.len());
        target.ok_or(Status::InvalidMemoryAccess)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn write_number(&mut self, pointer: u32, number: u32) -> Result<(), CallError> {
        self.write(pointer, &number.to_le_bytes())
    }

    /// Returns an ID to the guest, or the one that a fault specifies.
    pub(super) fn return_id(&mut self, pointer: u32, id: u32) -> Result<(), CallError> {
        let id = if let Some(Fault::Id(other)) = self.fault { other } else { id };
        self.write_number(pointer, id)
    }

    /// Returns bytes to the guest in memory that the guest allocates, and writes their position and
    /// size; nothing is allocated for an empty result.
    pub(super) fn return_bytes(
        &mut self,
        found: Result<Vec<u8>, Status>,
        pointer_out: u32,
        size_out: u32,
    ) -> Result<(), CallError> {
        let (pointer, size) = match self.fault.take() {
            Some(Fault::Value(value)) => self.allocate_and_copy(&value)?,
            _ => self.allocate_and_copy(&found?)?,
        };
        self.write_number(pointer_out, pointer)?;
        self.write_number(size_out, size)
    }

    /// Copies bytes into memory from the guest's allocator and returns their position and size.
    fn allocate_and_copy(&mut self, bytes: &[u8]) -> Result<(u32, u32), CallError> {
        let size = u32::try_from(bytes.len()).map_err(|_| Status::InvalidMemoryAccess)?;
        if size == 0 {
            return Ok((0, 0));
        }
        let allocate = self.host().running.allocate.clone().ok_or(Status::InvalidMemoryAccess)?;
        self.host().running.restricted = true;
        let pointer = allocate.call(self.caller.as_context_mut(), size)?;
        self.host().running.restricted = false;
        if pointer == 0 {
            return Err(Status::InvalidMemoryAccess.into());
        }
        self.write(pointer, bytes)?;
        Ok((pointer, size))
    }

    fn memory(&self) -> Result<Memory, CallError> {
        Ok(self.caller.data().running.memory.ok_or(Status::InvalidMemoryAccess)?)
    }
}

/// Converts a 32-bit offset for a 64-bit machine, where the sum of two does not overflow.
fn index(offset: u32) -> usize {
    usize::try_from(offset).expect("the tests run on a 64-bit machine")
}
