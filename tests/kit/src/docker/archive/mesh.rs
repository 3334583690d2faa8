//! The images of an Istio mesh, in the layout of those that Istio publishes.

use std::path::PathBuf;
use std::process::Command;

use super::{DEBIAN, built, there};
use crate::docker::Daemon;
use crate::docker::images::place;
use crate::envoy::workspace;

/// Istio's image `proxyv2`: Envoy, Istio's agent, its bootstrap template, and iptables.
pub(super) const PROXY: &str = "app-health-test/proxyv2:mesh";
/// The same with our agent, as a user may build it.
pub const PROXY_WITH_OURS: &str = "app-health-test/proxyv2-with-app-health:1";
/// Istio's control plane.
pub(super) const PILOT: &str = "app-health-test/pilot:mesh";
/// Our agent, built with the shipped Dockerfile.
pub const AGENT: &str = concat!("app-health-istio:", env!("CARGO_PKG_VERSION"));

const PROXY_FILE: &str = r#"FROM app-health-test/envoy:1
WORKDIR /
COPY envoy_bootstrap.json /var/lib/istio/envoy/envoy_bootstrap_tmpl.json
COPY pilot-agent /usr/local/bin/pilot-agent
ENTRYPOINT ["/usr/local/bin/pilot-agent"]
"#;

const PROXY_WITH_OURS_FILE: &str = r#"FROM app-health-test/proxyv2:mesh
COPY app-health-agent /opt/app-health/app-health-agent
"#;

const PILOT_FILE: &str = r#"FROM app-health-test/debian:1
COPY pilot-discovery /usr/local/bin/pilot-discovery
USER 1337:1337
ENTRYPOINT ["/usr/local/bin/pilot-discovery"]
"#;

/// Variable with an archive of Istio's own image `proxyv2`, which takes the place of the one that is built here.
const PROXY_ARCHIVE: &str = "APP_HEALTH_TEST_PROXYV2";

/// Returns the archive of Istio's own image, if it is used.
pub fn istios_image() -> Option<PathBuf> {
    std::env::var_os(PROXY_ARCHIVE).map(PathBuf::from)
}

/// The files that the images are built from.
pub(super) struct Parts {
    /// With TLS and xDS.
    agent: PathBuf,
    pilot_agent: PathBuf,
    pilot_discovery: PathBuf,
    bootstrap: PathBuf,
    istios_image: Option<PathBuf>,
}

impl Parts {
    pub(super) fn find() -> Result<Self, String> {
        let istio = |name: &str| {
            there(workspace().join("target/istio").join(name), "./justw test-istio-mesh builds it")
        };
        let agent = there(built("release/app-health-agent"), "./justw release-vm builds it")?;
        // `./justw release` writes the agent for Pods to the same place.
        let help = Command::new(&agent).arg("--help").output().expect("the agent starts");
        if !String::from_utf8_lossy(&help.stdout).lines().any(|line| line.trim().starts_with("proxy ")) {
            return Err(format!("{} is the agent for Pods: run ./justw release-vm", agent.display()));
        }
        Ok(Self {
            agent,
            pilot_agent: istio("pilot-agent")?,
            pilot_discovery: istio("pilot-discovery")?,
            bootstrap: istio("envoy_bootstrap.json")?,
            istios_image: istios_image()
                .map(|file| there(file, "./justw test-istio-mesh-proxyv2 downloads it"))
                .transpose()?,
        })
    }

    pub(super) fn files(&self) -> Vec<&PathBuf> {
        let Self { agent, pilot_agent, pilot_discovery, bootstrap, istios_image } = self;
        [agent, pilot_agent, pilot_discovery, bootstrap].into_iter().chain(istios_image).collect()
    }
}

impl Daemon {
    /// Builds the images, after those that they are based on.
    pub(super) fn make_mesh(&self, parts: &Parts) {
        if let Some(file) = &parts.istios_image {
            let loaded = self.ask(&["load", "--input", file.to_str().expect("UTF-8")]);
            let name =
                loaded.trim().strip_prefix("Loaded image: ").expect("an archive of one image with a name");
            self.ask(&["tag", name, PROXY]);
        } else {
            let context = self.with_file("proxyv2", &parts.pilot_agent, "pilot-agent");
            place(&parts.bootstrap, &context.join("envoy_bootstrap.json"));
            self.build(PROXY, PROXY_FILE, &context, &[]);
        }
        let context = self.with_file("proxyv2-with-app-health", &parts.agent, "app-health-agent");
        self.build(PROXY_WITH_OURS, PROXY_WITH_OURS_FILE, &context, &[]);
        let context = self.with_file("pilot", &parts.pilot_discovery, "pilot-discovery");
        self.build(PILOT, PILOT_FILE, &context, &[]);
        let context = self.with_file("istio", &parts.agent, "target/release/app-health-agent");
        self.build_shipped("Dockerfile.istio", AGENT, &context, &format!("BASE_IMAGE={DEBIAN}"));
    }
}
