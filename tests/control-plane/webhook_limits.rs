//! Tests that clients which occupy connections, reviews or memory do not delay other clients.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use kit::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::webhook_support::{
    Ca, Call, Webhook, connect_from, health_checks_are_answered_under_load, review,
};

/// After this time without a review, the webhook may close a connection in favour of another client.
const IDLE: Duration = Duration::from_secs(1);

/// Addresses of hostile clients.
const HOSTILE: [[u8; 4]; 4] = [[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4], [127, 0, 0, 5]];

/// Opens connections from each hostile address; the webhook may close some of them.
fn hostile_calls(webhook: &Webhook, each: usize) -> impl Iterator<Item = Call> {
    let client = webhook.client(None);
    let sources = HOSTILE.iter().flat_map(move |source| std::iter::repeat_n(*source, each));
    sources.filter_map(move |source| Call::over(connect_from(source, webhook.address).ok()?, &client).ok())
}

/// Returns a request with an incomplete body.
fn incomplete(body: &str) -> Vec<u8> {
    let head = "POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len() + 1).into_bytes()
}

#[test]
fn kept_connections_do_not_block_health_checks() {
    let webhook = Webhook::start("monitoring", &[], &[]);
    health_checks_are_answered_under_load(webhook.monitoring);
}

#[test]
fn idle_connections_of_others_do_not_close_a_kept_one() {
    let webhook = Webhook::start("idle", &[], &[]);
    let mut kept = webhook.call();
    assert_eq!(kept.post(&review("a")).expect("an answer").status, 200);
    // After a review a connection may be idle for minutes. Before its first request it would be closed
    // after seconds, so each one sends it before the next one is opened.
    let hostile: Vec<Call> = hostile_calls(&webhook, 270)
        .filter_map(|mut call| call.post(&review("hostile")).is_ok().then_some(call))
        .collect();
    assert_eq!(kept.post(&review("b")).expect("the connection is kept").status, 200);
    assert_eq!(webhook.call().post(&review("c")).expect("an answer").status, 200);
    webhook.wait_for_metric(
        "app_health_webhook_connections_closed_total{server=\"webhook\",reason=\"evicted\"}",
    );
    drop(hostile);
}

