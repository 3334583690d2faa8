//! The probe listener is updated under load, as a control plane would do: each probe is answered by
//! the old or the new configuration, and an invalid one changes nothing.

use std::cell::Cell;
use std::net::SocketAddr;

use futures_util::future::join;
use serde_json::json;

use kit::app::counted::{CountedApp, Habit};
use kit::envoy::{Envoy, Version, folder};
use kit::load::{Load, Tally, ask, kubelet_request};
use kit::net;
use kit::plain_listener;
use kit::pod::Pod;
use kit::report::Row;
use kit::wait::until;
use kit::watched_listener::WatchedListener;

/// The statuses of the two applications between which the configurations alternate.
const STATUSES: [u16; 2] = [200, 201];
/// One configuration in this number is rejected by the filter.
const BAD: u64 = 5;

/// Applies `configurations` one after the other, while `per_second` probes per second are sent.
///
/// # Panics
/// If a probe gets a response of neither the old nor the new configuration, a valid configuration
/// is rejected, or an invalid one is accepted.
pub async fn run(name: &str, configurations: u64, per_second: u32) -> Vec<Row> {
    let ip = net::loopback();
    let apps = STATUSES.map(|status| CountedApp::start(ip, Habit::status(status)));
    let table = |number: u64| {
        let app = &apps[usize::from(number % 2 == 1)];
        json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}, "timeoutSeconds": 60}})
    };
    let mut bootstrap =
        serde_json::from_str(&Pod::bootstrap(name, ip, &json!({})).render()).expect("a bootstrap is JSON");
    plain_listener::raise_rate_limit(&mut bootstrap);
    let listener = WatchedListener::of(&mut bootstrap, &folder(name));
    listener.write(0, ip, &table(0));
    let envoy = Envoy::start(Version::Newest, folder(name), &bootstrap, 1).await;
    let address = kit::envoy::probe_listener(ip);
    let request = kubelet_request(address, "/app-health/app/readyz");
    until("the first configuration is active", async || ask(None, address, &request).await.status == 200)
        .await;

    let (done, last) = (Cell::new(false), Cell::new(0));
    let probing = probe_until(&done, &last, per_second, address, &request);
    let swapping = async {
        for number in 1..=configurations {
            let updates = ("listener_manager.lds.update_success", "listener_manager.lds.update_rejected");
            let bad = number % BAD == 0;
            let (counter, probers) = match bad {
                false => (updates.0, table(number)),
                true => (updates.1, json!({"/app-health/app/readyz": {"httpGet": {"port": 70_000}}})),
            };
            let before = envoy.stat(counter).await.unwrap_or(0);
            listener.write(number, ip, &probers);
            until(counter, async || envoy.stat(counter).await.unwrap_or(0) > before).await;
            let serving = if bad { number - 1 } else { number };
            let status = STATUSES[usize::from(serving % 2 == 1)];
            until("the last configuration is active", async || {
                ask(None, address, &request).await.status == status
            })
            .await;
            until("a probe of the load is answered by it", async || last.get() == status).await;
        }
        done.set(true);
    };
    let (tally, ()) = join(probing, swapping).await;
    let answered: u64 = STATUSES.iter().map(|status| tally.of(*status)).sum();
    assert_eq!((answered, tally.broken), (tally.total(), 0), "{tally:?}\n{}", envoy.log());
    assert!(STATUSES.iter().all(|status| tally.of(*status) > 0), "{tally:?}");
    envoy.stop().await;
    vec![
        Row::new("configurations", super::float(configurations), "configurations"),
        Row::new("configurations a second", super::float(configurations) / tally.took.as_secs_f64(), "1/s"),
        Row::new("probes during the updates", super::float(tally.total()), "probes"),
        Row::new("slowest probe", super::millis(tally.slowest), "ms"),
    ]
}

/// Sends probes in batches of a tenth of a second, until `done`, and sets `last` to the status of
/// each.
async fn probe_until(
    done: &Cell<bool>,
    last: &Cell<u16>,
    per_second: u32,
    address: SocketAddr,
    request: &[u8],
) -> Tally {
    let mut all = Tally::default();
    while !done.get() {
        let load = Load { total: u64::from(per_second / 10), at_once: 4, per_second: Some(per_second) };
        let probe = async |_| {
            let answer = ask(None, address, request).await;
            last.set(answer.status);
            answer
        };
        let tally = load.run(probe).await;
        all.took += tally.took;
        all.add_all(tally);
    }
    all
}
