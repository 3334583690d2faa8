//! The images of `target/dist`, loaded into a Docker daemon: the same cases as for those of the
//! Dockerfiles, whose names they take.

use kit::docker::{CONTROL_PLANE, Daemon, SIDECAR};
use kit::envoy::workspace;
use serde_json::Value;

use crate::control_plane::control_plane;
use crate::life;

/// The image for Istio's sidecar, which no other suite of this crate uses.
const ISTIO: &str = "app-health-istio";

#[test]
#[ignore = "needs the images: ./justw release-rehearsal"]
fn released_images() {
    let Some(daemon) = Daemon::start("released") else { return };
    let version = env!("CARGO_PKG_VERSION");
    for (image, name) in
        [("app-health", SIDECAR), ("app-health-control-plane", CONTROL_PLANE), (ISTIO, ISTIO)]
    {
        let file = workspace().join(format!("target/dist/{image}-{version}.oci.tar"));
        daemon.ask(&["load", "--input", file.to_str().expect("UTF-8")]);
        daemon.ask(&["tag", &format!("{image}:{version}"), name]);
        let labels = daemon.ask(&["image", "inspect", "--format", "{{json .Config.Labels}}", name]);
        let labels: Value = serde_json::from_str(&labels).expect("JSON");
        assert_eq!(labels["org.opencontainers.image.version"], version, "{name}");
        let history = daemon.ask(&["image", "inspect", "--format", "{{len .RootFS.Layers}}", name]);
        assert_eq!(history.trim(), "2", "{name} is not the image of the Dockerfile");
    }
    let copies = ["run", "--rm", "--tmpfs", "/opt/app-health:mode=0777", ISTIO, "copy", "/opt/app-health"];
    daemon.ask(&copies);
    std::thread::scope(|scope| {
        let cases = [
            daemon.spawn(scope, "released probes", life::probes),
            daemon.spawn(scope, "released image", life::image),
            daemon.spawn(scope, "released drained", life::drained),
            daemon.spawn(scope, "released control plane", control_plane),
        ];
        let failed = cases.into_iter().map(|case| case.join()).filter(Result::is_err).count();
        assert_eq!(failed, 0, "the panic messages are printed above");
    });
}
