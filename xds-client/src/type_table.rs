//! The table of the status page about the resource types that Envoy gets through the agent.

use serving::page::{Cell, Table, Tone};
use workload_health::text::printable;
use xds_proxy::ProxyView;

pub fn type_table(view: &ProxyView) -> Table {
    let rows = view.types.iter().map(|view| {
        let nack = match &view.last_nack {
            Some((text, _)) => Cell::status(Tone::Bad, printable(text)),
            None => Cell::text(""),
        };
        vec![
            Cell::text(printable(&view.type_url)),
            Cell::text(printable(&view.version)),
            Cell::text(view.resources.to_string()),
            Cell::text(view.acks.to_string()),
            Cell::text(view.nacks.to_string()),
            nack,
        ]
    });
    let envoy = if view.envoy.is_some() { "connected" } else { "not connected" };
    let server = if view.connected.is_some() { "connected" } else { "not connected" };
    let error = view.error.as_ref().map_or_else(String::new, |error| format!(" Last error: {error}."));
    Table {
        id: "xds",
        caption: "xDS for Envoy",
        note: format!("Envoy is {envoy}, the control plane is {server}.{error}"),
        columns: &["type", "version", "resources", "accepted", "rejected", "last rejection"],
        rows: rows.collect(),
    }
}
