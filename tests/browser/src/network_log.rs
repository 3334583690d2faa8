//! Entries of the browser's log of its network, which are events of the Chrome DevTools Protocol.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum NetworkEvent {
    /// A request to this URL, also one that the browser then blocks.
    Request(String),
    /// The data of a server-sent event.
    ServerSent(Value),
}

/// Returns the event of an entry; `None` if it is of another kind.
pub fn parse(entry: &str) -> Option<NetworkEvent> {
    let entry: Value = serde_json::from_str(entry).ok()?;
    let (message, parameters) = (&entry["message"], &entry["message"]["params"]);
    match message["method"].as_str()? {
        "Network.requestWillBeSent" => {
            Some(NetworkEvent::Request(parameters["request"]["url"].as_str()?.to_owned()))
        }
        "Network.eventSourceMessageReceived" => {
            Some(NetworkEvent::ServerSent(serde_json::from_str(parameters["data"].as_str()?).ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
