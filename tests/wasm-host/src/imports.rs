//! The linked host functions: those of the capability allow-list of production, and the
//! implementation of all that do not access a stream. The others are in `imports/http.rs`. Any other
//! function returns the status that Envoy returns for a restricted capability.

mod http;

use wasmtime::{Caller, Error, FuncType, Linker, Val};

use super::Host;
use super::fault::Status;
use super::guest::{CallError, Guest, call};
use crate::transcript::{Effect, LogLevel, MetricKind};

/// The callbacks that a filter may have; others are not called, as in Envoy.
pub const CALLBACKS: [&str; 8] = [
    "proxy_on_vm_start",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_request_headers",
    "proxy_on_response_headers",
    "proxy_on_response_body",
    "proxy_on_http_call_response",
];

/// The calls that a filter may make, all from module `env`.
pub const ALLOWED: [&str; 15] = [
    "proxy_log",
    "proxy_get_buffer_bytes",
    "proxy_set_buffer_bytes",
    "proxy_get_header_map_value",
    "proxy_set_header_map_pairs",
    "proxy_get_property",
    "proxy_call_foreign_function",
    "proxy_send_local_response",
    "proxy_http_call",
    "proxy_define_metric",
    "proxy_increment_metric",
    "proxy_record_metric",
    "proxy_get_current_time_nanoseconds",
    "proxy_close_stream",
    "proxy_set_effective_context",
];

type C<'a> = Caller<'a, Host>;

/// Links every allowed call. Arguments are in the order of the ABI; pointers and sizes are u32.
pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), Error> {
    linker.func_wrap("env", "proxy_log", |c: C<'_>, level: u32, text: u32, size: u32| {
        call(c, "proxy_log", |guest| log(guest, level, text, size))
    })?;
    linker.func_wrap(
        "env",
        "proxy_get_property",
        |c: C<'_>, path: u32, size: u32, value: u32, len: u32| {
            call(c, "proxy_get_property", |guest| get_property(guest, path, size, value, len))
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_call_foreign_function",
        |c: C<'_>, name: u32, name_size: u32, argument: u32, argument_size: u32, result: u32, len: u32| {
            call(c, "proxy_call_foreign_function", |guest| {
                let name = guest.read_text(name, name_size)?;
                let argument = guest.read(argument, argument_size)?;
                call_foreign_function(guest, name, argument, (result, len))
            })
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_define_metric",
        |c: C<'_>, kind: u32, name: u32, size: u32, id: u32| {
            call(c, "proxy_define_metric", |guest| define_metric(guest, kind, name, size, id))
        },
    )?;
    linker.func_wrap("env", "proxy_increment_metric", |c: C<'_>, id: u32, by: i64| {
        call(c, "proxy_increment_metric", |guest| {
            let name = guest.host().metrics.increment(id, by)?;
            guest.host().record(Effect::MetricIncremented { id, name, by });
            Ok(())
        })
    })?;
    linker.func_wrap("env", "proxy_record_metric", |c: C<'_>, id: u32, value: u64| {
        call(c, "proxy_record_metric", |guest| {
            let name = guest.host().metrics.record(id, value)?;
            guest.host().record(Effect::MetricRecorded { id, name, value });
            Ok(())
        })
    })?;
    linker.func_wrap("env", "proxy_get_current_time_nanoseconds", |c: C<'_>, time: u32| {
        call(c, "proxy_get_current_time_nanoseconds", |guest| {
            let nanoseconds =
                u64::try_from(guest.host().now.as_nanos()).expect("a time before the year 2500");
            guest.write(time, &nanoseconds.to_le_bytes())
        })
    })?;
    linker.func_wrap("env", "proxy_set_effective_context", |c: C<'_>, context: u32| {
        call(c, "proxy_set_effective_context", |guest| set_effective_context(guest, context))
    })?;
    http::link(linker)
}

/// Links a function outside the allow-list.
pub(super) fn link_restricted(linker: &mut Linker<Host>, name: &str, kind: &FuncType) -> Result<(), Error> {
    linker.func_new("env", name, kind.clone(), |_, _, results| {
        results.fill(Val::I32(Status::InternalFailure as i32));
        Ok(())
    })?;
    Ok(())
}

fn log(guest: &mut Guest<'_>, level: u32, text: u32, size: u32) -> Result<(), CallError> {
    let level = LogLevel::from_number(level).ok_or(Status::BadArgument)?;
    let text = guest.read_text(text, size)?;
    guest.host().record(Effect::Log { level, text });
    Ok(())
}

/// The path contains NUL between its parts; a trailing NUL changes nothing.
fn get_property(
    guest: &mut Guest<'_>,
    path: u32,
    size: u32,
    value: u32,
    value_size: u32,
) -> Result<(), CallError> {
    let path = guest.read(path, size)?;
    let path = path.strip_suffix(b"\0").unwrap_or(&path);
    let found = guest.host().context().and_then(|context| context.properties.get(path).cloned());
    guest.return_bytes(found.ok_or(Status::NotFound), value, value_size)
}

/// The result is returned for every status of the function; a guest that needs none passes a null
/// pointer.
fn call_foreign_function(
    guest: &mut Guest<'_>,
    name: String,
    argument: Vec<u8>,
    (result, result_size): (u32, u32),
) -> Result<(), CallError> {
    let function = guest.host().foreign_functions.get(&name).cloned().ok_or(Status::NotFound)?;
    if result != 0 && result_size != 0 {
        guest.return_bytes(Ok(function.result), result, result_size)?;
    }
    if function.status != Status::Ok {
        return Err(function.status.into());
    }
    guest.host().record(Effect::Foreign { name, argument });
    Ok(())
}

fn define_metric(
    guest: &mut Guest<'_>,
    kind: u32,
    name: u32,
    size: u32,
    id_out: u32,
) -> Result<(), CallError> {
    let name = guest.read_text(name, size)?;
    let kind = MetricKind::from_number(kind).ok_or(Status::BadArgument)?;
    let id = guest.host().metrics.define(kind, &name);
    guest.host().record(Effect::MetricDefined { id, kind, name });
    guest.return_id(id_out, id)
}

/// 0 resets the choice: it is the VM context, which has no stream.
fn set_effective_context(guest: &mut Guest<'_>, context: u32) -> Result<(), CallError> {
    let host = guest.host();
    if context != 0 && !host.running.contexts.contains_key(&context) {
        return Err(Status::BadArgument.into());
    }
    host.running.effective = (context != 0).then_some(context);
    Ok(())
}

#[cfg(test)]
mod tests;
