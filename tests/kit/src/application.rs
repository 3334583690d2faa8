//! The application for Pods, a separate program: it serves each protocol, with a switch for each,
//! and records the requests it receives.
//!
//! On the control port, `POST /<protocol>/<serving|failing|hanging>` sets a switch, `POST /listen`
//! ends the delay of `--start-after`, and `GET /seen` returns the heads of the last requests,
//! `{"http": ["GET /ready HTTP/1.1\r
//! Host: …"], "https": […]}`, the newest last. `GET /calls/http://web:80/` returns what became of the
//! requests to this URL of `--call` since the last time: `{"succeeded": 19, "failed": 1, "failures": [[0.5,
//! "503: …"]], "longestGap": 0.1}`.

mod calls;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Parser;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use crate::app::switched::{self, Behavior};
use crate::app::tls::Tls;
use crate::app::{App, Step};
use crate::terminal;
use calls::{Calls, Target};

/// Maximum number of heads shown for each protocol.
const HEADS: usize = 100;

/// Requests for paths with this prefix are printed. A lifecycle hook is called once, and the
/// recorded heads may be lost when the process exits.
const HOOK: &str = "/hook";

/// An application whose behavior is set on a control port
#[derive(Clone, Debug, Parser)]
#[command(name = "application")]
pub struct Arguments {
    /// Address to listen on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub ip: IpAddr,
    /// Port for HTTP/1.1; 503 when failing
    #[arg(long, default_value_t = 8080)]
    pub http: u16,
    /// Port for HTTPS, with the same behavior
    #[arg(long, default_value_t = 8443)]
    pub https: u16,
    /// Port that accepts TCP connections; closed when failing
    #[arg(long, default_value_t = 5432)]
    pub tcp: u16,
    /// Port of the gRPC health service; NOT_SERVING when failing
    #[arg(long, default_value_t = 9000)]
    pub grpc: u16,
    /// Port of the switches
    #[arg(long, default_value_t = 9900)]
    pub control: u16,
    /// Delay before the other ports listen, for example 3s
    #[arg(long, value_name = "SECONDS", default_value = "0s", value_parser = seconds)]
    pub start_after: Duration,
    /// Sends 20 requests per second to this URL
    #[arg(long, value_name = "URL", value_parser = Target::parse)]
    call: Vec<Target>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').and_then(|number| number.parse().ok());
    number.map(Duration::from_secs).ok_or_else(|| "must be a number of seconds such as 3s".to_owned())
}

/// Runs until the process receives a signal.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub async fn run(arguments: Arguments) -> Result<(), String> {
    terminal::unless_interrupted(serve(arguments), false).await.map(drop)
}

/// The switch of one protocol.
struct Switch {
    requested: watch::Sender<Behavior>,
    /// The behavior of the server; `None` if it does not listen yet, or reads `requested` for
    /// every request.
    applied: watch::Sender<Option<Behavior>>,
}

impl Switch {
    fn new() -> Self {
        Self { requested: watch::Sender::new(Behavior::Serving), applied: watch::Sender::new(None) }
    }

    /// Returns the function with which the server confirms a change.
    fn confirm(&self) -> impl Fn(Behavior) + Send + Sync + 'static {
        let applied = self.applied.clone();
        move |behavior| {
            applied.send_replace(Some(behavior));
        }
    }

    /// Waits until the server behaves as requested.
    async fn until_applied(&self) {
        let is_applied = |applied: &Option<Behavior>| applied.is_none_or(|it| it == *self.requested.borrow());
        let mut applied = self.applied.subscribe();
        applied.wait_for(is_applied).await.expect("the sender is dropped only with self");
    }
}

