//! `grpc` probes: one health check, with the connection attempts of grpc-go.

use std::net::SocketAddr;
use std::time::Duration;

use probe::grpc_health::request_message;
use probe::{Grpc, GrpcMode, Reason};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::dial::{self, Target};
use crate::ended::Ended;
use crate::exchange::Client;
use crate::http2::grpc::{Call, Checked, Failed, check};
use crate::stream::Stream;

/// The pause of grpc-go after a failed connection attempt, which grows by this factor; without its jitter
/// of 20 %.
const PAUSE: Duration = Duration::from_secs(1);
const FACTOR: f64 = 1.6;

/// Runs a probe until `deadline`, `timeout` after its begin.
pub async fn grpc_check(
    client: &Client,
    target: Target,
    grpc: &Grpc,
    user_agent: &[u8],
    timeout: Duration,
    deadline: Instant,
) -> Ended {
    let call = Call {
        authority: &SocketAddr::new(target.ip, grpc.port).to_string(),
        scheme: match grpc.mode {
            GrpcMode::Plaintext => "http",
            GrpcMode::Tls => "https",
        },
        user_agent,
        // The gRPC specification allows eight digits, which is enough for a day in milliseconds.
        timeout: &format!("{}m", timeout.as_millis()),
        message: &request_message(&grpc.service),
    };
    let mut pause = PAUSE;
    let mut is_retry = false;
    loop {
        let attempt = async {
            let stream = dial::connect(target, grpc.port).await.map_err(Failed::Connection)?;
            let stream = client.grpc_stream(stream, grpc.mode, target).await.map_err(Failed::Connection)?;
            check(stream, call, is_retry).await
        };
        match timeout_at(deadline, attempt).await {
            Err(_) => return Ended::by(Reason::Timeout),
            Ok(Ok(Checked { reason, .. }) | Err(Failed::Call(reason))) => return Ended::by(reason),
            Ok(Err(Failed::Unprocessed)) => is_retry = true,
            // The verdict is the same if no attempt begins before the deadline.
            Ok(Err(Failed::Connection(reason))) if Instant::now() + pause >= deadline => {
                return Ended::by(reason);
            }
            Ok(Err(Failed::Connection(_))) => {
                sleep(pause).await;
                pause = pause.mul_f64(FACTOR);
            }
        }
    }
}

impl Client {
    #[cfg(feature = "tls")]
    async fn grpc_stream(&self, stream: TcpStream, mode: GrpcMode, target: Target) -> Result<Stream, Reason> {
        match mode {
            GrpcMode::Plaintext => Ok(Stream::Plaintext(stream)),
            GrpcMode::Tls => Ok(Stream::Tls(self.tls().grpc(stream, target.ip).await?)),
        }
    }

    #[cfg(not(feature = "tls"))]
    async fn grpc_stream(&self, stream: TcpStream, mode: GrpcMode, _: Target) -> Result<Stream, Reason> {
        match mode {
            GrpcMode::Plaintext => Ok(Stream::Plaintext(stream)),
            GrpcMode::Tls => Err(Reason::Configuration),
        }
    }
}
