//! `tcpSocket` probes: an established connection is a success, and no byte is sent.

use probe::Reason;
use tokio::time::{Instant, timeout_at};

use crate::dial::{Target, connect};
use crate::ended::Ended;

/// Runs a probe until `deadline`.
pub async fn tcp_socket(target: Target, port: u16, deadline: Instant) -> Ended {
    Ended::by(match timeout_at(deadline, connect(target, port)).await {
        Ok(Ok(_) | Err(Reason::Closed)) => Reason::Ok,
        Ok(Err(reason)) => reason,
        Err(_) => Reason::Timeout,
    })
}
