//! Memory of the agent while somebody scrapes an Envoy that says a lot.

use std::fmt::Write as _;
use std::io::{Error, Result};

use kit::admin::{Mood, ScriptedAdmin};
use kit::report::Row;
use kit::sidecar::Builder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::memory::{memory, process};

const BYTES: usize = 30 << 20;
/// As many of one family as Envoy has clusters, say.
const SERIES: usize = 200;

/// The most that the agent ever had.
pub(crate) async fn measure() -> Result<Row> {
    let admin = ScriptedAdmin::start(Mood::Serves, exposition()).await;
    let sidecar = Builder::bare("b-scrape").watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    let mut stream = TcpStream::connect(sidecar.local_address()).await?;
    stream.write_all(b"GET /stats/prometheus HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
    let (mut block, mut length) = (vec![0; 64 << 10], 0);
    loop {
        match stream.read(&mut block).await? {
            0 => break,
            read => length += read,
        }
    }
    if length < BYTES {
        return Err(Error::other(format!("a scrape of {length} bytes")));
    }
    Ok(memory("during a scrape of 30 MiB, at most", process(&sidecar).peak_rss(), 10.0))
}

/// Families as Envoy writes them.
fn exposition() -> String {
    let mut text = String::new();
    for family in 0.. {
        let name = format!("envoy_cluster_upstream_family_{family}_total");
        let _ = writeln!(text, "# TYPE {name} counter");
        for series in 0..SERIES {
            let _ = writeln!(text, "{name}{{envoy_cluster_name=\"outbound|80||service-{series}\"}} {series}");
        }
        if text.len() >= BYTES {
            break;
        }
    }
    text
}
