//! Flags of `run` about health reporting to a discovery server.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

use super::values::{
    dns_label, dns_subdomain, duration, heartbeat, heartbeat_or_zero, label, label_value, locality,
};

/// Health reporting to a discovery server; disabled without `--discovery`.
#[derive(Debug, clap::Args)]
pub struct DiscoveryArgs {
    /// Report this machine's health to this discovery server, either app-health's or istiod;
    /// repeatable, and the environment variable takes a comma-separated list. Each connection
    /// attempt resolves the name again and tries the addresses in random order. Default: health is
    /// not reported
    #[arg(long, env = "APP_HEALTH_DISCOVERY", value_name = "HOST:PORT", value_delimiter = ',')]
    pub discovery: Vec<String>,
    /// PEM file with the CA certificates that verify the server's certificate; reloaded when it
    /// changes, as are the next two files
    #[arg(long, env = "APP_HEALTH_DISCOVERY_CA", value_name = "FILE")]
    pub discovery_ca: Option<PathBuf>,
    /// PEM file with this workload's certificate and its chain
    #[arg(long, env = "APP_HEALTH_DISCOVERY_CERT", value_name = "FILE")]
    pub discovery_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key
    #[arg(long, env = "APP_HEALTH_DISCOVERY_KEY", value_name = "FILE")]
    pub discovery_key: Option<PathBuf>,
    /// File with a token, for example of a Kubernetes service account, that is sent to the server;
    /// read again for each connection. istiod accepts it instead of a client certificate
    #[arg(long, env = "APP_HEALTH_DISCOVERY_TOKEN_FILE", value_name = "FILE")]
    pub discovery_token_file: Option<PathBuf>,
    /// Name that the server's certificate must carry: a DNS name, an IP address, or spiffe://...
    /// Default: the host of --discovery
    #[arg(long, env = "APP_HEALTH_DISCOVERY_SAN", value_name = "NAME")]
    pub discovery_san: Option<String>,
    /// Connect without TLS; allowed only for loopback addresses, or with --insecure
    #[arg(long, env = "APP_HEALTH_DISCOVERY_PLAINTEXT", value_parser = BoolishValueParser::new())]
    pub discovery_plaintext: bool,
    /// Allow --discovery-plaintext for other machines too. The connection is then neither encrypted
    /// nor authenticated
    #[arg(long, env = "APP_HEALTH_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,
    /// Variant of the xDS protocol, state of the world or incremental; both are equivalent here. With
    /// --proxy-xds, the variant that a rendered bootstrap makes Envoy use
    #[arg(long, env = "APP_HEALTH_XDS", value_enum, default_value_t = Xds::Sotw)]
    pub xds: Xds,
    /// Serve xDS and certificates to Envoy on the Unix socket xds.sock in the state directory, and pass
    /// xDS on to --discovery. Health reports use the same stream. A rendered bootstrap uses the socket
    #[arg(long, env = "APP_HEALTH_PROXY_XDS", value_parser = BoolishValueParser::new())]
    pub proxy_xds: bool,
    /// Maximum age of the stored xDS configuration that an Envoy receives while no control plane
    /// answers; 0 disables storing it
    #[arg(long, env = "APP_HEALTH_XDS_CACHE_MAX_AGE", value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub xds_cache_max_age: Duration,
    /// WorkloadGroup from which the server creates a WorkloadEntry. Default: the name in
    /// --workload-group
    #[arg(long, env = "APP_HEALTH_GROUP", value_name = "NAME", value_parser = dns_subdomain)]
    pub group: Option<String>,
    /// Existing WorkloadEntry; instead of --group
    #[arg(long, env = "APP_HEALTH_WORKLOAD_ENTRY", value_name = "NAME", value_parser = dns_subdomain)]
    pub workload_entry: Option<String>,
    /// Namespace of the workload, which its certificate must prove. Default: that of
    /// --workload-group, otherwise default
    #[arg(long, env = "APP_HEALTH_NAMESPACE", value_name = "NAME", value_parser = dns_label)]
    pub namespace: Option<String>,
    /// Service account of the workload, which its certificate must prove. Default: that of
    /// --workload-group, otherwise default
    #[arg(long, env = "APP_HEALTH_SERVICEACCOUNT", value_name = "NAME", value_parser = dns_subdomain)]
    pub service_account: Option<String>,
    /// Network of the WorkloadEntry
    #[arg(long, env = "APP_HEALTH_NETWORK", value_name = "NAME", value_parser = label_value)]
    pub network: Option<String>,
    /// Locality of the WorkloadEntry
    #[arg(long, env = "APP_HEALTH_LOCALITY", value_name = "REGION[/ZONE[/SUBZONE]]", value_parser = locality)]
    pub locality: Option<[String; 3]>,
    /// Label of the WorkloadEntry; repeatable, and the environment variable takes a comma-separated
    /// list
    #[arg(long, env = "APP_HEALTH_LABEL", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub label: Vec<(String, String)>,
    /// Interval of health reports to an app-health server; the server may ask for a shorter one
    #[arg(long, env = "APP_HEALTH_HEARTBEAT", value_name = "DURATION", default_value = "60s", value_parser = heartbeat)]
    pub heartbeat: Duration,
    /// Interval of health reports to a server that implements only Istio's protocol, such as
    /// istiod; 0 disables them
    #[arg(long, env = "APP_HEALTH_ISTIO_HEARTBEAT", value_name = "DURATION", default_value = "5m", value_parser = heartbeat_or_zero)]
    pub istio_heartbeat: Duration,
    /// At shutdown, how long to wait for the server to acknowledge the final report
    #[arg(long, env = "APP_HEALTH_FINAL_REPORT_TIMEOUT", value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub final_report_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Xds {
    /// State of the world.
    Sotw,
    /// Incremental.
    Delta,
}

impl From<Xds> for xds::Variant {
    fn from(variant: Xds) -> Self {
        match variant {
            Xds::Sotw => Self::Sotw,
            Xds::Delta => Self::Delta,
        }
    }
}
