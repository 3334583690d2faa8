//! Clients that occupy connections, reviews or memory of the webhook.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kit::net;
use serde_json::json;

use super::http::HttpListener;
use super::{LIVE, LIVE_BAR, Strength, health_checks, keep_alive, of_size};
use crate::addresses;
use crate::container::Container;
use crate::cost::Attacked;
use crate::honest::HonestClient;
use crate::hostile::{HostileClients, Then};
use crate::measurement::{Measurement, Phases, Scenario, measure};
use crate::network;
use crate::request::{Expectation, Request};
use crate::webhook::{Webhook, head, review, review_of};

const REVIEWS: &str = "reviews";
/// The bar for reviews during an attack.
const REVIEW_BAR: Duration = Duration::from_millis(250);
/// `timeoutSeconds` of the shipped webhook configuration.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of concurrent reviews of the API server.
const REVIEWERS: usize = 3;
/// The memory limit of the shipped Deployment, in bytes.
const LIMIT: u64 = 256 << 20;
const MANY: &str = "1200 addresses, reviews all the time";
/// The values of a review that needs much more memory than bytes: nearly as many as the webhook accepts.
const VALUES: usize = 99_000;
/// The largest body that the webhook accepts, in bytes.
const LARGEST_BODY: usize = 8 << 20;

/// Attacks one webhook in all ways, one after the other, and then one that knows the API server.
pub async fn run(strength: Strength, phases: Phases, mut done: impl FnMut(Measurement)) {
    for (name, many) in [("attack-webhook", false), ("attack-webhook-many", true)] {
        let _container = Container::new(name, LIMIT);
        let webhook = Webhook::start(name, &[]).await;
        let attacked = attacked(&webhook);
        let attacks = of_size(attacks(&webhook, strength), many, |(_, _, hostile)| hostile);
        for (port, name, hostile) in attacks {
            let listener = format!("webhook {port}");
            done(measure(scenario(listener, name, honest(&webhook), hostile, &attacked), phases).await);
        }
    }
    let api_server = net::loopback();
    let flags = ["--api-server-address", &api_server.to_string()];
    let container = Container::new("attack-webhook-api-server", LIMIT);
    let webhook = Webhook::start("attack-webhook-api-server", &flags).await;
    let listener = "webhook 15017, known API server".to_owned();
    let (name, hostile) = (MANY, vec![many_addresses(&webhook)]);
    let honest = honest_of(&webhook, net::loopback(), api_server);
    done(measure(scenario(listener, name, honest, hostile, &self::attacked(&webhook)), phases).await);
    drop((webhook, container));
    one_network(phases, done).await;
}

/// Attacks a webhook on IPv6 with all addresses of one network, of which each connection has another one.
async fn one_network(phases: Phases, mut done: impl FnMut(Measurement)) {
    let _container = Container::new("attack-webhook-ipv6", LIMIT);
    let webhook = Webhook::start_at(network::server(), "attack-webhook-ipv6", &[]).await;
    let attacked = attacked(&webhook);
    let active = HostileClients { sources: network::addresses(1200), ..many_addresses(&webhook) };
    let idle = HostileClients {
        sources: network::addresses(2000),
        bytes: Vec::new(),
        tls: None,
        then: Then::Wait,
        ..active.clone()
    };
    for (name, hostile) in [
        ("1200 addresses of one /64, reviews all the time", active),
        ("2000 addresses of one /64, connections without a handshake", idle),
    ] {
        let honest = honest_of(&webhook, network::honest(), network::honest());
        let listener = "webhook 15017, IPv6".to_owned();
        done(measure(scenario(listener, name, honest, vec![hostile], &attacked), phases).await);
    }
}

fn attacked(webhook: &Webhook) -> Arc<Attacked> {
    Arc::new(Attacked::new(vec![("webhook", webhook.pid())], webhook.log_file(), LIMIT))
}

fn scenario(
    listener: String,
    attack: &str,
    honest: Vec<HonestClient>,
    hostile: Vec<HostileClients>,
    attacked: &Arc<Attacked>,
) -> Scenario {
    Scenario {
        listener,
        attack: attack.to_owned(),
        honest,
        newcomers: Vec::new(),
        hostile,
        attacked: Arc::clone(attacked),
        bars: vec![(LIVE, LIVE_BAR), (REVIEWS, REVIEW_BAR)],
    }
}

