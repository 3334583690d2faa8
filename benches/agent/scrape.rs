//! Measures the peak memory of the agent during a scrape of an Envoy with many metrics.

use std::fmt::Write as _;
use std::io::{Error, Result};

use kit::admin::{Mood, ScriptedAdmin};
use kit::report::Row;
use kit::sidecar::Builder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::memory::{memory, process};

const BYTES: usize = 30 << 20;
/// Number of time series in one metric family, as for an Envoy with this number of clusters.
const SERIES: usize = 200;

/// Returns the peak resident memory of the agent.
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
        return Err(Error::other(format!("the scrape returned only {length} bytes")));
    }
    Ok(memory("during a scrape of 30 MiB, peak", process(&sidecar).peak_rss(), 10.0))
}

/// Returns about 30 MiB of metric families in Envoy's format.
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
