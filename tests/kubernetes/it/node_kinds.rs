//! The kinds of probes, as rows: what a container declares, how its application is made to fail, and in which words kubelet tells it, of
//! the bare container and of the one behind the sidecar.

use serde_json::{Value, json};

/// What kubelet says of one cause: about the plain Pod, about the one with the sidecar.
pub(crate) type Words = [&'static str; 2];

const REFUSED: &str = "connect: connection refused";

/// One kind of probe.
pub(crate) struct Kind {
    /// The container's name.
    pub(crate) name: &'static str,
    /// The switch of the application that it depends on.
    pub(crate) protocol: &'static str,
    /// The application says no.
    pub(crate) failing: Words,
    /// The application does nothing any more.
    pub(crate) stuck: Stuck,
    /// The application does not listen.
    pub(crate) absent: Words,
    handler: fn(Ports) -> Value,
}

/// How an application gets stuck.
pub(crate) struct Stuck {
    /// The position of its switch.
    pub(crate) behaviour: &'static str,
    pub(crate) words: Words,
}

/// Every kind; a database says no by a closed port, and nobody sees that it hangs.
pub(crate) static KINDS: [Kind; 5] = [
    Kind {
        name: "http",
        protocol: "http",
        failing: ["statuscode: 503", "statuscode: 503"],
        stuck: Stuck { behaviour: "hanging", words: ["Client.Timeout exceeded", "statuscode: 504"] },
        absent: [REFUSED, "statuscode: 502"],
        handler: |_| json!({"httpGet": {"path": "/ready", "port": "http"}}),
    },
    Kind {
        name: "https",
        protocol: "https",
        failing: ["statuscode: 503", "statuscode: 503"],
        stuck: Stuck { behaviour: "hanging", words: ["Client.Timeout exceeded", "statuscode: 504"] },
        absent: [REFUSED, "statuscode: 502"],
        handler: |_| json!({"httpGet": {"path": "/ready", "port": "https", "scheme": "HTTPS"}}),
    },
    Kind {
        name: "tcp",
        protocol: "tcp",
        failing: [REFUSED, "statuscode: 502"],
        stuck: Stuck { behaviour: "failing", words: [REFUSED, "statuscode: 502"] },
        absent: [REFUSED, "statuscode: 502"],
        handler: |_| json!({"tcpSocket": {"port": "tcp"}}),
    },
    Kind {
        name: "grpc",
        protocol: "grpc",
        failing: ["NOT_SERVING", "statuscode: 521"],
        stuck: Stuck { behaviour: "hanging", words: ["context deadline exceeded", "statuscode: 504"] },
        absent: ["context deadline exceeded", "statuscode: 502"],
        handler: |ports| json!({"grpc": {"port": ports.grpc()}}),
    },
    // Nobody but kubelet can run a command in a container: it stays as it is.
    Kind {
        name: "exec",
        protocol: "http",
        failing: ["503 Service Unavailable", "503 Service Unavailable"],
        stuck: Stuck { behaviour: "failing", words: ["503 Service Unavailable", "503 Service Unavailable"] },
        absent: ["Connection refused", "Connection refused"],
        handler: |ports| {
            let url = format!("http://127.0.0.1:{}/ready", ports.http());
            json!({"exec": {"command": ["wget", "-q", "-O", "/dev/null", url]}})
        },
    },
];

/// Every kind with the ports of its application in the Pod of all.
pub(crate) fn all() -> impl Iterator<Item = (Ports, &'static Kind)> {
    (0..).map(Ports::of).zip(&KINDS)
}

/// The name of the Pod that has a container for each kind.
pub(crate) const ALL: &str = "all";

/// That Pod, with these flags of its applications and these probes, each of its container's kind: the field, and what the probe has
/// besides the handler.
pub(crate) fn pod_of_all(flags: &[&str], probes: &[(&str, Value)]) -> Value {
    let containers: Vec<Value> = all().map(|(ports, kind)| kind.container(ports, flags, probes)).collect();
    pod(ALL, &containers)
}

/// The ports of one application among several in a Pod.
#[derive(Clone, Copy)]
pub(crate) struct Ports(u16);

impl Ports {
    /// Of the application with this number in its Pod.
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

    /// A container with the application on these ports, which have names.
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

impl Kind {
    /// A container with probes of this kind.
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

/// A Pod of such containers, which goes at once. Nobody has set up a DNS server in the cluster, and kubelet would tell it as an event.
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
