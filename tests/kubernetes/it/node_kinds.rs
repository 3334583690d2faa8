//! The kinds of probes as a table: the declared probe, how its application fails, and the words of
//! the kubelet's events, without the sidecar and with it.

use serde_json::{Value, json};

/// Words of the kubelet's event for one cause, for the Pod without the sidecar and for the one with
/// it.
pub(crate) type EventText = [&'static str; 2];

const REFUSED: &str = "connect: connection refused";

pub(crate) struct ProbeKind {
    /// The name of the kind is also the container's name.
    pub(crate) name: &'static str,
    /// The protocol in the path of the application's switch.
    pub(crate) protocol: &'static str,
    /// The event when the application reports a failure.
    pub(crate) failing: EventText,
    /// The event when the application is stuck.
    pub(crate) hanging: Hanging,
    /// The event when the application does not listen.
    pub(crate) not_listening: EventText,
    handler: fn(Ports) -> Value,
}

/// How an application gets stuck, and the event for that.
pub(crate) struct Hanging {
    /// The behavior in the path of the application's switch.
    pub(crate) behavior: &'static str,
    pub(crate) words: EventText,
}

/// All kinds of probes. A TCP application fails by closing its port; a TCP probe cannot detect that
/// it hangs.
pub(crate) static KINDS: [ProbeKind; 5] = [
    ProbeKind {
        name: "http",
        protocol: "http",
        failing: ["statuscode: 503", "statuscode: 503"],
        hanging: Hanging { behavior: "hanging", words: ["Client.Timeout exceeded", "statuscode: 504"] },
        not_listening: [REFUSED, "statuscode: 502"],
        handler: |_| json!({"httpGet": {"path": "/ready", "port": "http"}}),
    },
    ProbeKind {
        name: "https",
        protocol: "https",
        failing: ["statuscode: 503", "statuscode: 503"],
        hanging: Hanging { behavior: "hanging", words: ["Client.Timeout exceeded", "statuscode: 504"] },
        not_listening: [REFUSED, "statuscode: 502"],
        handler: |_| json!({"httpGet": {"path": "/ready", "port": "https", "scheme": "HTTPS"}}),
    },
    ProbeKind {
        name: "tcp",
        protocol: "tcp",
        failing: [REFUSED, "statuscode: 502"],
        hanging: Hanging { behavior: "failing", words: [REFUSED, "statuscode: 502"] },
        not_listening: [REFUSED, "statuscode: 502"],
        handler: |_| json!({"tcpSocket": {"port": "tcp"}}),
    },
    ProbeKind {
        name: "grpc",
        protocol: "grpc",
        failing: ["NOT_SERVING", "statuscode: 521"],
        hanging: Hanging { behavior: "hanging", words: ["context deadline exceeded", "statuscode: 504"] },
        not_listening: ["context deadline exceeded", "statuscode: 502"],
        handler: |ports| json!({"grpc": {"port": ports.grpc()}}),
    },
    // Only kubelet can run a command in a container, so the injector leaves exec probes
    // unchanged.
    ProbeKind {
        name: "exec",
        protocol: "http",
        failing: ["503 Service Unavailable", "503 Service Unavailable"],
        hanging: Hanging {
            behavior: "failing",
            words: ["503 Service Unavailable", "503 Service Unavailable"],
        },
        not_listening: ["Connection refused", "Connection refused"],
        handler: |ports| {
            let url = format!("http://127.0.0.1:{}/ready", ports.http());
            json!({"exec": {"command": ["wget", "-q", "-O", "/dev/null", url]}})
        },
    },
];

/// Returns every kind with the ports of its application in the Pod of [`pod_of_all`].
pub(crate) fn all() -> impl Iterator<Item = (Ports, &'static ProbeKind)> {
    (0..).map(Ports::of).zip(&KINDS)
}

/// The name of the Pod that has a container for each kind of probe.
pub(crate) const ALL: &str = "all";

/// A Pod with a container for each kind of probe. `flags` are the flags of the applications;
/// `probes` has the name of each probe's field, and the probe's settings without its handler.
pub(crate) fn pod_of_all(flags: &[&str], probes: &[(&str, Value)]) -> Value {
    let containers: Vec<Value> = all().map(|(ports, kind)| kind.container(ports, flags, probes)).collect();
    pod(ALL, &containers)
}

/// The ports of one application in a Pod with several applications.
#[derive(Clone, Copy)]
pub(crate) struct Ports(u16);

impl Ports {
    /// The ports of the application with this number in its Pod.
    pub(crate) fn of(number: u16) -> Self {
        Self(10_000 + 10 * number)
    }

    pub(crate) fn http(self) -> u16 {
        self.0
    }

    pub(crate) fn https(self) -> u16 {
        self.0 + 1
    }

    pub(crate) fn tcp(self) -> u16 {
        self.0 + 2
    }

    pub(crate) fn grpc(self) -> u16 {
        self.0 + 3
    }

    pub(crate) fn control(self) -> u16 {
        self.0 + 4
    }

    /// A container with the application on these ports, which are named.
    pub(crate) fn container(self, name: &str, flags: &[&str]) -> Value {
        let ports = [
            ("http", self.http()),
            ("https", self.https()),
            ("tcp", self.tcp()),
            ("grpc", self.grpc()),
            ("control", self.control()),
        ];
        let arguments = ports.iter().flat_map(|(name, port)| [format!("--{name}"), port.to_string()]);
        let arguments: Vec<String> = arguments.chain(flags.iter().map(ToString::to_string)).collect();
        let named = ports.map(|(name, port)| json!({"name": name, "containerPort": port}));
        json!({"name": name, "image": "app-health-test/application:1", "args": arguments, "ports": named})
    }
}

impl ProbeKind {
    /// A container with these probes of this kind.
    pub(crate) fn container(&self, ports: Ports, flags: &[&str], probes: &[(&str, Value)]) -> Value {
        let mut container = ports.container(self.name, flags);
        for (field, settings) in probes {
            let mut probe = (self.handler)(ports);
            let settings = settings.as_object().expect("an object").clone();
            probe.as_object_mut().expect("an object").extend(settings);
            container[field] = probe;
        }
        container
    }
}

/// A Pod with these containers, which is deleted without delay. Its `dnsPolicy` prevents an event
/// of kubelet, since the cluster has no DNS server.
pub(crate) fn pod(name: &str, containers: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false, "enableServiceLinks": false,
            "dnsPolicy": "Default",
            "containers": containers,
        },
    })
}
