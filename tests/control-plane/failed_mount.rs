//! Tests that a configuration directory that is not mounted deletes nothing.

use std::fs;
use std::path::Path;
use std::thread;

use crate::discovery_support::{Discovery, client, has_machine, health, reporter, wait_for_page};

/// The words that an error about the directory contains.
const FIX: &str = "--allow-empty-config";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unmounted_configuration_deletes_nothing() {
    let mut discovery = Discovery::start("unmounted", &[]);
    let (mut client, reporter) = (client(&discovery).await, reporter(&discovery).await);
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
    let (mounted, unmounted) = (discovery.folder.join("mesh"), discovery.folder.join("elsewhere"));
    fs::rename(&mounted, &unmounted).expect("a rename");
    let is_degraded = |_, text: &str| text.contains("degraded: configuration: 1 errors");
    for prepare in [|_: &Path| Ok(()), |mounted: &Path| fs::create_dir(mounted)] {
        prepare(&mounted).expect("a mount point");
        tokio::task::block_in_place(|| {
            wait_for_page(&discovery.folder, "/healthz/ready", is_degraded);
            wait_for_page(&discovery.folder, "/debug/workloads", |_, text| text.contains(FIX));
        });
        assert!(client.is_quiet().await, "no endpoint is removed");
    }

    // After a restart nothing is served from an empty directory either.
    discovery.terminate();
    tokio::task::block_in_place(|| discovery.wait());
    let folder = discovery.folder.clone();
    let mount = thread::spawn(move || {
        wait_for_page(&folder, "/healthz/ready", |status, text| status == 503 && text.contains(FIX));
        fs::rename(unmounted.join("shop.yaml"), mounted.join("shop.yaml")).expect("a rename");
    });
    tokio::task::block_in_place(|| discovery.start_again(&[]));
    mount.join().expect("the error is shown");
    let mut again = crate::discovery_support::client(&discovery).await;
    assert!(has_machine(&again.assignment(|_| true).await), "the entry is still in the store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directory_may_be_empty_on_purpose() {
    let discovery = Discovery::start("on-purpose", &["--allow-empty-config"]);
    let (mut client, reporter) = (client(&discovery).await, reporter(&discovery).await);
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
    fs::remove_file(discovery.folder.join("mesh/shop.yaml")).expect("a file");
    tokio::task::block_in_place(|| {
        wait_for_page(&discovery.folder, "/debug/workloads", |_, text| text.contains("\"workloads\":[]"));
    });
}
