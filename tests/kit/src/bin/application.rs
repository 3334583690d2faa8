//! The application for Pods: HTTP, HTTPS, TCP and gRPC, each with a switch and a record of its
//! requests.

use clap::Parser as _;
use kit::application::{self, Arguments};

// On a single thread, a port is free as soon as the task of its listener is aborted.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    kit::app::tls::install_provider();
    application::run(Arguments::parse()).await
}
