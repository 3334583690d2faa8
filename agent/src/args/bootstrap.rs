//! Flags that determine the rendered bootstrap, and the flags of `bootstrap`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

use address::{Clients, LocalAddress, OrOff};
use envoy_bootstrap::envoy_version::EnvoyBuild;
use envoy_bootstrap::filter_choice::WantedFilter;

/// Flags that determine the rendered bootstrap, shared by `run` and `bootstrap`.
#[derive(Debug, Clone, clap::Args)]
pub struct SidecarArgs {
    /// The Pod's primary IP address, the only one that is probed; of a list (status.podIPs) the
    /// first. Also read from INSTANCE_IP. Default: the machine's first address that is neither
    /// loopback nor link-local, otherwise 127.0.0.1
    #[arg(long, env = "APP_HEALTH_INSTANCE_IP", value_name = "ADDRESS[,…]", value_delimiter = ',')]
    pub instance_ip: Vec<IpAddr>,
    /// Listener for kubelet's probes; `[::]` accepts IPv4 and IPv6
    #[arg(long, env = "APP_HEALTH_PROBE_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15020")]
    pub probe_address: SocketAddr,
    /// Address of GET /stats/prometheus with Envoy's own metrics, or `off`: a listener of the agent with
    /// `run`, of Envoy with `bootstrap`
    #[arg(
        long,
        env = "APP_HEALTH_STATS_ADDRESS",
        value_name = "ADDRESS:PORT|off",
        default_value = "[::]:15090"
    )]
    pub stats_address: OrOff<SocketAddr>,
    /// Listener of the agent for this machine (status page, drain, quit, merged metrics): a loopback
    /// host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_LOCAL_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:15004")]
    pub local_address: LocalAddress,
    /// Envoy's admin port: unix:PATH or a loopback host:port. Default: unix:STATE_DIR/admin.sock,
    /// accessible only to its owner; 127.0.0.1:15000 if the agent does not render Envoy's
    /// configuration
    #[arg(long, env = "APP_HEALTH_ADMIN", value_name = "ADDRESS")]
    pub admin: Option<LocalAddress>,
    /// Directory for the bootstrap, the filter and the admin socket, created with access only for
    /// its owner
    #[arg(long, env = "APP_HEALTH_STATE_DIR", value_name = "DIR", default_value = "/var/run/app-health")]
    pub state_dir: PathBuf,
    /// Form of the filter: `native` needs less memory and CPU time, `wasm` runs in a sandbox and in
    /// any Envoy. `auto`: native if it is tested with the version of Envoy, otherwise wasm
    #[arg(long, env = "APP_HEALTH_FILTER", value_enum, default_value_t = WantedFilter::Auto)]
    pub filter: WantedFilter,
    /// Use this wasm filter instead of the embedded one; the path must be valid for Envoy. Default: the
    /// embedded filter, written to STATE_DIR
    #[arg(long, env = "APP_HEALTH_FILTER_WASM", value_name = "FILE")]
    pub filter_wasm: Option<PathBuf>,
    /// Clients that may probe and call lifecycle hooks: a CIDR block such as 10.0.0.0/8, or `node`,
    /// the addresses of --node-ip and the Pod's gateways; repeatable, and the environment variable
    /// takes a comma-separated list. 127.0.0.1 and ::1 are always allowed. Default: any client may
    /// probe, and the node may call hooks if --node-ip is set
    #[arg(long, env = "APP_HEALTH_ALLOW_FROM", value_name = "CIDR|node", value_delimiter = ',')]
    pub allow_from: Vec<Clients>,
    /// The node's addresses (status.hostIP), from which kubelet may send its requests; other clients
    /// cannot take the connections of these addresses. Repeatable, and the environment variable takes
    /// a comma-separated list
    #[arg(long, env = "APP_HEALTH_NODE_IP", value_name = "ADDRESS[,…]", value_delimiter = ',')]
    pub node_ip: Vec<IpAddr>,
    /// An additional port of the proxy that no probe may target, such as a listener of yours;
    /// repeatable, and the environment variable takes a comma-separated list
    #[arg(
        long,
        env = "APP_HEALTH_RESERVED_PORTS",
        value_name = "PORT",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub reserved_port: Vec<u16>,
    /// Use connections to the application again, which takes less time and CPU. kubelet opens one for
    /// every probe, so a verdict may differ: an application that accepts no new connections still
    /// passes
    #[arg(long, env = "APP_HEALTH_REUSE_CONNECTIONS", value_parser = BoolishValueParser::new())]
    pub reuse_connections: bool,
    /// Send probes from 127.0.0.6 and ::6, which the iptables rules that capture the Pod's traffic
    /// exclude. `auto`: only if the machine has the address
    #[arg(long, env = "APP_HEALTH_SOURCE_BIND", value_enum, default_value_t = SourceBind::Auto)]
    pub source_bind: SourceBind,
    /// Version of the Envoy that will read the bootstrap; 1.40 and newer expect one setting of the
    /// filter in another place. Default: `run` queries the Envoy binary, `bootstrap` assumes the
    /// newest known version
    #[arg(long, env = "APP_HEALTH_ENVOY_VERSION", value_name = "X.Y")]
    pub envoy_version: Option<EnvoyBuild>,
}

/// Flags of `bootstrap`. The prober table comes from the environment variable
/// ISTIO_KUBE_APP_PROBERS.
#[derive(Debug, clap::Args)]
#[command(after_help = PROBERS_HELP)]
pub struct BootstrapArgs {
    #[command(flatten)]
    pub sidecar: SidecarArgs,
    /// Embed the filter in the bootstrap, so that no separate file is needed. Envoy keeps these
    /// bytes in memory
    #[arg(long, env = "APP_HEALTH_INLINE_FILTER", value_parser = BoolishValueParser::new())]
    pub inline_filter: bool,
    /// File for the bootstrap, readable only by its owner; an existing link or device is written to
    /// directly. Default: stdout
    #[arg(long, env = "APP_HEALTH_OUTPUT", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Help text about the environment, shared by `run` and `bootstrap`.
pub(super) const PROBERS_HELP: &str = "The probes come from the environment variable ISTIO_KUBE_APP_PROBERS, in the format of Istio's \
    injector: {\"/app-health/app/livez\": {\"httpGet\": {\"path\": \"/live\", \"port\": 8080}, \"timeoutSeconds\": 1}}. Without it every \
    probe is answered with 404.";

/// Whether probes are sent from 127.0.0.6 and ::6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SourceBind {
    /// Use the addresses that the machine has.
    Auto,
    /// Use 127.0.0.6, and ::6 if the machine has it.
    On,
    /// Let the kernel choose the source address.
    Off,
}