/// Returns kubelet's health checks and the reviews of the API server.
pub(crate) fn honest(webhook: &Webhook) -> Vec<HonestClient> {
    honest_of(webhook, net::loopback(), net::loopback())
}

fn honest_of(webhook: &Webhook, kubelet: IpAddr, api_server: IpAddr) -> Vec<HonestClient> {
    let reviewer = HonestClient {
        row: REVIEWS,
        request: Request {
            source: api_server,
            address: webhook.address(),
            tls: Some(webhook.tls()),
            bytes: review(),
            deadline: REVIEW_TIMEOUT,
            expectation: Expectation::body(200, "\"patch\""),
        },
        interval: Duration::from_millis(100),
    };
    let mut clients = health_checks(kubelet, webhook.monitoring());
    clients.extend(std::iter::repeat_n(reviewer, REVIEWERS));
    clients
}

/// Returns the port, the name and the clients of each attack.
fn attacks(webhook: &Webhook, strength: Strength) -> Vec<(u16, &'static str, Vec<HostileClients>)> {
    let idle = HostileClients {
        sources: addresses(Strength::SOURCES),
        address: webhook.address(),
        connections: strength.connections,
        per_second: Strength::PER_SECOND,
        tls: None,
        bytes: Vec::new(),
        then: Then::Wait,
    };
    let over_tls = HostileClients { tls: Some(webhook.tls()), ..idle.clone() };
    let idle_keep_alive = HostileClients {
        address: webhook.monitoring(),
        bytes: keep_alive(webhook.monitoring(), "/metrics"),
        ..idle.clone()
    };
    let no_body = HostileClients { bytes: format!("{}{{", head(1000)).into_bytes(), ..over_tls.clone() };
    let slow_bodies = HostileClients {
        bytes: head(LARGEST_BODY).into_bytes(),
        then: Then::send_blanks(64 << 10, Duration::from_millis(200)),
        ..over_tls.clone()
    };
    // More than half of all connections, from each of two addresses.
    let active = HostileClients {
        sources: addresses(2),
        connections: 600,
        bytes: kept(review()),
        then: Then::Repeat { every: Duration::from_millis(800) },
        ..over_tls.clone()
    };
    let many_values = HostileClients {
        sources: addresses(1),
        connections: strength.connections,
        bytes: kept(review_of(&json!({"spec": {"containers": [], "values": vec![json!({}); VALUES]}}))),
        then: Then::Repeat { every: Duration::from_millis(100) },
        ..over_tls.clone()
    };
    let mut attacks = vec![
        (15014, "idle keep-alive connections", vec![idle_keep_alive]),
        (15017, "connections without a handshake", vec![idle]),
        (15017, "idle TLS connections", vec![over_tls]),
        (15017, "POSTs whose body never arrives", vec![no_body]),
        (15017, "two sources that use 600 connections all the time", vec![active]),
        (15017, "slow bodies of 8 MiB", vec![slow_bodies]),
        (15017, "reviews with 99,000 values", vec![many_values]),
    ];
    let monitoring = HttpListener::get(webhook.monitoring(), "/metrics").attacks(strength);
    attacks.extend(monitoring.into_iter().map(|(name, hostile)| (15014, name, hostile)));
    let reviews = HttpListener {
        address: webhook.address(),
        tls: Some(webhook.tls()),
        method: "POST",
        path: "/inject",
        request: kept(review()),
    };
    attacks.extend(reviews.attacks(strength).into_iter().map(|(name, hostile)| (15017, name, hostile)));
    attacks
}

/// Returns active clients at more addresses than there are connections.
fn many_addresses(webhook: &Webhook) -> HostileClients {
    HostileClients {
        sources: addresses(1200),
        address: webhook.address(),
        connections: 1,
        per_second: 1,
        tls: Some(webhook.tls()),
        bytes: kept(review()),
        then: Then::Repeat { every: Duration::from_secs(1) },
    }
}

/// Returns a review on a connection that stays open.
fn kept(review: Vec<u8>) -> Vec<u8> {
    String::from_utf8(review).expect("UTF-8").replace("Connection: close\r\n", "").into_bytes()
}
