//! The application of Pods: http, https, tcp and gRPC, each with a switch, and what was asked of it.

use clap::Parser as _;
use kit::application::{self, Arguments};

// One thread, so that a port is free as soon as its listener is told to end.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    kit::app::tls::install_provider();
    application::run(Arguments::parse()).await
}
