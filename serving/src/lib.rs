//! What both binaries need to run as a server or a command: a limited HTTP server, TLS from PEM files,
//! signals, exit codes and the runtime.

pub mod exit;
pub mod http_server;
pub mod monitoring;
pub mod runtime;
pub mod shutdown;
pub mod tls;
