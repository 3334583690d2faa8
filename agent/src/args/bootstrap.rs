//! The flags that decide how the bootstrap looks, and those of `bootstrap` itself.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

use crate::address::{Cidr, LocalAddress, OrOff};
use crate::envoy_version::EnvoyVersion;

/// What the bootstrap is made of; for `run` and `bootstrap` alike.
#[derive(Debug, clap::Args)]
pub struct SidecarArgs {
    /// The Pod's primary address, the only one that is probed; of a list (status.podIPs) the first. Also read from INSTANCE_IP.
    /// Default: the machine's first address that is neither loopback nor link-local, else 127.0.0.1
    #[arg(long, env = "APP_HEALTH_INSTANCE_IP", value_name = "ADDRESS[,…]", value_delimiter = ',')]
    pub instance_ip: Vec<IpAddr>,
    /// Where Envoy answers kubelet's probes; `[::]` is IPv4 and IPv6
    #[arg(long, env = "APP_HEALTH_PROBE_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15020")]
    pub probe_address: SocketAddr,
    /// Where Envoy answers GET /stats/prometheus with its own metrics, or `off`
    #[arg(
        long,
        env = "APP_HEALTH_STATS_ADDRESS",
        value_name = "ADDRESS:PORT|off",
        default_value = "[::]:15090"
    )]
    pub stats_address: OrOff<SocketAddr>,
    /// Where the agent answers this machine (drain, quit, debug, merged metrics): a loopback host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_LOCAL_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:15004")]
    pub local_address: LocalAddress,
    /// Envoy's admin port: unix:PATH or a loopback host:port. Default: unix:STATE_DIR/admin.sock, for its owner alone; for an Envoy
    /// whose configuration is not ours 127.0.0.1:15000
    #[arg(long, env = "APP_HEALTH_ADMIN", value_name = "ADDRESS")]
    pub admin: Option<LocalAddress>,
    /// Folder for the bootstrap, the filter and the admin socket, made for its owner alone
    #[arg(long, env = "APP_HEALTH_STATE_DIR", value_name = "DIR", default_value = "/var/run/app-health")]
    pub state_dir: PathBuf,
    /// Take this filter, by the path that Envoy sees, instead of the one in this binary. Default: that one, written to STATE_DIR
    #[arg(long, env = "APP_HEALTH_FILTER_WASM", value_name = "FILE")]
    pub filter_wasm: Option<PathBuf>,
    /// Callers that may probe, a block such as 10.0.0.0/8; repeatable, and the twin is a list with commas. 127.0.0.1 and ::1 always may.
    /// Default: everybody
    #[arg(long, env = "APP_HEALTH_ALLOW_FROM", value_name = "CIDR", value_delimiter = ',')]
    pub allow_from: Vec<Cidr>,
    /// One more port of the proxy that no probe may target, such as a listener of yours; repeatable, and the twin is a list with commas
    #[arg(
        long,
        env = "APP_HEALTH_RESERVED_PORTS",
        value_name = "PORT",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub reserved_port: Vec<u16>,
    /// Probe from 127.0.0.6 and ::6, which rules that capture the Pod's traffic let pass. `auto`: where the machine has the address
    #[arg(long, env = "APP_HEALTH_SOURCE_BIND", value_enum, default_value_t = SourceBind::Auto)]
    pub source_bind: SourceBind,
    /// The Envoy that will read it: 1.40 took to reading a setting of the filter in another place. Default: `run` asks the Envoy that
    /// it starts, `bootstrap` takes the newest that is known
    #[arg(long, env = "APP_HEALTH_ENVOY_VERSION", value_name = "X.Y")]
    pub envoy_version: Option<EnvoyVersion>,
}

/// Flags of `bootstrap`. The prober table comes from the environment: ISTIO_KUBE_APP_PROBERS.
#[derive(Debug, clap::Args)]
#[command(after_help = PROBERS_HELP)]
pub struct BootstrapArgs {
    /// What it is made of.
    #[command(flatten)]
    pub sidecar: SidecarArgs,
    /// Put the filter itself into the bootstrap, so that it needs no file. Envoy keeps those bytes in memory
    #[arg(long, env = "APP_HEALTH_INLINE_FILTER", value_parser = BoolishValueParser::new())]
    pub inline_filter: bool,
    /// Write the bootstrap there, readable for its owner alone; into a link or a device it is written as it is. Default: stdout
    #[arg(long, env = "APP_HEALTH_OUTPUT", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What both commands say about the environment.
pub(super) const PROBERS_HELP: &str = "The probes come from the environment variable ISTIO_KUBE_APP_PROBERS, as Istio's injector \
    writes it: {\"/app-health/app/livez\": {\"httpGet\": {\"path\": \"/live\", \"port\": 8080}, \"timeoutSeconds\": 1}}. Without it every \
    probe is answered 404.";

/// Do probes leave from 127.0.0.6 and ::6?
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SourceBind {
    /// From those that the machine has.
    Auto,
    /// From 127.0.0.6, and from ::6 if the machine has it.
    On,
    /// From wherever the kernel chooses.
    Off,
}
