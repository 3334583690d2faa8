//! Flags of `discovery` and `workloads`.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Subcommand, ValueEnum, value_parser};

use super::duration;

/// Flags of `discovery`.
#[derive(Debug, clap::Args)]
pub struct DiscoveryArgs {
    /// Address for agents and Envoy with mutual TLS. Default: `[::]:15012` if a certificate is set
    #[arg(long, env = "APP_HEALTH_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Server certificate chain, PEM; reloaded when it changes
    #[arg(long, env = "APP_HEALTH_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the server certificate, PEM
    #[arg(long, env = "APP_HEALTH_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// CA that signs the certificates of agents and Envoy, PEM
    #[arg(long, env = "APP_HEALTH_CLIENT_CA", value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// Address for agents and Envoy in plaintext, without authentication. Usually 127.0.0.1:15010
    #[arg(long, env = "APP_HEALTH_PLAINTEXT_LISTEN", value_name = "ADDRESS:PORT")]
    pub plaintext_listen: Option<SocketAddr>,
    /// Allow plaintext on addresses other than loopback
    #[arg(long, env = "APP_HEALTH_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,
    /// Address for metrics, health and /debug/workloads
    #[arg(
        long,
        env = "APP_HEALTH_MONITORING_ADDRESS",
        value_name = "ADDRESS:PORT",
        default_value = "[::]:15014"
    )]
    pub monitoring_address: SocketAddr,
    /// Allow /debug for clients that are not on this machine
    #[arg(long, env = "APP_HEALTH_DEBUG_ALLOW_REMOTE", value_parser = BoolishValueParser::new())]
    pub debug_allow_remote: bool,
    /// Trust domain that is accepted in client certificates; repeatable
    #[arg(
        long,
        env = "APP_HEALTH_TRUST_DOMAIN",
        value_name = "DOMAIN",
        value_delimiter = ',',
        default_value = "cluster.local"
    )]
    pub trust_domain: Vec<String>,
    /// Where WorkloadEntries are stored
    #[arg(long, env = "APP_HEALTH_STORE", value_enum, default_value_t = StoreArg::Redb)]
    pub store: StoreArg,
    /// Path of the database for --store redb
    #[arg(
        long,
        env = "APP_HEALTH_STORE_PATH",
        value_name = "FILE",
        default_value = "/var/lib/app-health/discovery.redb"
    )]
    pub store_path: PathBuf,
    /// Directory of YAML files with WorkloadGroup, WorkloadEntry and ServiceEntry; required with
    /// --store redb
    #[arg(long, env = "APP_HEALTH_CONFIG_DIR", value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// Delete the objects of an empty --config-dir. Default: it is taken for a failed mount if its
    /// objects are in use or in the store, and nothing is deleted
    #[arg(long, env = "APP_HEALTH_ALLOW_EMPTY_CONFIG", value_parser = BoolishValueParser::new())]
    pub allow_empty_config: bool,
    /// Serve only these namespaces. Default: all
    #[arg(long, env = "APP_HEALTH_NAMESPACES", value_name = "NAMESPACE[,…]", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// Maximum number of writes per second with --store kubernetes
    #[arg(long, env = "APP_HEALTH_KUBE_QPS", value_name = "NUMBER", default_value = "50")]
    pub kube_qps: NonZeroU32,
    /// Read the configuration, print all errors and warnings, and exit with 0 or 65
    #[arg(long, env = "APP_HEALTH_CHECK", value_parser = BoolishValueParser::new())]
    pub check: bool,
    /// How often agents repeat their health report
    #[arg(long, env = "APP_HEALTH_HEARTBEAT", value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub heartbeat: Duration,
    /// How long after a lost stream the workload counts as disconnected
    #[arg(long, env = "APP_HEALTH_DISCONNECT_GRACE", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub disconnect_grace: Duration,
    /// After a start, how long entries that are older are not marked as disconnected, unless one of
    /// their streams has been open for 30 s
    #[arg(long, env = "APP_HEALTH_RESTART_GRACE", value_name = "DURATION", default_value = "120s", value_parser = duration)]
    pub restart_grace: Duration,
    /// What to do with the endpoint of a workload whose health is unknown
    #[arg(long, env = "APP_HEALTH_UNKNOWN_POLICY", value_enum, default_value_t = Policy::Remove)]
    pub unknown_policy: Policy,
    /// If more than this share of a service's machines, and at least 3, become silent within two
    /// heartbeats (at least 60 s), their endpoints are preserved (self-preservation); 100 always removes them
    #[arg(long, env = "APP_HEALTH_MAX_SILENT_PERCENT", value_name = "PERCENT", default_value_t = 25, value_parser = value_parser!(u8).range(0..=100))]
    pub max_silent_percent: u8,
    /// Remove at most this share of a service's machines because they report ill health. Default:
    /// no limit
    #[arg(long, env = "APP_HEALTH_MAX_UNHEALTHY_PERCENT", value_name = "PERCENT", value_parser = value_parser!(u8).range(0..=100))]
    pub max_unhealthy_percent: Option<u8>,
    /// What to do with the last endpoint of a service; a ServiceEntry can override it
    #[arg(long, env = "APP_HEALTH_LAST_ENDPOINT", value_enum, default_value_t = Policy::Remove)]
    pub last_endpoint: Policy,
    /// Serve listeners and routes for outbound requests too: one listener on this address, usually
    /// 127.0.0.1, for each port number of the services. Default: clusters and endpoints only
    #[arg(long, env = "APP_HEALTH_OUTBOUND_LISTENERS", value_name = "ADDRESS")]
    pub outbound_listeners: Option<IpAddr>,
    /// A namespace whose ServiceEntries other namespaces may see; repeatable, and the environment variable
    /// takes a comma-separated list. `exportTo` of others counts as `.`. Default: all namespaces
    #[arg(long, env = "APP_HEALTH_EXPORT_NAMESPACES", value_name = "NAMESPACE", value_delimiter = ',')]
    pub export_namespaces: Vec<String>,
    /// Delay until changes are pushed, extended by each further change; the first change after a
    /// quiet period is pushed immediately
    #[arg(long, env = "APP_HEALTH_DEBOUNCE", value_name = "DURATION", default_value = "50ms", value_parser = duration)]
    pub debounce: Duration,
    /// Longest time that a change is delayed by --debounce
    #[arg(long, env = "APP_HEALTH_DEBOUNCE_MAX", value_name = "DURATION", default_value = "200ms", value_parser = duration)]
    pub debounce_max: Duration,
    /// New connections per second; the burst is twice that
    #[arg(long, env = "APP_HEALTH_ACCEPT_RATE", value_name = "NUMBER", default_value = "400")]
    pub accept_rate: NonZeroU32,
    /// Maximum number of connections, and of streams; further clients wait, or replace connections of
    /// sources that have more
    #[arg(long, env = "APP_HEALTH_MAX_STREAMS", value_name = "NUMBER", default_value = "20000")]
    pub max_streams: NonZeroUsize,
    /// Maximum number of machines that agents with one certificate identity may register in all
    #[arg(
        long,
        env = "APP_HEALTH_MAX_MACHINES_PER_IDENTITY",
        value_name = "NUMBER",
        default_value = "10000"
    )]
    pub max_machines_per_identity: NonZeroUsize,
    /// Maximum number of machines with one IPv4 address, or in one IPv6 /64 network, that agents with
    /// one certificate identity may register
    #[arg(long, env = "APP_HEALTH_MAX_MACHINES_PER_SOURCE", value_name = "NUMBER", default_value = "64")]
    pub max_machines_per_source: NonZeroUsize,
    /// What to do if the address of an entry is not the one that its agent connects from, as with
    /// NAT: `require` rejects the agent
    #[arg(long, env = "APP_HEALTH_PEER_ADDRESS_CHECK", value_enum, default_value_t = PeerAddressArg::Require)]
    pub peer_address_check: PeerAddressArg,
    /// Copy the labels that an agent sends to its entry, so that it chooses its services. Default:
    /// labels come from the WorkloadGroup only
    #[arg(long, env = "APP_HEALTH_TRUST_NODE_LABELS", value_parser = BoolishValueParser::new())]
    pub trust_node_labels: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreArg {
    /// In a database file of this process.
    Redb,
    /// In Kubernetes, as WorkloadEntry objects.
    Kubernetes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    Remove,
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeerAddressArg {
    Off,
    Warn,
    Require,
}

/// Flags of `workloads`.
#[derive(Debug, clap::Args)]
pub struct WorkloadsArgs {
    #[command(subcommand)]
    pub action: Option<WorkloadsAction>,
    /// URL of discovery's monitoring port
    #[arg(
        long,
        env = "APP_HEALTH_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:15014",
        global = true
    )]
    pub url: String,
    /// Only this namespace
    #[arg(short, long, env = "APP_HEALTH_NAMESPACE", value_name = "NAMESPACE", global = true)]
    pub namespace: Option<String>,
    /// Only workloads of this WorkloadGroup
    #[arg(long, env = "APP_HEALTH_GROUP", value_name = "GROUP", global = true)]
    pub group: Option<String>,
    /// Show only workloads whose condition is True, False or Unknown, or whose endpoint is served
    /// or removed
    #[arg(long, env = "APP_HEALTH_STATE", value_name = "STATE")]
    pub state: Option<String>,
    /// Output format
    #[arg(short, long, env = "APP_HEALTH_OUTPUT", value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Print the workloads again after every change
    #[arg(short, long, env = "APP_HEALTH_WATCH", value_parser = BoolishValueParser::new())]
    pub watch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum WorkloadsAction {
    /// Remove the silent endpoints that self-preservation preserves; run it on the
    /// machine of discovery, and once for each replica
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Json,
}
