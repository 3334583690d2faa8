//! The application for Pods: HTTP, HTTPS, TCP and gRPC, each with a switch and a record of its
//! requests.

use clap::Parser as _;
use kit::application::{self, Arguments};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    kit::app::tls::install_provider();
    application::run(Arguments::parse()).await
}
