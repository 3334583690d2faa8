//! What both binaries need to run as a server or a command: a limited HTTP server, status pages, PEM
//! files and TLS, values that follow their files, signals, exit codes, the runtime, the environment and `--version`.

pub mod environment;
pub mod exit;
pub mod files;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod http_server;
pub mod local_request;
pub mod log_limiter;
pub mod log_targets;
pub mod monitoring;
pub mod page;
pub mod runtime;
pub mod shared_pool;
pub mod shutdown;
pub mod source_permits;
#[cfg(feature = "tls")]
pub mod tls;
pub mod version;
#[cfg(feature = "tls")]
pub mod watched;

pub use pacing::source;
