//! Flags of `request`.

/// Flags of `request`, as in `pilot-agent request`.
#[derive(Debug, clap::Args)]
pub struct RequestArgs {
    /// Port of this machine
    #[arg(long = "debug-port", env = "APP_HEALTH_DEBUG_PORTS", value_name = "PORT", default_value_t = 15000)]
    pub debug_port: u16,
    /// HTTP method, such as GET or POST
    pub method: String,
    /// Path and query; a slash is put in front if there is none
    pub path: String,
    /// Body of the request
    #[arg(default_value = "")]
    pub body: String,
}
