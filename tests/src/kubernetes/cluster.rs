//! etcd and the API server of a released Kubernetes, on free ports of loopback, with their files in a folder of their own.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rcgen::KeyPair;
use serde_json::{Value, json};

/// Users by their token, beside the administrator: the ServiceAccounts of the shipped manifests.
const USERS: [(&str, &str); 2] = [
    ("webhook", "system:serviceaccount:app-health-system:app-health-webhook"),
    ("discovery", "system:serviceaccount:app-health-system:app-health-discovery"),
];

/// A process that is ended when it is dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        Self(command.spawn().expect("a process"))
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.0.id().to_string()]).status().expect("kill");
        assert!(kill.success());
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control plane without nodes.
pub(crate) struct Cluster {
    pub(crate) folder: PathBuf,
    tools: PathBuf,
    /// As it is started, again if need be.
    api_server_command: Vec<String>,
    api_server: Option<Process>,
    _etcd: Process,
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// The workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace")
}

/// Where the recipe puts what Kubernetes is made of.
fn tools() -> PathBuf {
    let named = std::env::vars_os()
        .find(|(name, _)| name == "KUBERNETES_TOOLS")
        .map(|(_, folder)| PathBuf::from(folder));
    let tools = named.expect(
        "KUBERNETES_TOOLS names a folder with etcd, kube-apiserver and kubectl: ./justw test-kubernetes",
    );
    for tool in ["etcd", "kube-apiserver", "kubectl"] {
        assert!(
            tools.join(tool).exists(),
            "{tool} is missing in {}: ./justw test-kubernetes",
            tools.display()
        );
    }
    tools
}

impl Cluster {
    /// Starts it, with its files in a folder of this name, and waits until the API server is ready.
    pub(crate) fn start(name: &str) -> Self {
        let tools = tools();
        let folder = std::env::temp_dir().join(format!("app-health-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let (client, peer, secure) = (free_port(), free_port(), free_port());
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let etcd = Process::start(
            Command::new(tools.join("etcd"))
                .args(["--name", "test", "--data-dir", folder.join("etcd").to_str().expect("UTF-8")])
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &format!("test={peer}"), "--unsafe-no-fsync"]),
            &folder.join("etcd.log"),
        );
        let key = KeyPair::generate().expect("a key");
        fs::write(folder.join("key.pem"), key.serialize_pem()).expect("a file");
        fs::write(folder.join("public.pem"), key.public_key_pem()).expect("a file");
        let tokens: String = USERS.iter().map(|(name, user)| format!("{name},{user},{name}\n")).collect();
        fs::write(folder.join("tokens"), format!("admin,admin,1,\"system:masters\"\n{tokens}"))
            .expect("a file");
        let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
        let api_server_command = vec![
            format!("--etcd-servers={client}"),
            format!("--cert-dir={}", path("certificates")),
            format!("--secure-port={secure}"),
            format!("--token-auth-file={}", path("tokens")),
            format!("--service-account-signing-key-file={}", path("key.pem")),
            format!("--service-account-key-file={}", path("public.pem")),
            "--bind-address=127.0.0.1".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://test".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--v=1".to_owned(),
        ];
        for user in ["admin"].into_iter().chain(USERS.map(|(name, _)| name)) {
            let config = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": format!("https://127.0.0.1:{secure}"), "insecure-skip-tls-verify": true}}],
                "users": [{"name": user, "user": {"token": user}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            });
            fs::write(folder.join(format!("{user}.kubeconfig")), config.to_string()).expect("a file");
        }
        let mut cluster = Self { folder, tools, api_server_command, api_server: None, _etcd: etcd };
        cluster.start_api_server();
        cluster
    }

    /// Starts the API server, on the port that it had, and waits until it is ready.
    pub(crate) fn start_api_server(&mut self) {
        self.api_server = Some(Process::start(
            Command::new(self.tools.join("kube-apiserver")).args(&self.api_server_command),
            &self.folder.join("api-server.log"),
        ));
        for _ in 0..120 {
            if self.kubectl(&["get", "--raw", "/readyz"], "").status.success() {
                return;
            }
            sleep(Duration::from_millis(500));
        }
        panic!("the API server is not ready: {}", self.log("api-server.log"));
    }

    /// Kills the API server.
    pub(crate) fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    pub(crate) fn signal_api_server(&self, name: &str) {
        self.api_server.as_ref().expect("it runs").signal(name);
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.kubeconfig"))
    }

    pub(crate) fn log(&self, name: &str) -> String {
        let log = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Runs kubectl as the administrator.
    pub(crate) fn kubectl(&self, arguments: &[&str], stdin: &str) -> Output {
        self.kubectl_as("admin", arguments, stdin)
    }

    pub(crate) fn kubectl_as(&self, user: &str, arguments: &[&str], stdin: &str) -> Output {
        let mut child = Command::new(self.tools.join("kubectl"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig(user))
            .args(["--cache-dir", self.folder.join("cache").to_str().expect("UTF-8")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        // It may end without reading.
        let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
        child.wait_with_output().expect("kubectl ends")
    }

    /// The same where it has to work: stdout and stderr.
    pub(crate) fn done(&self, arguments: &[&str], stdin: &str) -> (String, String) {
        let output = self.kubectl(arguments, stdin);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}\n{stdin}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    pub(crate) fn get(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = ["get", "-o", "json"].iter().chain(arguments).copied().collect();
        serde_json::from_str(&self.done(&arguments, "").0).expect("JSON")
    }

    pub(crate) fn kustomize(&self, folder: &str) -> String {
        let folder = workspace().join("envoy-config/kubernetes").join(folder);
        self.done(&["kustomize", folder.to_str().expect("UTF-8")], "").0
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