/// The protocols, each with its switch.
struct Switches([(&'static str, Switch); 4]);

impl Switches {
    fn new() -> Self {
        Self(["http", "https", "tcp", "grpc"].map(|name| (name, Switch::new())))
    }

    fn of(&self, protocol: &str) -> &Switch {
        let (_, switch) = self.0.iter().find(|(name, _)| *name == protocol).expect("the protocol is known");
        switch
    }

    /// Parses a path such as `/grpc/failing`.
    fn parse(&self, path: &str) -> Option<(&'static str, Behavior)> {
        let (protocol, behavior) = path.strip_prefix('/')?.split_once('/')?;
        let (known, _) = self.0.iter().find(|(name, _)| *name == protocol)?;
        Some((known, Behavior::named(behavior)?))
    }
}

/// The servers whose request heads are recorded; set once they listen.
type Servers = OnceLock<[(&'static str, App); 2]>;

async fn serve(arguments: Arguments) -> Result<bool, String> {
    let address = |port| SocketAddr::new(arguments.ip, port);
    let (switches, servers) = (Arc::new(Switches::new()), Arc::new(Servers::new()));
    let listen = Arc::new(Notify::new());
    let calls = Calls::start(&arguments.call);
    let control = {
        let (switches, servers, listen) = (Arc::clone(&switches), Arc::clone(&servers), Arc::clone(&listen));
        move |path: &str| match path.strip_prefix("/calls/").map(|url| calls.take(url)) {
            Some(Some(calls)) => switched::text("200 OK", "application/json", &calls.to_string()),
            Some(None) => switched::text("404 Not Found", "text/plain", "this URL is not called\n"),
            None => control(&switches, &servers, &listen, path),
        }
    };
    let _control = App::routes(address(arguments.control), None, control).await;
    terminal::say("application: started\n");
    // `POST /listen` ends the delay early.
    let _ = tokio::time::timeout(arguments.start_after, listen.notified()).await;
    let requested = |protocol| switches.of(protocol).requested.subscribe();
    let http = App::routes(address(arguments.http), None, answers(requested("http"))).await;
    let acceptor = Some(Tls::default().acceptor());
    let https = App::routes(address(arguments.https), acceptor, answers(requested("https"))).await;
    let _ = servers.set([("http", http), ("https", https)]);
    let confirm = |protocol| switches.of(protocol).confirm();
    let _grpc = switched::grpc(address(arguments.grpc), requested("grpc"), confirm("grpc")).await;
    let tcp = switched::tcp(address(arguments.tcp), requested("tcp"), confirm("tcp"));
    let listening = async {
        let mut applied = switches.of("tcp").applied.subscribe();
        applied.wait_for(Option::is_some).await.expect("the sender is dropped only with the switch");
        terminal::say("application: listening\n");
    };
    tokio::join!(tcp, listening);
    Ok(true)
}

fn control(switches: &Arc<Switches>, servers: &Servers, listen: &Notify, path: &str) -> Vec<Step> {
    if path == "/seen" {
        let seen = servers.get().map(|servers| servers.each_ref().map(|(name, app)| (*name, heads(app))));
        let seen: Map<String, Value> =
            seen.into_iter().flatten().map(|(name, heads)| (name.to_owned(), heads.into())).collect();
        return switched::text("200 OK", "application/json", &Value::from(seen).to_string());
    }
    let done = switched::text("200 OK", "text/plain", "done\n");
    if path == "/listen" {
        listen.notify_one();
        return done;
    }
    let Some((protocol, behavior)) = switches.parse(path) else {
        return switched::text("404 Not Found", "text/plain", "use GET /seen or POST /http/failing\n");
    };
    switches.of(protocol).requested.send_replace(behavior);
    // The response follows when the server has applied the change.
    let applied = Arc::new(Notify::new());
    let (switches, notify) = (Arc::clone(switches), Arc::clone(&applied));
    tokio::spawn(async move {
        switches.of(protocol).until_applied().await;
        terminal::say(&format!("application: {protocol} is {}\n", behavior.name()));
        notify.notify_one();
    });
    let mut steps = done;
    steps.insert(1, Step::Until(applied));
    steps
}

/// Returns the last request heads; a connection without a request has none.
fn heads(app: &App) -> Vec<String> {
    let mut heads: Vec<String> =
        app.seen().iter().map(|seen| String::from_utf8_lossy(&seen.bytes).into_owned()).collect();
    heads.retain(|head| !head.is_empty());
    heads.split_off(heads.len().saturating_sub(HEADS))
}

/// Returns the function that responds to a request according to the switch.
fn answers(behavior: watch::Receiver<Behavior>) -> impl Fn(&str) -> Vec<Step> + Send + Sync {
    move |path| {
        if path.starts_with(HOOK) {
            terminal::say(&format!("application: received request for {path}\n"));
        }
        switched::http(*behavior.borrow())
    }
}
