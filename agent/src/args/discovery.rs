//! The flags of `run` that say to whom, as whom and how often a virtual machine's health is reported.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

/// Reporting to a discovery server. Without `--discovery` nothing is reported.
#[derive(Debug, clap::Args)]
pub struct DiscoveryArgs {
    /// Report this machine's health to this discovery server: ours, or istiod; repeatable, and the twin is a list with commas. Looked up
    /// anew for each attempt, addresses in random order. Default: nothing is reported
    #[arg(long, env = "APP_HEALTH_DISCOVERY", value_name = "HOST:PORT", value_delimiter = ',')]
    pub discovery: Vec<String>,
    /// PEM of the authorities that sign the server's certificate; read again when it changes, as the next two
    #[arg(long, env = "APP_HEALTH_DISCOVERY_CA", value_name = "FILE")]
    pub discovery_ca: Option<PathBuf>,
    /// PEM of this workload's certificate, and the chain behind it
    #[arg(long, env = "APP_HEALTH_DISCOVERY_CERT", value_name = "FILE")]
    pub discovery_cert: Option<PathBuf>,
    /// PEM of its key
    #[arg(long, env = "APP_HEALTH_DISCOVERY_KEY", value_name = "FILE")]
    pub discovery_key: Option<PathBuf>,
    /// The name that the server's certificate must carry: DNS, an address, or spiffe://... Default: the host of --discovery
    #[arg(long, env = "APP_HEALTH_DISCOVERY_SAN", value_name = "NAME")]
    pub discovery_san: Option<String>,
    /// No TLS towards the server; refused unless that is on loopback, or with --insecure
    #[arg(long, env = "APP_HEALTH_DISCOVERY_PLAINTEXT", value_parser = BoolishValueParser::new())]
    pub discovery_plaintext: bool,
    /// --discovery-plaintext to other machines too: whoever is in between reads and changes everything
    #[arg(long, env = "APP_HEALTH_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,
    /// The variant of the protocol, state of the world or incremental; both do the same
    #[arg(long, env = "APP_HEALTH_XDS", value_enum, default_value_t = Xds::Sotw)]
    pub xds: Xds,
    /// The WorkloadGroup that the server makes an entry from. Default: the name in --workload-group
    #[arg(long, env = "APP_HEALTH_GROUP", value_name = "NAME")]
    pub group: Option<String>,
    /// The WorkloadEntry that exists already; instead of --group
    #[arg(long, env = "APP_HEALTH_WORKLOAD_ENTRY", value_name = "NAME")]
    pub workload_entry: Option<String>,
    /// The workload's namespace, which its certificate must prove. Default: that of --workload-group, else default
    #[arg(long, env = "APP_HEALTH_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,
    /// Its service account, likewise. Default: that of --workload-group, else default
    #[arg(long, env = "APP_HEALTH_SERVICEACCOUNT", value_name = "NAME")]
    pub service_account: Option<String>,
    /// The network that the entry is in
    #[arg(long, env = "APP_HEALTH_NETWORK", value_name = "NAME")]
    pub network: Option<String>,
    /// Where the entry is
    #[arg(long, env = "APP_HEALTH_LOCALITY", value_name = "REGION[/ZONE[/SUBZONE]]")]
    pub locality: Option<String>,
    /// A label of the entry; repeatable, and the twin is a list with commas
    #[arg(long, env = "APP_HEALTH_LABEL", value_name = "KEY=VALUE", value_delimiter = ',')]
    pub label: Vec<String>,
    /// The state is said again so often to our server, or more often if that asks for it
    #[arg(long, env = "APP_HEALTH_HEARTBEAT", value_name = "DURATION", default_value = "60s")]
    pub heartbeat: String,
    /// The same to a server that knows Istio's protocol alone; 0: never
    #[arg(long, env = "APP_HEALTH_PLAIN_HEARTBEAT", value_name = "DURATION", default_value = "5m")]
    pub plain_heartbeat: String,
    /// The longest that the agent's end waits for the server's word that it has heard of it
    #[arg(long, env = "APP_HEALTH_GOODBYE_TIMEOUT", value_name = "DURATION", default_value = "2s")]
    pub goodbye_timeout: String,
}

/// A variant of xDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Xds {
    /// State of the world.
    Sotw,
    /// Incremental.
    Delta,
}
