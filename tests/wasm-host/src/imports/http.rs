//! The host functions that access a stream: headers, bodies, local replies, callouts.

use wasmtime::{Error, Linker};

use super::C;
use crate::context::LocalReply;
use crate::fault::Status;
use crate::guest::{CallError, Guest, call};
use crate::transcript::{Effect, Headers, StreamKind};
use crate::{DeferredAction, Host, header_map};

/// The highest map type and buffer type of proxy-wasm.
const LAST_MAP: u32 = 7;
const LAST_BUFFER: u32 = 8;

const REQUEST_HEADERS: u32 = 0;
const RESPONSE_HEADERS: u32 = 2;
const CALLOUT_HEADERS: u32 = 6;
const CALLOUT_TRAILERS: u32 = 7;

const RESPONSE_BODY: u32 = 1;
const CALLOUT_BODY: u32 = 4;
const VM_CONFIGURATION: u32 = 6;
const PLUGIN_CONFIGURATION: u32 = 7;

/// Envoy rejects a callout without these headers.
const CALLOUT_NEEDS: [&[&[u8]]; 3] = [&[b":method"], &[b":path"], &[b":authority", b"host"]];

pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), Error> {
    linker.func_wrap(
        "env",
        "proxy_get_buffer_bytes",
        |c: C<'_>, kind: u32, start: u32, max: u32, bytes: u32, size: u32| {
            call(c, "proxy_get_buffer_bytes", |guest| {
                let found = buffer(guest.host(), kind).map(|buffer| cut(buffer, start, max));
                guest.return_bytes(found, bytes, size)
            })
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_set_buffer_bytes",
        |c: C<'_>, kind: u32, start: u32, len: u32, bytes: u32, size: u32| {
            call(c, "proxy_set_buffer_bytes", |guest| {
                buffer(guest.host(), kind)?;
                let bytes = guest.read(bytes, size)?;
                set_buffer(guest.host(), kind, start, len, bytes)
            })
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_get_header_map_value",
        |c: C<'_>, map: u32, name: u32, name_size: u32, value: u32, size: u32| {
            call(c, "proxy_get_header_map_value", |guest| {
                let name = guest.read(name, name_size)?;
                let found = header(guest.host(), map, &name);
                guest.return_bytes(found, value, size)
            })
        },
    )?;
    linker.func_wrap("env", "proxy_set_header_map_pairs", |c: C<'_>, map: u32, pairs: u32, size: u32| {
        call(c, "proxy_set_header_map_pairs", |guest| set_headers(guest, map, pairs, size))
    })?;
    linker.func_wrap("env", "proxy_close_stream", |c: C<'_>, kind: u32| {
        call(c, "proxy_close_stream", |guest| close_stream(guest.host(), kind))
    })?;
    #[rustfmt::skip]
    linker.func_wrap("env", "proxy_send_local_response",
        |c: C<'_>, status: u32, details: u32, details_size: u32, body: u32, body_size: u32,
         pairs: u32, pairs_size: u32, _grpc_status: i32| {
            call(c, "proxy_send_local_response", |guest| {
                let details = guest.read_text(details, details_size)?;
                let body = guest.read(body, body_size)?;
                let headers = header_map::parse(&guest.read(pairs, pairs_size)?);
                send_local_response(guest.host(), LocalReply { status, headers, body }, details);
                Ok(())
            })
        },
    )?;
    #[rustfmt::skip]
    linker.func_wrap("env", "proxy_http_call",
        |c: C<'_>, cluster: u32, cluster_size: u32, headers: u32, headers_size: u32, body: u32, body_size: u32,
         trailers: u32, trailers_size: u32, timeout_ms: u32, token: u32| {
            call(c, "proxy_http_call", |guest| {
                let cluster = guest.read_text(cluster, cluster_size)?;
                let body = guest.read(body, body_size)?;
                let headers = header_map::parse(&guest.read(headers, headers_size)?);
                let trailers = header_map::parse(&guest.read(trailers, trailers_size)?);
                let callout = Callout { cluster, headers, body, trailers, timeout_ms };
                http_call(guest, callout, token)
            })
        },
    )?;
    Ok(())
}

/// Outside its callback a body is empty, while a callout's body and the plugin configuration do not
/// exist.
fn buffer(host: &Host, kind: u32) -> Result<&[u8], Status> {
    if kind > LAST_BUFFER {
        return Err(Status::BadArgument);
    }
    let found = match kind {
        RESPONSE_BODY => {
            Some(host.context().and_then(|context| context.chunk.as_deref()).unwrap_or_default())
        }
        CALLOUT_BODY => host.root().and_then(|root| root.callout.as_ref()).map(|answer| &answer.body[..]),
        VM_CONFIGURATION => Some(&host.vm_configuration[..]),
        PLUGIN_CONFIGURATION => host.context().and_then(|context| context.plugin_configuration.as_deref()),
        _ => Some(&[][..]),
    };
    found.ok_or(Status::NotFound)
}

