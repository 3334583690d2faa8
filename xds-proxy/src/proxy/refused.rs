//! Resources that an Envoy cannot use, although it would accept some of them: WebAssembly that has to be loaded
//! from another machine. istiod expects that Istio's agent loads it. A plugin that is skipped may have decided
//! who may do what.

use bytes::Bytes;
use xds::{Malformed, Response, fields, parse_any};

const EXTENSION: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
/// The end of the types of the HTTP filter and the network filter.
const WASM: &str = ".wasm.v3.Wasm";

/// Returns why a response is refused.
pub(super) fn refusal(response: &Response) -> Option<String> {
    if response.type_url != EXTENSION {
        return None;
    }
    let name = response.resources.iter().find_map(|resource| remote_wasm(&resource.any).ok()?)?;
    Some(format!(
        "{name}: this agent does not load WebAssembly from other machines; use Istio's agent for workloads with a WasmPlugin"
    ))
}

/// Returns the name of an extension whose code is remote.
fn remote_wasm(any: &Bytes) -> Result<Option<String>, Malformed> {
    let (_, extension) = parse_any(any)?;
    let name = field(&extension, 1)?.unwrap_or_default();
    let Some(config) = field(&extension, 2)? else { return Ok(None) };
    let (type_url, filter) = parse_any(&config)?;
    if !type_url.ends_with(WASM) {
        return Ok(None);
    }
    // Wasm.config, PluginConfig.vm_config, VmConfig.code, AsyncDataSource.remote.
    let mut message = filter;
    for number in [1, 3, 3, 2] {
        match field(&message, number)? {
            Some(inner) => message = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(String::from_utf8_lossy(&name).into_owned()))
}

/// Returns the content of a field, the last one of several.
fn field(message: &Bytes, number: u64) -> Result<Option<Bytes>, Malformed> {
    let mut found = None;
    for field in fields(message) {
        let field = field?;
        if field.number == number {
            found = Some(field.bytes()?);
        }
    }
    Ok(found)
}