/// Ends the flood when a test fails, too.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keeps 600 connections, from addresses in turn, and uses each all the time, until `stop`.
fn flood(webhook: &Webhook, sources: &[[u8; 4]], rounds: &AtomicUsize, stop: &AtomicBool) {
    let (client, review) = (webhook.client(None), review("hostile"));
    let mut calls = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for connection in calls.len()..600 {
            let call = connect_from(sources[connection % sources.len()], webhook.address);
            calls.extend(call.and_then(|socket| Call::over(socket, &client)));
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
        calls.retain_mut(|call| !stop.load(Ordering::Relaxed) && call.post(&review).is_ok());
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn active_clients_of_two_addresses_do_not_block_reviews() {
    let webhook = Webhook::start("active", &[], &[]);
    reviews_are_answered_beside(&webhook, &[vec![HOSTILE[0]], vec![HOSTILE[1]]]);
}

#[test]
fn active_clients_of_hundreds_of_addresses_do_not_block_a_known_api_server() {
    let flags = ["--api-server-address", "192.0.2.1", "--api-server-address", "127.0.0.1/32"];
    let webhook = Webhook::start("rotation", &flags, &[]);
    let sources = |third| (1..=250).map(|last| [127, 0, third, last]).collect();
    reviews_are_answered_beside(&webhook, &[sources(1), sources(2)]);
}

#[test]
fn clients_without_a_certificate_do_not_close_the_connection_of_one_with_a_certificate() {
    let clients = Ca::new("of clients");
    let flags = ["--client-ca", "{}/clients.pem"];
    let webhook = Webhook::start("certificates", &flags, &[("clients.pem", &clients.pem)]);
    let client = webhook.client(Some(&clients.sign("api-server", &[])));
    let mut kept = Call::new(webhook.address, &client).expect("a connection");
    assert_eq!(kept.post(&review("a")).expect("an answer").status, 200);
    // From then on the connection is idle.
    sleep(Duration::from_millis(1100));
    let hostile: Vec<_> = (0..1200_u16)
        .map(|client| {
            let [third, last] = (client + 512).to_be_bytes();
            connect_from([127, 0, third, last], webhook.address)
        })
        .collect();
    webhook.wait_for_metric(
        "app_health_webhook_connections_closed_total{server=\"webhook\",reason=\"evicted\"}",
    );
    let mut new = Call::new(webhook.address, &client).expect("a connection");
    assert_eq!(new.post(&review("b")).expect("an answer").status, 200);
    assert_eq!(kept.post(&review("c")).expect("the connection is kept").status, 200);
    drop(hostile);
}

/// Sends reviews from 127.0.0.1 while clients of each group of addresses keep 600 connections.
fn reviews_are_answered_beside(webhook: &Webhook, groups: &[Vec<[u8; 4]>; 2]) {
    let (rounds, stop) = ([AtomicUsize::new(0), AtomicUsize::new(0)], AtomicBool::new(false));
    let failed = thread::scope(|scope| {
        let _stop = Stop(&stop);
        for (sources, rounds) in groups.iter().zip(&rounds) {
            let stop = &stop;
            scope.spawn(move || flood(webhook, sources, rounds, stop));
        }
        let has_flooded = || rounds.iter().all(|rounds| rounds.load(Ordering::Relaxed) > 0);
        wait::until_blocking(|| format!("no flood: {rounds:?}"), has_flooded);
        let is_answered = |call: &mut Call| call.post(&review("a")).is_ok_and(|answer| answer.status == 200);
        // Like an API server, which opens a connection for each concurrent review and keeps some.
        let (mut kept, mut used) = (webhook.call(), Instant::now());
        let reviews = (0..100).filter(|_| {
            let new = Call::new(webhook.address, &webhook.client(None));
            let mut is_kept = is_answered(&mut kept);
            if !is_kept && used.elapsed() >= IDLE {
                // On a slow machine, the webhook may close it as idle; the API server opens another one.
                kept = webhook.call();
                is_kept = is_answered(&mut kept);
            }
            used = Instant::now();
            !is_kept || !new.is_ok_and(|mut new| is_answered(&mut new))
        });
        reviews.collect::<Vec<_>>()
    });
    assert!(failed.is_empty(), "{failed:?} of 100 times");
}

#[test]
fn bodies_that_never_arrive_do_not_block_reviews() {
    let webhook = Webhook::start("incomplete", &[], &[]);
    let mut hostile: Vec<Call> = hostile_calls(&webhook, 100).collect();
    for call in &mut hostile {
        call.send(&incomplete("{")).expect("sent");
    }
    for uid in ["a", "b", "c"] {
        assert_eq!(webhook.call().post(&review(uid)).expect("an answer").status, 200);
    }
    drop(hostile);
}

#[test]
fn large_incomplete_bodies_do_not_take_the_memory_of_others() {
    let webhook = Webhook::start("memory", &[], &[]);
    let mut hostile: Vec<Call> = hostile_calls(&webhook, 2).collect();
    let half = incomplete(&" ".repeat(5 << 20));
    thread::scope(|scope| {
        for call in &mut hostile {
            // The webhook may respond before it has read all.
            scope.spawn(|| call.send(&half));
        }
        sleep(Duration::from_millis(500));
        let answer = webhook.call().post(&large()).expect("an answer");
        assert_eq!(
            (answer.status, webhook.call().post(&review("small")).expect("an answer").status),
            (200, 200)
        );
    });
}

#[test]
fn connections_do_not_use_up_the_descriptors() {
    let webhook = Webhook::start_with_descriptors("descriptors", 480);
    let sources = HOSTILE.iter().cycle().take(600);
    let hostile: Vec<_> = sources.map(|source| connect_from(*source, webhook.address)).collect();
    for uid in ["a", "b", "c"] {
        assert_eq!(webhook.call().post(&review(uid)).expect("an answer").status, 200);
    }
    let log = webhook.log();
    assert!(log.contains("file descriptor limit is lower than the webhook needs"), "{log}");
    assert!(!log.contains("accept failed"), "{log}");
    drop(hostile);
}

/// Returns a review of 1 MiB.
fn large() -> String {
    let mut large: Value = serde_json::from_str(&review("large")).expect("JSON");
    large["request"]["object"]["metadata"]["annotations"] = json!({"note": "x".repeat(1 << 20)});
    large.to_string()
}

/// Returns the log of a webhook after a review of a Pod with a long name and a thousand of Pods with a
/// short one, all from 127.0.0.1. The client chooses the names.
fn log_of_many_reviews(test: &str, flags: &[&str]) -> String {
    let webhook = Webhook::start(test, flags, &[]);
    let mut client = webhook.call();
    let named = |name: &str| review("a").replace("\"name\":\"shop\"", &format!("\"name\":\"{name}\""));
    let long = named(&"x".repeat(1 << 20));
    for body in std::iter::once(&long).chain(std::iter::repeat_n(&named("evil"), 1000)) {
        assert_eq!(client.post(body).expect("an answer").status, 200);
    }
    webhook.log()
}

#[test]
fn one_client_writes_little_to_the_log() {
    let log = log_of_many_reviews("review-log", &[]);
    assert!(log.contains("name=\"evil\""), "{log}");
    assert!(log.len() < 64 << 10, "{} bytes", log.len());
}

#[test]
fn every_review_of_a_known_api_server_is_logged() {
    let log = log_of_many_reviews("review-log-api-server", &["--api-server-address", "127.0.0.1"]);
    assert_eq!(log.matches("name=\"evil\"").count(), 1000);
}
