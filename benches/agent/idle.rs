//! Measures the latency of a probe while many idle connections are open.

use std::io::Result;
use std::net::SocketAddr;

use kit::admin::{Mood, ScriptedAdmin};
use kit::report::{Row, quantile};
use kit::sidecar::Builder;
use tokio::net::TcpStream;

use crate::caller::Caller;
use crate::{READY, millis};

const CONNECTIONS: usize = 1000;
const PROBES: usize = 200;

/// Returns the latency of the slowest probe.
pub(crate) async fn measure() -> Result<Row> {
    let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let sidecar = Builder::bare("b-idle").watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    let _idle = connections(sidecar.ready_address()).await?;
    let caller = Caller::new(sidecar.ready_address(), READY);
    let times: Vec<f64> = (0..PROBES).map(|_| caller.ask(200).map(millis)).collect::<Result<_>>()?;
    let name = format!("probe latency with {CONNECTIONS} idle connections, slowest of {PROBES}");
    Ok(Row::new(name, quantile(&times, 1.0), "ms").at_most(100.0))
}

/// Opens the connections without sending anything on them.
pub(crate) async fn connections(address: SocketAddr) -> Result<Vec<TcpStream>> {
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(TcpStream::connect(address).await?);
    }
    Ok(idle)
}
