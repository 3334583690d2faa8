//! Clients that occupy connections, reviews or memory of the webhook.

use std::time::Duration;

use kit::net;

use super::{LIVE, LIVE_BAR, Strength, health_checks, keep_alive};
use crate::addresses;
use crate::honest::HonestClient;
use crate::hostile::{HostileClients, Then};
use crate::measurement::{Measurement, Phases, Scenario, measure};
use crate::request::{Expectation, Request};
use crate::webhook::{Webhook, head, review};

const REVIEWS: &str = "reviews";
/// The bar for reviews during an attack.
const REVIEW_BAR: Duration = Duration::from_millis(250);
/// `timeoutSeconds` of the shipped webhook configuration.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of concurrent reviews of the API server.
const REVIEWERS: usize = 3;
/// The largest body that the webhook accepts, in bytes.
const LARGEST_BODY: usize = 8 << 20;

/// Attacks one webhook in all ways, one after the other.
pub async fn run(strength: Strength, phases: Phases, mut done: impl FnMut(Measurement)) {
    let webhook = Webhook::start("attack-webhook").await;
    for (name, hostile) in attacks(&webhook, strength) {
        let scenario = Scenario {
            name: name.to_owned(),
            honest: honest(&webhook),
            hostile: vec![hostile],
            attacked: vec![webhook.pid()],
            bars: vec![(LIVE, LIVE_BAR), (REVIEWS, REVIEW_BAR)],
        };
        done(measure(scenario, phases).await);
    }
}

/// Returns kubelet's health checks and the reviews of the API server.
pub(crate) fn honest(webhook: &Webhook) -> Vec<HonestClient> {
    let api_server = net::loopback();
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
    let mut clients = health_checks(net::loopback(), webhook.monitoring());
    clients.extend(std::iter::repeat_n(reviewer, REVIEWERS));
    clients
}

fn attacks(webhook: &Webhook, strength: Strength) -> [(&'static str, HostileClients); 6] {
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
    [
        (
            "webhook 15014, idle keep-alive connections",
            HostileClients {
                address: webhook.monitoring(),
                bytes: keep_alive(webhook.monitoring(), "/metrics"),
                ..idle.clone()
            },
        ),
        ("webhook 15017, connections without a handshake", idle),
        ("webhook 15017, idle TLS connections", over_tls.clone()),
        (
            "webhook 15017, POSTs whose body never arrives",
            HostileClients { bytes: format!("{}{{", head(1000)).into_bytes(), ..over_tls.clone() },
        ),
        (
            "webhook 15017, two sources that use 600 connections all the time",
            HostileClients {
                sources: addresses(2),
                connections: 600,
                bytes: kept_review(),
                then: Then::Repeat { every: Duration::from_millis(800) },
                ..over_tls.clone()
            },
        ),
        (
            "webhook 15017, slow bodies of 8 MiB",
            HostileClients {
                bytes: head(LARGEST_BODY).into_bytes(),
                then: Then::Send { every: Duration::from_millis(200) },
                ..over_tls
            },
        ),
    ]
}

/// Returns a review on a connection that stays open.
fn kept_review() -> Vec<u8> {
    String::from_utf8(review()).expect("UTF-8").replace("Connection: close\r\n", "").into_bytes()
}
