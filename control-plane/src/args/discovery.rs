//! Flags of `discovery` and `workloads`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

use super::duration;

/// Flags of `discovery`.
#[derive(Debug, clap::Args)]
pub struct DiscoveryArgs {
    /// Where agents and Envoys are served with mutual TLS. Default: `[::]:15012` if there is a certificate
    #[arg(long, env = "APP_HEALTH_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// The server's certificate chain, PEM; read again when it changes
    #[arg(long, env = "APP_HEALTH_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, env = "APP_HEALTH_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Who signs certificates of agents and Envoys, PEM
    #[arg(long, env = "APP_HEALTH_CLIENT_CA", value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// Where they are served in plaintext: nobody proves who he is. Usually 127.0.0.1:15010
    #[arg(long, env = "APP_HEALTH_PLAINTEXT_LISTEN", value_name = "ADDRESS:PORT")]
    pub plaintext_listen: Option<SocketAddr>,
    /// Plaintext on other addresses than loopback
    #[arg(long, env = "APP_HEALTH_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,
    /// Where metrics, health and /debug/workloads are answered
    #[arg(
        long,
        env = "APP_HEALTH_MONITORING_ADDRESS",
        value_name = "ADDRESS:PORT",
        default_value = "[::]:15014"
    )]
    pub monitoring_address: SocketAddr,
    /// /debug for callers that are not on this machine
    #[arg(long, env = "APP_HEALTH_DEBUG_ANY", value_parser = BoolishValueParser::new())]
    pub debug_any: bool,
    /// Accepted in certificates; repeatable
    #[arg(
        long,
        env = "APP_HEALTH_TRUST_DOMAIN",
        value_name = "DOMAIN",
        value_delimiter = ',',
        default_value = "cluster.local"
    )]
    pub trust_domain: Vec<String>,
    /// Where entries live
    #[arg(long, env = "APP_HEALTH_STORE", value_enum, default_value_t = StoreArg::Redb)]
    pub store: StoreArg,
    /// The file of --store redb
    #[arg(
        long,
        env = "APP_HEALTH_STORE_PATH",
        value_name = "FILE",
        default_value = "/var/lib/app-health/discovery.redb"
    )]
    pub store_path: PathBuf,
    /// YAML files with WorkloadGroup, WorkloadEntry and ServiceEntry; needed with --store redb
    #[arg(long, env = "APP_HEALTH_CONFIG_DIR", value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// Serve only these namespaces. Default: all
    #[arg(long, env = "APP_HEALTH_NAMESPACES", value_name = "NAMESPACE[,…]", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// Writes a second with --store kubernetes
    #[arg(long, env = "APP_HEALTH_KUBE_QPS", value_name = "NUMBER", default_value_t = 50)]
    pub kube_qps: u32,
    /// Read the configuration, print every error and warning, end with 0 or 65
    #[arg(long, env = "APP_HEALTH_CHECK", value_parser = BoolishValueParser::new())]
    pub check: bool,
    /// How often agents say their state again
    #[arg(long, env = "APP_HEALTH_HEARTBEAT", value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub heartbeat: Duration,
    /// From a lost stream to its consequence
    #[arg(long, env = "APP_HEALTH_DISCONNECT_GRACE", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub disconnect_grace: Duration,
    /// After a start, entries that are older are not missed for so long, until a stream of theirs has lived for 30 s
    #[arg(long, env = "APP_HEALTH_RESTART_GRACE", value_name = "DURATION", default_value = "120s", value_parser = duration)]
    pub restart_grace: Duration,
    /// The endpoint of a workload of which nobody knows whether it is healthy
    #[arg(long, env = "APP_HEALTH_UNKNOWN_POLICY", value_enum, default_value_t = Policy::Remove)]
    pub unknown_policy: Policy,
    /// The last endpoint of a service; a ServiceEntry may say otherwise
    #[arg(long, env = "APP_HEALTH_LAST_ENDPOINT", value_enum, default_value_t = Policy::Remove)]
    pub last_endpoint: Policy,
    /// Changes after the first one wait for so long a quiet
    #[arg(long, env = "APP_HEALTH_DEBOUNCE", value_name = "DURATION", default_value = "50ms", value_parser = duration)]
    pub debounce: Duration,
    /// And at most so long
    #[arg(long, env = "APP_HEALTH_DEBOUNCE_MAX", value_name = "DURATION", default_value = "200ms", value_parser = duration)]
    pub debounce_max: Duration,
    /// New connections a second; twice that at once
    #[arg(long, env = "APP_HEALTH_ACCEPT_RATE", value_name = "NUMBER", default_value_t = 400)]
    pub accept_rate: u32,
    /// Connections and streams at a time; more wait
    #[arg(long, env = "APP_HEALTH_MAX_STREAMS", value_name = "NUMBER", default_value_t = 20_000)]
    pub max_streams: usize,
    /// Must the address of an entry be the one that its agent connects from
    #[arg(long, env = "APP_HEALTH_PEER_ADDRESS_CHECK", value_enum, default_value_t = PeerAddressArg::Warn)]
    pub peer_address_check: PeerAddressArg,
}

/// Where entries live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreArg {
    /// In a file of this process.
    Redb,
    /// In Kubernetes, as WorkloadEntry.
    Kubernetes,
}

/// What becomes of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum Policy {
    Remove,
    Keep,
}

/// What is done about another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum PeerAddressArg {
    Off,
    Warn,
    Require,
}

/// Flags of `workloads`.
#[derive(Debug, clap::Args)]
pub struct WorkloadsArgs {
    /// Monitoring port of discovery
    #[arg(long, env = "APP_HEALTH_URL", value_name = "URL", default_value = "http://127.0.0.1:15014")]
    pub url: String,
    /// Only this namespace
    #[arg(short, long, env = "APP_HEALTH_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Only workloads of this group
    #[arg(long, env = "APP_HEALTH_GROUP", value_name = "GROUP")]
    pub group: Option<String>,
    /// Only those whose condition is True, False or Unknown, or whose endpoint is served or removed
    #[arg(long, env = "APP_HEALTH_STATE", value_name = "STATE")]
    pub state: Option<String>,
    /// How it is written
    #[arg(short, long, env = "APP_HEALTH_OUTPUT", value_enum, default_value_t = OutputArg::Table)]
    pub output: OutputArg,
    /// Again whenever it changes
    #[arg(short, long, env = "APP_HEALTH_WATCH", value_parser = BoolishValueParser::new())]
    pub watch: bool,
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum OutputArg {
    Table,
    Json,
}