/// Returns the available part of the requested range.
fn cut(buffer: &[u8], start: u32, max: u32) -> Vec<u8> {
    let size = |size: u32| usize::try_from(size).expect("the tests run on a 64-bit machine");
    buffer.iter().skip(size(start)).take(size(max)).copied().collect()
}

/// Like Envoy's `Buffer::copyFrom`: prepends, replaces everything, or appends; a part in the middle
/// cannot be replaced.
fn set_buffer(host: &mut Host, kind: u32, start: u32, len: u32, bytes: Vec<u8>) -> Result<(), CallError> {
    let chunk =
        host.context_mut().filter(|_| kind == RESPONSE_BODY).and_then(|context| context.chunk.as_mut());
    let chunk = chunk.ok_or(Status::BadArgument)?;
    let size = u32::try_from(chunk.len()).expect("a chunk below 4 GiB");
    match (start, len) {
        (0, 0) => drop(chunk.splice(..0, bytes.iter().copied())),
        (0, len) if len >= size => chunk.clone_from(&bytes),
        (start, _) if start > 0 && start >= size => chunk.extend(&bytes),
        _ => return Err(Status::BadArgument.into()),
    }
    host.record(Effect::BodySet { start, len, bytes });
    Ok(())
}

/// Returns the first value of a header, ignoring case. Envoy does not join repeated headers here.
fn header(host: &Host, map: u32, name: &[u8]) -> Result<Vec<u8>, Status> {
    if map > LAST_MAP {
        return Err(Status::BadArgument);
    }
    let context = host.context();
    let callout = host.root().and_then(|root| root.callout.as_ref());
    let headers = match map {
        REQUEST_HEADERS => {
            context.filter(|context| context.request_open).map(|context| &context.request_headers)
        }
        RESPONSE_HEADERS => {
            context.filter(|context| context.response_open).map(|context| &context.response_headers)
        }
        CALLOUT_HEADERS => callout.map(|answer| &answer.headers),
        CALLOUT_TRAILERS => callout.map(|answer| &answer.trailers).filter(|trailers| !trailers.is_empty()),
        _ => None,
    };
    let headers = headers.ok_or(Status::BadArgument)?;
    let found = headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.clone()).ok_or(Status::NotFound)
}

fn set_headers(guest: &mut Guest<'_>, map: u32, pairs: u32, size: u32) -> Result<(), CallError> {
    if map > LAST_MAP {
        return Err(Status::BadArgument.into());
    }
    let pairs = header_map::parse(&guest.read(pairs, size)?);
    let lowered = pairs.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let host = guest.host();
    let context = host.context_mut().ok_or(Status::BadArgument)?;
    let effect = match map {
        REQUEST_HEADERS if context.request_open => {
            context.request_headers = lowered;
            Effect::RequestHeadersSet(pairs)
        }
        RESPONSE_HEADERS if context.response_open => {
            context.response_headers = lowered;
            Effect::ResponseHeadersSet(pairs)
        }
        _ => return Err(Status::BadArgument.into()),
    };
    host.record(effect);
    Ok(())
}

/// For an HTTP stream, request and response are the same stream; closing a TCP connection does
/// nothing.
fn close_stream(host: &mut Host, kind: u32) -> Result<(), CallError> {
    let kind = StreamKind::from_number(kind).ok_or(Status::BadArgument)?;
    if matches!(kind, StreamKind::Request | StreamKind::Response) {
        host.running.deferred.push((host.context_id(), DeferredAction::Reset));
    }
    host.record(Effect::StreamClosed(kind));
    Ok(())
}

fn send_local_response(host: &mut Host, reply: LocalReply, details: String) {
    let LocalReply { status, headers, body } = reply.clone();
    host.running.deferred.push((host.context_id(), DeferredAction::Reply(reply)));
    host.record(Effect::LocalResponse { status, headers, body, details });
}

struct Callout {
    cluster: String,
    headers: Headers,
    body: Vec<u8>,
    trailers: Headers,
    timeout_ms: u32,
}

/// Envoy first writes a 0 to check the address of the token, and reads the timeout as a signed
/// number. Tokens are unique in the VM: 4, 8, 12 …
fn http_call(guest: &mut Guest<'_>, callout: Callout, token_out: u32) -> Result<(), CallError> {
    guest.write_number(token_out, 0)?;
    let Callout { cluster, headers, body, trailers, timeout_ms } = callout;
    let host = guest.host();
    let has =
        |names: &&[&[u8]]| names.iter().any(|name| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)));
    if i32::try_from(timeout_ms).is_err()
        || !host.clusters.contains(&cluster)
        || !CALLOUT_NEEDS.iter().all(has)
    {
        return Err(Status::BadArgument.into());
    }
    let root = host.context().ok_or(Status::BadArgument)?.root;
    host.running.last_token += 4;
    let token = host.running.last_token;
    host.running.callouts.insert(token, root);
    host.record(Effect::HttpCall { token, cluster, headers, body, trailers, timeout_ms });
    guest.return_id(token_out, token)
}

#[cfg(test)]
mod tests;
