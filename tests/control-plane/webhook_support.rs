//! Runs the webhook as a process, with certificates, and provides a raw HTTP client over TLS.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use kit::{net, wait};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};
use time::OffsetDateTime;

/// The ports of webhooks, each of which has an address of its own.
const PORT: u16 = 15017;
const MONITORING_PORT: u16 = 15014;
/// DNS name in the webhook's certificate.
pub(crate) const NAME: &str = "app-health-webhook.app-health-system.svc";

/// A CA that signs certificates for tests.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a CA").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a certificate and its key, PEM.
    pub(crate) fn sign(&self, common_name: &str, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

impl Ca {
    /// Returns a certificate for a URI and its key, PEM; `until` limits its validity.
    pub(crate) fn sign_uri(&self, uri: &str, until: Option<OffsetDateTime>) -> (String, String) {
        let mut params = CertificateParams::default();
        params.subject_alt_names.push(SanType::URI(uri.try_into().expect("ASCII")));
        if let Some(until) = until {
            params.not_before = until - time::Duration::days(1);
            params.not_after = until;
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

/// A running webhook process with its files; it is killed on drop.
pub(crate) struct Webhook {
    child: Child,
    pub(crate) folder: PathBuf,
    pub(crate) ca: Ca,
    pub(crate) address: SocketAddr,
    pub(crate) monitoring: SocketAddr,
}

impl Webhook {
    /// Starts a webhook with certificates from files; `{}` in a flag is replaced by its folder.
    pub(crate) fn start(name: &str, flags: &[&str], files: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(kit::agent::binary_of("app-health")), name, flags, files)
    }

    /// Starts a webhook that can have this many file descriptors.
    pub(crate) fn start_with_descriptors(name: &str, limit: u32) -> Self {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).arg(kit::agent::binary_of("app-health"));
        Self::start_by(command, name, &[], &[])
    }

    fn start_by(mut command: Command, name: &str, flags: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("app-health-webhook-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let ca = Ca::new("webhook CA");
        write_pair(&folder, &ca.sign("webhook", &[NAME]));
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("a file");
        }
        // A free port would be free for other programs too until the webhook listens on it.
        let ip = net::loopback();
        let (address, monitoring) = (SocketAddr::new(ip, PORT), SocketAddr::new(ip, MONITORING_PORT));
        let child = command
            .arg("webhook")
            .args(["--address", &address.to_string(), "--monitoring-address", &monitoring.to_string()])
            .args(["--cert-dir", folder.to_str().expect("UTF-8")])
            .args(flags.iter().map(|flag| flag.replace("{}", folder.to_str().expect("UTF-8"))))
            .env("KUBECONFIG", folder.join("kubeconfig"))
            // Same settings as in the shipped Deployment.
            .envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")])
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).expect("a log"))
            .spawn()
            .expect("the binary starts");
        let webhook = Self { child, folder, ca, address, monitoring };
        webhook.wait_for_status("/healthz/ready", 200);
        webhook
    }

    pub(crate) fn wait_for_status(&self, path: &str, status: u16) {
        wait::until_blocking(
            || format!("no {status} from {path}: {}", self.log()),
            || self.page(path).is_ok_and(|(found, _)| found == status),
        );
    }

    /// Returns status and body of a page of the monitoring port.
    pub(crate) fn page(&self, path: &str) -> io::Result<(u16, String)> {
        page(self.monitoring, path)
    }

    /// Waits until the metrics contain a line with this prefix.
    pub(crate) fn wait_for_metric(&self, line: &str) {
        let has_line = |text: &str| text.lines().any(|found| found.starts_with(line));
        wait::until_blocking(
            || format!("no {line}: {:?}", self.page("/metrics")),
            || self.page("/metrics").is_ok_and(|(_, text)| has_line(&text)),
        );
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Returns a client configuration that trusts the webhook's CA, with an optional client
    /// certificate.
    pub(crate) fn client(&self, own: Option<&(String, String)>) -> Arc<ClientConfig> {
        client(&self.ca.pem, own)
    }

    pub(crate) fn call(&self) -> Call {
        Call::new(self.address, &self.client(None)).expect("a connection")
    }

    pub(crate) fn terminate(&self) {
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill");
        assert!(kill.success());
    }

    /// Waits for the process and returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("the process ends").code()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// Connects from a source address.
pub(crate) fn connect_from(source: [u8; 4], address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

/// Checks that health checks are answered while clients of several addresses send requests on
/// connections that they keep.
pub(crate) fn health_checks_are_answered_under_load(monitoring: SocketAddr) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for host in 2..6 {
            let stop = &stop;
            scope.spawn(move || {
                let mut connections = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let open =
                        (connections.len()..40).flat_map(|_| connect_from([127, 0, 0, host], monitoring));
                    connections.extend(open.collect::<Vec<_>>());
                    connections.retain_mut(|stream| {
                        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").is_ok()
                            && matches!(stream.read(&mut [0; 4096]), Ok(1..))
                    });
                }
            });
        }
        let answers: Vec<_> = (0..40)
            .map(|_| {
                sleep(Duration::from_millis(50));
                page(monitoring, "/healthz/live").ok()
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        let failed = answers.iter().filter(|answer| answer.as_ref().is_none_or(|(status, _)| *status != 200));
        assert_eq!(failed.count(), 0, "{answers:?}");
    });
}

/// Requests a page in plaintext; returns status and body.
pub(crate) fn page(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(wait::timeout()))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let status =
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok((status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()))
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn write_pair(folder: &Path, (certificate, key): &(String, String)) {
    for (name, text) in [("tls.crt", certificate), ("tls.key", key)] {
        // Renaming replaces a file atomically, as in a mounted Secret.
        fs::write(folder.join("new"), text).expect("a file");
        fs::rename(folder.join("new"), folder.join(name)).expect("a file");
    }
}

pub(crate) fn client(ca: &str, own: Option<&(String, String)>) -> Arc<ClientConfig> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a CA");
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// An HTTP/1.1 connection over TLS.
pub(crate) struct Call {
    pub(crate) stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Call {
    pub(crate) fn new(address: SocketAddr, client: &Arc<ClientConfig>) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?, client)
    }

    pub(crate) fn over(socket: TcpStream, client: &Arc<ClientConfig>) -> io::Result<Self> {
        let connection = ClientConnection::new(client.clone(), ServerName::try_from(NAME).expect("a name"));
        socket.set_read_timeout(Some(wait::timeout()))?;
        socket.set_nodelay(true)?;
        let mut stream = StreamOwned::new(connection.map_err(io::Error::other)?, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self { stream })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Posts a body as the API server does, and reads the response.
    pub(crate) fn post(&mut self, body: &str) -> io::Result<Answer> {
        let head = format!(
            "POST /inject?timeout=5s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.send(&[head.as_bytes(), body.as_bytes()].concat())?;
        self.answer()
    }

    /// Reads one response that has a content-length.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(b"\r\n\r\n") {
            if self.stream.read(&mut byte)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&bytes).into_owned();
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Returns whether the server closes the connection without sending more.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.read(&mut byte), Ok(1..))
    }
}

/// Returns a review of the creation of a Pod.
pub(crate) fn review(uid: &str) -> String {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "shop:1", "livenessProbe": {"httpGet": {"port": 8080}}}]},
    });
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": uid, "operation": "CREATE", "namespace": "default", "object": pod,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
        },
    })
    .to_string()
}
