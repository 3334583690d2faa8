//! A client of server-sent events.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::wait;

/// An open stream, which is closed on drop.
pub struct EventStream {
    reader: BufReader<TcpStream>,
}

impl EventStream {
    /// Requests the events at `path`; returns the status line of a response that has none.
    ///
    /// # Panics
    /// If the server does not respond in time.
    pub async fn open(address: SocketAddr, path: &str) -> Result<Self, String> {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\r\n");
        let mut stream = TcpStream::connect(address).await.expect("the port is open");
        stream.write_all(request.as_bytes()).await.expect("a connection");
        let mut events = Self { reader: BufReader::new(stream) };
        let status = events.line().await.expect("a status line");
        let mut is_stream = false;
        loop {
            match events.line().await.as_deref() {
                None | Some("") => break,
                Some(line) => is_stream |= line.eq_ignore_ascii_case("content-type: text/event-stream"),
            }
        }
        if is_stream { Ok(events) } else { Err(status) }
    }

    /// Returns the data of the next event; `None` if the server ended the stream.
    ///
    /// # Panics
    /// If there is no event in time, or if its data is not JSON.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            // Every event is one chunk, so the lines between are sizes of chunks.
            let line = self.line().await?;
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("data in JSON"));
            }
        }
    }

    /// Returns the first event for which `condition` is true.
    ///
    /// # Panics
    /// If there is none in time.
    pub async fn until(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = async {
            while let Some(event) = self.next().await {
                if condition(&event) {
                    return Some(event);
                }
                last = event;
            }
            None
        };
        let found = tokio::time::timeout(wait::timeout(), found).await.ok().flatten();
        found.unwrap_or_else(|| panic!("no event: {what}; the last one: {last:#}"))
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(wait::timeout(), self.reader.read_line(&mut line));
        let read = read.await.expect("a line in time").unwrap_or(0);
        (read > 0).then(|| line.trim_end().to_owned())
    }
}
