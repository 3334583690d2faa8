//! The application for Pods, a separate program: it serves each protocol, with a switch for each,
//! and records the requests it receives.
//!
//! On the control port, `POST /<protocol>/<serving|failing|hanging>` sets a switch, `POST /listen`
//! ends the delay of `--start-after`, and `GET /seen` returns the heads of the last requests,
//! `{"http": ["GET /ready HTTP/1.1\r
//! Host: …"], "https": […]}`, the newest last.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Parser;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use crate::app::switched::{self, Behaviour};
use crate::app::tls::Tls;
use crate::app::{App, Step};
use crate::terminal;

/// Maximum number of heads shown for each protocol.
const HEADS: usize = 100;

/// Requests for paths with this prefix are printed. A lifecycle hook is called once, and the
/// recorded heads may be lost when the process exits.
const HOOK: &str = "/hook";

/// An application whose behaviour is set on a control port
#[derive(Clone, Debug, Parser)]
#[command(name = "application")]
pub struct Arguments {
    /// Address to listen on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub ip: IpAddr,
    /// Port for HTTP/1.1; 503 when failing
    #[arg(long, default_value_t = 8080)]
    pub http: u16,
    /// Port for HTTPS, with the same behaviour
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
    terminal::say("application: started\n");
    terminal::unless_interrupted(serve(arguments), false).await.map(drop)
}

/// The protocols, each with its switch.
struct Switches([(&'static str, watch::Sender<Behaviour>); 4]);

impl Switches {
    fn new() -> Self {
        Self(["http", "https", "tcp", "grpc"].map(|name| (name, watch::Sender::new(Behaviour::Serving))))
    }

    fn find(&self, protocol: &str) -> Option<&watch::Sender<Behaviour>> {
        self.0.iter().find_map(|(name, switch)| (*name == protocol).then_some(switch))
    }

    /// Returns a receiver of the behaviour of `protocol`.
    fn of(&self, protocol: &str) -> watch::Receiver<Behaviour> {
        self.find(protocol).expect("the protocol is known").subscribe()
    }

    /// Sets a switch by a path such as `/grpc/failing`.
    fn turn(&self, path: &str) -> Option<()> {
        let (protocol, name) = path.strip_prefix('/')?.split_once('/')?;
        let behaviour = Behaviour::named(name)?;
        self.find(protocol)?.send_replace(behaviour);
        terminal::say(&format!("application: {protocol} is {name}\n"));
        Some(())
    }
}

/// The servers whose request heads are recorded; set once they listen.
type Servers = OnceLock<[(&'static str, App); 2]>;

async fn serve(arguments: Arguments) -> Result<bool, String> {
    let address = |port| SocketAddr::new(arguments.ip, port);
    let (switches, servers) = (Arc::new(Switches::new()), Arc::new(Servers::new()));
    let listen = Arc::new(Notify::new());
    let (turned, asked, listens) = (Arc::clone(&switches), Arc::clone(&servers), Arc::clone(&listen));
    let control = move |path: &str| control(&turned, &asked, &listens, path);
    let _control = App::routes(address(arguments.control), None, control).await;
    // `POST /listen` ends the delay early.
    let _ = tokio::time::timeout(arguments.start_after, listen.notified()).await;
    let http = App::routes(address(arguments.http), None, answers(switches.of("http"))).await;
    let acceptor = Some(Tls::default().acceptor());
    let https = App::routes(address(arguments.https), acceptor, answers(switches.of("https"))).await;
    let _ = servers.set([("http", http), ("https", https)]);
    let _grpc = switched::grpc(address(arguments.grpc), switches.of("grpc")).await;
    terminal::say("application: listening\n");
    switched::tcp(address(arguments.tcp), switches.of("tcp")).await;
    Ok(true)
}

fn control(switches: &Switches, servers: &Servers, listen: &Notify, path: &str) -> Vec<Step> {
    if path == "/seen" {
        let seen = servers.get().map(|servers| servers.each_ref().map(|(name, app)| (*name, heads(app))));
        let seen: Map<String, Value> =
            seen.into_iter().flatten().map(|(name, heads)| (name.to_owned(), heads.into())).collect();
        return switched::text("200 OK", "application/json", &Value::from(seen).to_string());
    }
    let done = match path {
        "/listen" => {
            listen.notify_one();
            Some(())
        }
        path => switches.turn(path),
    };
    match done {
        Some(()) => switched::text("200 OK", "text/plain", "done\n"),
        None => switched::text("404 Not Found", "text/plain", "use GET /seen or POST /http/failing\n"),
    }
}

/// Returns the last request heads; a connection without a request has none.
fn heads(app: &App) -> Vec<String> {
    let mut heads: Vec<String> =
        app.seen().iter().map(|seen| String::from_utf8_lossy(&seen.bytes).into_owned()).collect();
    heads.retain(|head| !head.is_empty());
    heads.split_off(heads.len().saturating_sub(HEADS))
}

/// Returns the function that responds to a request according to the switch.
fn answers(behaviour: watch::Receiver<Behaviour>) -> impl Fn(&str) -> Vec<Step> + Send + Sync {
    move |path| {
        if path.starts_with(HOOK) {
            terminal::say(&format!("application: received request for {path}\n"));
        }
        switched::http(*behaviour.borrow())
    }
}
