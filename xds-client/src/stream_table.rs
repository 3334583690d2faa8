//! The table of the status page about the stream to the discovery server.

use serving::page::{Cell, Table, Tone};
use tokio::time::Instant;

use super::StreamStatus;

/// `started` is the agent's start.
pub fn stream_table(status: &StreamStatus, started: Instant) -> Table {
    let row = |name: &str, cell| vec![Cell::text(name), cell];
    let since = |then: Instant| Cell::At { at: then.saturating_duration_since(started) };
    let mut rows = Vec::new();
    match &status.connected {
        Some((peer, at)) => {
            rows.push(row("stream", Cell::status(Tone::Good, format!("connected to {peer}"))));
            rows.push(row("connected", since(*at)));
        }
        None => rows.push(row("stream", Cell::status(Tone::Bad, "not connected"))),
    }
    if let Some(session) = status.session {
        rows.push(row("session", Cell::text(session.to_string())));
    }
    if let Some((version, at)) = &status.acknowledged {
        rows.push(row("last acknowledged report", Cell::text(version)));
        rows.push(row("acknowledged", since(*at)));
    }
    if let Some(error) = &status.error {
        rows.push(row("last error", Cell::status(Tone::Bad, error)));
    }
    let note = match status.nothing_to_report {
        true => "There is no probe, so nothing is reported.",
        false => "",
    };
    Table {
        id: "stream",
        caption: "Stream to the discovery server",
        note: note.to_owned(),
        columns: &["item", "value"],
        rows,
    }
}

#[cfg(test)]
mod tests;
