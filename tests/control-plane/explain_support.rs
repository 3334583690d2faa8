//! A scripted API server, and the command `explain` that reads from it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A response of the API server.
#[derive(Clone, Debug)]
pub(crate) enum Scripted {
    Response(u16, String),
    /// The connection stays open without a response.
    Silence,
    /// The Pod's proxy sends what follows, `:PORT/proxy/PATH`, to this address.
    Forward(IpAddr),
}

impl Scripted {
    pub(crate) fn object(object: &Value) -> Self {
        Self::Response(200, object.to_string())
    }

    pub(crate) fn list(items: &[Value]) -> Self {
        Self::object(&json!({"kind": "List", "apiVersion": "v1", "items": items}))
    }

    pub(crate) fn status(code: u16, message: &str) -> Self {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message});
        Self::Response(code, status.to_string())
    }

    pub(crate) fn forbidden() -> Self {
        Self::status(403, "User \"viewer\" cannot get this resource")
    }
}

/// Responses by path without the query; any other path is answered with 404. A Pod's proxy is
/// `/api/v1/namespaces/shop/pods/web:`.
pub(crate) type Routes = BTreeMap<String, Scripted>;

/// A scripted API server; its threads end with the process.
pub(crate) struct ApiServer {
    routes: Arc<Mutex<Routes>>,
    requests: Arc<Mutex<Vec<String>>>,
    folder: PathBuf,
}

impl ApiServer {
    /// Starts it, and writes a kubeconfig with the context `test` and the namespace `shop`.
    pub(crate) fn start(name: &str, routes: Routes) -> Self {
        let folder = std::env::temp_dir().join(format!("app-health-explain-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        fs::write(folder.join("kubeconfig"), kubeconfig(address)).expect("a file");
        let (routes, requests) = (Arc::new(Mutex::new(routes)), Arc::new(Mutex::new(Vec::new())));
        let (shared, log) = (routes.clone(), requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, log) = (shared.clone(), log.clone());
                thread::spawn(move || serve(stream, &shared, &log));
            }
        });
        Self { routes, requests, folder }
    }

    pub(crate) fn set(&self, path: &str, response: Scripted) {
        self.routes.lock().expect("no panic while locked").insert(path.to_owned(), response);
    }

    /// Sends requests for the ports of the Pod at `path` to another address.
    pub(crate) fn forward(&self, path: &str, to: IpAddr) {
        self.set(&format!("{path}:"), Scripted::Forward(to));
    }

    /// Returns the paths of all requests with their queries, in any order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic while locked").clone()
    }

    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// Returns the command `explain` with this server's kubeconfig.
    pub(crate) fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(kit::agent::binary_of("app-health"));
        command.arg("explain").args(flags).env("KUBECONFIG", self.folder.join("kubeconfig"));
        command
    }

    /// Runs the command and returns its exit code, stdout and stderr.
    pub(crate) fn explain(&self, flags: &[&str]) -> (Option<i32>, String, String) {
        result(&self.command(flags).output().expect("the process ends"))
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn result(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub(crate) fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: test,
        contexts: [{{name: test, context: {{cluster: c, user: u, namespace: shop}}}}, {{name: other, context: {{cluster: c, user: u, namespace: elsewhere}}}}],
        clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}], users: [{{name: u, user: {{token: secret}}}}]}}"
    )
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, routes: &Mutex<Routes>, log: &Mutex<Vec<String>>) {
    let mut writer = stream.try_clone().expect("a second handle");
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        // The rest of the head; a GET has no body.
        while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().expect("no panic while locked").push(target.clone());
        let path = target.split('?').next().unwrap_or_default();
        let scripted = {
            let routes = routes.lock().expect("no panic while locked");
            let pod = || routes.get(&format!("{}:", path.split_once(':')?.0));
            routes.get(path).or_else(pod).cloned()
        };
        let (status, body) = match scripted {
            Some(Scripted::Forward(ip)) => {
                if let Ok(response) = forward(ip, &target) {
                    let _ = writer.write_all(&response);
                    return;
                }
                let refused = "error trying to reach service: dial tcp: connect: connection refused";
                let Scripted::Response(status, body) = Scripted::status(503, refused) else { return };
                (status, body)
            }
            Some(Scripted::Response(status, body)) => (status, body),
            Some(Scripted::Silence) => continue,
            None => {
                let Scripted::Response(status, body) = Scripted::status(404, "not found") else { return };
                (status, body)
            }
        };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

/// Requests the path of a Pod and returns the response as it is.
fn forward(ip: IpAddr, target: &str) -> io::Result<Vec<u8>> {
    let (port, path) = target
        .split_once(':')
        .and_then(|(_, rest)| rest.split_once("/proxy"))
        .ok_or(io::ErrorKind::InvalidInput)?;
    let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut stream = TcpStream::connect(SocketAddr::new(ip, port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {ip}\r\nconnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    Ok(response)
}
