//! Tests of the size of the filter's file, and of its memory at the start and under load.

use std::fs;
use std::time::Duration;

use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{self, TABLE};
use wasm_host::{Filter, FilterFile, Vm};

use crate::support::{clear, start_vm};

/// 200 KiB; V8 compiles the file at the start of each Envoy.
const FILE_BYTES: u64 = 204_800;
/// In pages of 64 KiB; one of the two is the stack.
const PAGES_AT_START: u64 = 2;
/// The limit under load with a small prober table.
const PAGES: u64 = 3;

#[test]
fn the_file_is_at_most_200_kib() {
    let bytes = fs::metadata(FilterFile::from_environment().wasm).unwrap().len();
    assert!(bytes <= FILE_BYTES, "{bytes} bytes");
}

#[test]
fn memory_starts_at_128_kib() {
    assert_eq!(Filter::load().unwrap().initial_pages(), PAGES_AT_START);
}

#[test]
fn memory_stays_at_192_kib_over_twenty_thousand_requests() {
    let mut vm = start_vm();
    assert!(vm.configure(TABLE).unwrap());
    let scenarios = scenarios::all();
    let mut series = 0;
    for number in 0..20_000 {
        let (_, scenario) = &scenarios[number % scenarios.len()];
        scenario.run(&mut vm).unwrap();
        Scenario::get(format!("/app-health/{number}/livez")).run(&mut vm).unwrap();
        clear(&mut vm);
        // A callout whose stream has ended occupies a slot for some time.
        vm.host_mut().now += Duration::from_secs(30);
        if number == 1_000 {
            series = vm.host().metrics.names().len();
        }
    }
    assert!(vm.memory_pages() <= PAGES, "{} pages", vm.memory_pages());
    assert_eq!(vm.host().metrics.names().len(), series);
    assert_no_slot_is_lost(&mut vm);
}

fn assert_no_slot_is_lost(vm: &mut Vm) {
    for path in [scenarios::HTTP, scenarios::TCP, scenarios::GRPC, scenarios::HOOK] {
        for _ in 0..8 {
            let (context, _) = vm.request(Scenario::get(path).head, true).unwrap();
            let stream = vm.stream(context).unwrap();
            assert!(stream.local_reply.is_none() && !stream.reset, "{path}");
        }
    }
}
