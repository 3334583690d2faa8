//! Generates Pods, most of which the API server accepts: resources of containers and of the Pod,
//! security contexts, ports, probes, init containers and volumes in many combinations.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Returns the Pod of a seed.
pub(crate) fn pod(seed: u64) -> Value {
    let mut generator = Generator { rng: Rng::with_seed(seed) };
    generator.pod(seed)
}

struct Generator {
    rng: Rng,
}

impl Generator {
    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    fn choose(&mut self, values: &[Value]) -> Value {
        values[self.rng.usize(0..values.len())].clone()
    }

    fn pod(&mut self, seed: u64) -> Value {
        // Small containers fit into the resources of a Pod.
        let pod_resources = self.one_in(3);
        let style = if pod_resources { 5 } else { self.rng.u32(0..5) };
        let host_network = self.one_in(25);
        let mut spec = Map::new();
        let count = self.rng.usize(1..=3);
        let containers: Vec<Value> = ["app", "web", "db"]
            .iter()
            .take(count)
            .map(|name| self.container(name, style, host_network))
            .collect();
        let mut names = vec!["migrate", "helper", "setup"];
        let mut inits = Vec::new();
        while self.one_in(3) && !names.is_empty() {
            let name = names.remove(0);
            let mut init = self.container(name, style, host_network);
            if self.rng.bool() {
                init["restartPolicy"] = "Always".into();
            } else {
                for field in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
                    init.as_object_mut().expect("a container").remove(field);
                }
            }
            inits.push(init);
        }
        let mut containers = containers;
        if self.one_in(8) {
            let sidecar = self.declared_sidecar();
            if self.rng.bool() { containers.push(sidecar) } else { inits.push(sidecar) }
        }
        spec.insert("containers".into(), containers.into());
        if !inits.is_empty() {
            spec.insert("initContainers".into(), inits.into());
        }
        if host_network {
            spec.insert("hostNetwork".into(), true.into());
        }
        if pod_resources {
            let resources = self.pod_resources();
            spec.insert("resources".into(), resources);
        }
        self.pod_fields(&mut spec);
        let mut metadata = json!({"name": format!("pod-{seed}")});
        self.metadata(&mut metadata);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    }

    fn metadata(&mut self, metadata: &mut Value) {
        if self.one_in(10) {
            metadata["annotations"]["status.sidecar.istio.io/port"] = "16020".into();
        }
        if self.one_in(5) {
            metadata["annotations"]["sidecar.istio.io/nativeSidecar"] =
                self.choose(&["true".into(), "false".into()]);
        }
        if self.one_in(20) {
            metadata["labels"]["sidecar.istio.io/inject"] = self.choose(&["true".into(), "false".into()]);
        }
        if self.one_in(20) {
            metadata["annotations"]["kubectl.kubernetes.io/default-container"] = "app".into();
        }
        if self.one_in(40) {
            metadata["annotations"]["notes"] = "x".repeat((256 << 10) - 200).into();
        }
    }

    fn container(&mut self, name: &str, style: u32, host_network: bool) -> Value {
        let mut container = json!({"name": name, "image": "shop:1"});
        // Names and ports of the sidecar are taken now and then.
        if self.one_in(60) {
            container["name"] =
                self.choose(&["app-health-proxy".into(), "istio-proxy".into(), "logs".into()]);
        }
        container["resources"] = self.container_resources(style);
        if self.one_in(2) {
            let numbers = [8080, 8443, 9090, 3000];
            let mut number = numbers[self.rng.usize(0..numbers.len())];
            if self.one_in(12) {
                number = [15000, 15004, 15006, 15020, 15021, 15090, 16020][self.rng.usize(0..7)];
            }
            let mut port = json!({"name": "http", "containerPort": number});
            if host_network || self.one_in(15) {
                port["hostPort"] = number.into();
            }
            if self.one_in(6) {
                port["protocol"] = self.choose(&["UDP".into(), "TCP".into(), "SCTP".into()]);
            }
            container["ports"] = json!([port]);
        }
        for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if self.one_in(3) {
                container[field] = self.probe(field);
            }
        }
        if self.one_in(6) {
            let hook = self.choose(&[
                json!({"exec": {"command": ["sh", "-c", "sleep 5"]}}),
                json!({"httpGet": {"path": "/stop", "port": 8080}}),
                json!({"sleep": {"seconds": 5}}),
            ]);
            let when = if self.rng.bool() { "preStop" } else { "postStart" };
            container["lifecycle"] = json!({ when: hook });
        }
        if self.one_in(4) {
            container["securityContext"] = self.choose(&[
                json!({"runAsNonRoot": true, "runAsUser": 1000}),
                json!({"runAsUser": 0}),
                json!({"privileged": true}),
                json!({"capabilities": {"add": ["NET_ADMIN"]}, "allowPrivilegeEscalation": true}),
                json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}),
                json!({"windowsOptions": {"runAsUserName": "ContainerUser"}}),
                json!({"procMount": "Default", "readOnlyRootFilesystem": true}),
            ]);
        }
        if self.one_in(4) {
            container["env"] = self.choose(&[
                json!([{"name": "ISTIO_KUBE_APP_PROBERS", "value": "{}"}]),
                json!([{"name": "INSTANCE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
                json!([{"name": "A", "value": "$(B)"}, {"name": "B", "value": "1"}]),
                json!([{"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}]),
            ]);
        }
        container
    }

    /// `style` makes Guaranteed and BestEffort Pods likely: all containers of a Pod share it.
    fn container_resources(&mut self, style: u32) -> Value {
        let amounts = json!({"cpu": self.choose(&["1".into(), "500m".into(), json!(2)]),
            "memory": self.choose(&["64Mi".into(), "100Mi".into(), "1Gi".into(), json!(134_217_728)])});
        match style {
            0 => json!({}),
            1 => json!({"limits": amounts}),
            2 => json!({"requests": amounts, "limits": amounts}),
            3 => json!({"requests": amounts}),
            5 => self.choose(&[
                json!({}),
                json!({}),
                json!({"requests": {"cpu": "50m", "memory": "32Mi"}}),
                json!({"requests": {"memory": "100Mi"}}),
                json!({"requests": {"cpu": "10m"}, "limits": {"cpu": "100m", "memory": "64Mi"}}),
            ]),
            _ => self.choose(&[
                json!({}),
                json!({"requests": {"memory": "100Mi"}}),
                json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}),
                json!({"limits": {"memory": "128Mi"}}),
                json!({"requests": {"cpu": "0"}, "limits": {"memory": "64M"}}),
                json!({"requests": {"ephemeral-storage": "1Gi"}}),
                json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "512Mi"}}),
            ]),
        }
    }

    fn pod_resources(&mut self) -> Value {
        let amount = |generator: &mut Self| {
            let mut amounts = Map::new();
            if generator.rng.bool() {
                let cpu = generator.choose(&["100m".into(), "1".into(), "6".into(), json!(0.1)]);
                amounts.insert("cpu".into(), cpu);
            }
            if generator.rng.bool() {
                let memory = ["64Mi", "64Mi", "128Mi", "196Mi", "1Gi", "4294967296"].map(Value::from);
                amounts.insert("memory".into(), generator.choose(&memory));
            }
            Value::Object(amounts)
        };
        let (requests, limits) = (amount(self), amount(self));
        match self.rng.u32(0..6) {
            0 => json!({}),
            1 => json!({"requests": requests}),
            2 | 3 => json!({"limits": limits}),
            4 => json!({"requests": limits, "limits": limits}),
            _ => json!({"requests": requests, "limits": limits}),
        }
    }

    fn declared_sidecar(&mut self) -> Value {
        let mut sidecar = json!({"name": "app-health-proxy", "image": "auto"});
        if self.one_in(8) {
            sidecar["image"] = "envoy:1".into();
        }
        if self.rng.bool() {
            sidecar["restartPolicy"] = "Always".into();
        }
        sidecar["resources"] = self.choose(&[
            json!({}),
            json!({"requests": {"cpu": "200m"}}),
            json!({"limits": {"cpu": "1", "memory": "256Mi"}}),
            json!({"limits": {"cpu": "5m", "memory": "64Mi"}}),
            json!({"requests": {"cpu": "8", "memory": "8Gi"}}),
            json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
        ]);
        if self.one_in(2) {
            sidecar["securityContext"] = self.choose(&[
                json!({"runAsUser": 0}),
                json!({"runAsUser": 2000}),
                json!({"privileged": true}),
                json!({"capabilities": {"add": ["CAP_SYS_ADMIN"]}}),
                json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
                json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}),
            ]);
        }
        if self.one_in(4) {
            sidecar["ports"] = self.choose(&[
                json!([{"name": "app-health", "containerPort": 9902}]),
                json!([{"containerPort": 15021}]),
            ]);
        }
        if self.one_in(4) {
            let secret = json!({"secretKeyRef": {"name": "shop", "key": "address"}});
            sidecar["env"] = self.choose(&[
                json!([{"name": "INSTANCE_IP", "valueFrom": secret}]),
                json!([{"name": "INSTANCE_IP", "value": ""}]),
            ]);
        }
        sidecar
    }

    fn probe(&mut self, field: &str) -> Value {
        let mut probe = self.choose(&[
            json!({"httpGet": {"path": "/ready", "port": 8080}}),
            json!({"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTPS"}}),
            json!({"httpGet": {"port": 8080, "httpHeaders": [{"name": "Host", "value": "shop.test"}]}}),
            json!({"tcpSocket": {"port": 5432}}),
            json!({"tcpSocket": {"port": 15004}}),
            json!({"grpc": {"port": 9000}}),
            json!({"grpc": {"port": 9000, "service": "shop"}}),
            json!({"exec": {"command": ["true"]}}),
            json!({"httpGet": {"path": "/ready", "port": 8080, "host": "10.0.0.9"}}),
        ]);
        if self.one_in(3) {
            probe["timeoutSeconds"] = self.choose(&[json!(0), json!(1), json!(30), json!(2_147_483_647)]);
        }
        if self.one_in(8) {
            probe["periodSeconds"] = json!(5);
            probe["failureThreshold"] = json!(30);
        }
        if self.one_in(20) {
            // Invalid, except for a readinessProbe.
            probe["successThreshold"] = json!(2);
        }
        if self.one_in(15) && field != "readinessProbe" {
            probe["terminationGracePeriodSeconds"] = json!(10);
        }
        if self.one_in(40) {
            probe["exec"] = json!({"command": ["second"]});
        }
        probe
    }

    fn pod_fields(&mut self, spec: &mut Map<String, Value>) {
        for (rarity, field, values) in [security_fields(), scheduling_fields(), other_fields()].concat() {
            if self.one_in(rarity) {
                let value = self.choose(&values);
                spec.insert(field.into(), value);
            }
        }
    }
}

