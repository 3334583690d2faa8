//! Generates cases with random probers and random behaviors from a seed. Probers that kubelet
//! cannot use or the prober table rejects are not generated.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::{BoxedStrategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::case::{App, Case, Connection, Family, Listens, Probe, Step};
use kit::app::tls::Tls;

mod health;
mod http1;
mod http2;
mod looks;
mod probers;

/// A case that can be minimized.
pub type Tree = Box<dyn ValueTree<Value = Case>>;

/// Returns the first `count` cases of a seed; the same seed gives the same cases.
pub fn trees(seed: u64, count: u64) -> impl Iterator<Item = Tree> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = case();
    (0..count).map(move |_| strategy.new_tree(&mut runner).expect("every strategy has a value"))
}

fn case() -> BoxedStrategy<Case> {
    prop_oneof![
        45 => plain(),
        12 => over_tls(),
        14 => over_http2(),
        21 => grpc(),
        5 => tcp(),
        3 => no_tls(),
    ]
    .prop_map(neighbours)
    .prop_flat_map(|case| {
        let family = prop_oneof![12 => Just(Family::V4), 1 => Just(Family::V6)];
        family.prop_map(move |family| Case { family, ..case.clone() })
    })
    .boxed()
}

fn named(probe: Probe, app: App) -> Case {
    let (name, also, family, differs) = ("generated".into(), BTreeMap::new(), Family::V4, None);
    Case { name, probe, app, also, family, differs, differs_in_agent: None }
}

/// Adds the other ports of the Pod to which redirects may lead, in the cases that name them.
fn neighbours(mut case: Case) -> Case {
    let answers = |tls| App { tls, connections: connections(vec![http1::plain_success()]), ..App::default() };
    let others = [
        ("other", answers(None)),
        ("secure", answers(Some(Tls::default()))),
        ("shut", App { listens: Listens::Not, ..App::default() }),
    ];
    let text = format!("{:?}", case.app.connections);
    for (name, app) in others {
        if text.contains(&format!("{{{name}}}")) {
            case.also.insert(name.into(), app);
        }
    }
    case
}

fn connections(scripts: Vec<Vec<Step>>) -> Vec<Connection> {
    scripts.into_iter().map(|steps| Connection { times: 1, steps }).collect()
}

/// Generates `httpGet` in plaintext.
fn plain() -> impl Strategy<Value = Case> {
    let app = prop_oneof![
        60 => http1::scripts().prop_map(|scripts| App { connections: connections(scripts), ..App::default() }),
        1 => looks::unresponsive(),
    ];
    (probers::http_get("HTTP"), app).prop_map(|(probe, app)| named(probe, app))
}

/// Generates `httpGet` over TLS to an application that uses HTTP/1.1.
fn over_tls() -> impl Strategy<Value = Case> {
    (probers::http_get("HTTPS"), looks::tls(&["http/1.1"]), http1::scripts()).prop_map(
        |(probe, tls, scripts)| {
            named(probe, App { tls: Some(tls), connections: connections(scripts), ..App::default() })
        },
    )
}

/// Generates `httpGet` over TLS to an application that uses HTTP/2.
fn over_http2() -> impl Strategy<Value = Case> {
    (probers::http_get("HTTPS"), looks::tls(&["h2"]), http2::scripts()).prop_map(|(probe, tls, scripts)| {
        named(probe, App { tls: Some(tls), connections: connections(scripts), ..App::default() })
    })
}

/// Generates `httpGet` over TLS to a port without TLS.
fn no_tls() -> impl Strategy<Value = Case> {
    (probers::http_get("HTTPS"), looks::noise()).prop_map(|(probe, steps)| {
        named(probe, App { connections: connections(vec![steps]), ..App::default() })
    })
}

fn grpc() -> impl Strategy<Value = Case> {
    let app = prop_oneof![
        30 => health::script().prop_map(|steps| App { connections: connections(vec![steps]), ..App::default() }),
        1 => looks::noise().prop_map(|steps| App { connections: connections(vec![steps]), ..App::default() }),
        1 => looks::unresponsive(),
    ];
    (probers::grpc(), app).prop_map(|(probe, app)| named(probe, app))
}

fn tcp() -> impl Strategy<Value = Case> {
    let app = prop_oneof![
        3 => looks::noise().prop_map(|steps| App { connections: connections(vec![steps]), ..App::default() }),
        1 => Just(App { listens: Listens::Not, ..App::default() }),
        1 => Just(App { listens: Listens::NeverAccepts, ..App::default() }),
    ];
    (probers::tcp_socket(), app).prop_map(|(probe, app)| named(probe, app))
}
