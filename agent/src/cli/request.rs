//! The command `request`.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hyper::{Method, Uri};
use serving::runtime;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::args::RequestArgs;
use agent_output::exit::Failure;
use http_client::Resolved;

/// How long a request may take. A hook of a container has no time limit of its own.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a response in bytes.
const LIMIT: usize = 256 << 20;

/// Prints the body of the response.
///
/// # Errors
/// If there is no response, or its status is 400 or more, except 404.
pub fn run(args: RequestArgs) -> Result<(), Failure> {
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let addresses = loopback.map(|ip| SocketAddr::new(ip, args.debug_port)).to_vec();
    let port = args.debug_port;
    let failed = |reason| Failure::Unavailable(format!("localhost:{port}: {reason}"));
    let wrong = |what: &str| Failure::Usage(format!("{what}: not valid in a request"));
    let method = Method::from_bytes(args.method.as_bytes()).map_err(|_| wrong(&args.method))?;
    let path = format!("/{}", args.path.strip_prefix('/').unwrap_or(&args.path));
    path.parse::<Uri>().map_err(|_| wrong(&path))?;
    let request = async {
        let connection = Resolved::Addresses(addresses).dial().await.map_err(|error| error.to_string())?;
        let request = http_client::request(method, "localhost", &path).map(|_| args.body.into());
        let response = connection.call_with_body(request, LIMIT).await;
        response.map_err(|error| error.to_string())
    };
    let response = runtime::block_on(&mut Builder::new_current_thread(), async {
        let response = timeout(TIMEOUT, request).await;
        response
            .unwrap_or_else(|_| Err(format!("no response within {} s", TIMEOUT.as_secs())))
            .map_err(failed)
    })?;
    if response.status >= 400 && response.status != 404 {
        let reason = format!("HTTP status {}", response.status);
        return Err(failed(reason));
    }
    let written = std::io::stdout().write_all(&response.body);
    written.map_err(|error| Failure::CannotWrite(format!("stdout: {error}")))
}