/// One in how many Pods has a field, the field of the specification, and its values.
type Field = (u32, &'static str, Vec<Value>);

fn security_fields() -> Vec<Field> {
    vec![
        (
            4,
            "securityContext",
            vec![
                json!({"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 2000}),
                json!({"runAsUser": 0}),
                json!({"runAsGroup": 3000, "supplementalGroups": [4000], "fsGroupChangePolicy": "OnRootMismatch"}),
                json!({"seccompProfile": {"type": "RuntimeDefault"}, "seLinuxOptions": {"level": "s0:c1,c2"}}),
                json!({"windowsOptions": {"hostProcess": true}}),
                json!({"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}),
                json!({"appArmorProfile": {"type": "RuntimeDefault"}, "supplementalGroupsPolicy": "Strict"}),
            ],
        ),
        (12, "hostUsers", vec![json!(false), json!(true)]),
        (10, "shareProcessNamespace", vec![json!(true)]),
        (8, "automountServiceAccountToken", vec![json!(false)]),
    ]
}

fn scheduling_fields() -> Vec<Field> {
    vec![
        (15, "os", vec![json!({"name": "linux"}), json!({"name": "windows"})]),
        (
            10,
            "nodeSelector",
            vec![
                json!({"kubernetes.io/os": "linux"}),
                json!({"kubernetes.io/os": "windows"}),
                json!({"pool": "a"}),
            ],
        ),
        (
            12,
            "affinity",
            vec![
                json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}]}}}),
                json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "shop"}}}]}}),
            ],
        ),
        (
            15,
            "topologySpreadConstraints",
            vec![json!([{"maxSkew": 1, "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "shop"}}}])],
        ),
        (12, "priorityClassName", vec!["high".into()]),
        (15, "preemptionPolicy", vec!["Never".into()]),
        (15, "runtimeClassName", vec!["gvisor".into()]),
        (15, "overhead", vec![json!({"cpu": "250m", "memory": "120Mi"})]),
        (25, "schedulingGates", vec![json!([{"name": "example.com/wait"}])]),
    ]
}

fn other_fields() -> Vec<Field> {
    vec![
        (4, "restartPolicy", vec!["Never".into(), "OnFailure".into(), "Always".into()]),
        (
            6,
            "volumes",
            vec![
                json!([{"name": "data", "emptyDir": {}}]),
                json!([{"name": "app-health", "emptyDir": {}}]),
                json!([{"name": "app-health", "ephemeral": {"volumeClaimTemplate": {"spec": {
                    "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]),
            ],
        ),
        (6, "terminationGracePeriodSeconds", vec![json!(0), json!(5), json!(300)]),
        (12, "dnsPolicy", vec!["Default".into(), "ClusterFirstWithHostNet".into()]),
        (15, "activeDeadlineSeconds", vec![json!(600)]),
    ]
}
