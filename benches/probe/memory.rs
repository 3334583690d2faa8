//! Measures the resident memory of each process after all probes.

use std::io::Result;

use kit::envoy::{Envoy, Version, folder};
use kit::net;
use kit::plain;
use kit::process::Process;
use kit::report::Row;
use serde_json::json;

use crate::arguments::Target;
use crate::client::Client;
use crate::lab::{Lab, Part, WARM_UP, bootstrap, plain_listener};

const MIB: f64 = 1_048_576.0;

/// Measures every process, and for comparison an Envoy without probe listener and filter, after
/// probes by the plain route.
pub(crate) async fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let row = |name: &str, process: Process| {
        let bytes = u32::try_from(process.rss()).expect("less than 4 GiB");
        Row::new(format!("memory, {name}"), f64::from(bytes) / MIB, "MiB")
    };
    let mut rows = Vec::new();
    for (part, process) in &lab.processes {
        rows.push(row(part.name(), *process));
        if *part == Part::Envoy {
            let ip = net::loopback();
            let mut bootstrap = bootstrap("bare", ip, lab.app, &json!({}));
            plain::without_probe_listener(&mut bootstrap);
            let bare = Envoy::start(Version::Newest, folder("bare"), &bootstrap, 1).await;
            Client::Light.ask(lab, &Target::new(plain_listener(ip), "/"), WARM_UP).await?;
            rows.push(row("Envoy with the plain listener alone", Process::new(bare.pid())));
            bare.stop().await;
        }
    }
    Ok(rows)
}
