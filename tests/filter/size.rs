//! Tests of the size of the filter's file, and of its memory at the start and under load.

use std::fs;

use wasm_host::life::Life;
use wasm_host::lives::{self, TABLE};
use wasm_host::{Filter, FilterFile, Vm};

use crate::kit::{forget, started};

/// 170 KiB, which V8 compiles in about 60 ms at the start of each Envoy.
const FILE_BYTES: u64 = 174_080;
/// In pages of 64 KiB; one of the two is the stack.
const PAGES_AT_START: u64 = 2;
/// The limit under load with a small prober table.
const PAGES: u64 = 3;

#[test]
fn the_file_is_at_most_170_kib() {
    let bytes = fs::metadata(FilterFile::from_environment().wasm).unwrap().len();
    assert!(bytes <= FILE_BYTES, "{bytes} bytes");
}

#[test]
fn memory_starts_at_128_kib() {
    assert_eq!(Filter::load().unwrap().initial_pages(), PAGES_AT_START);
}

#[test]
fn memory_stays_at_192_kib_over_twenty_thousand_requests() {
    let mut vm = started();
    assert!(vm.configure(TABLE).unwrap());
    let lives = lives::all();
    let mut series = 0;
    for number in 0..20_000 {
        let (_, life) = &lives[number % lives.len()];
        life.live(&mut vm).unwrap();
        Life::get(format!("/app-health/{number}/livez")).live(&mut vm).unwrap();
        forget(&mut vm);
        if number == 1_000 {
            series = vm.host().metrics.names().len();
        }
    }
    assert!(vm.memory_pages() <= PAGES, "{} pages", vm.memory_pages());
    assert_eq!(vm.host().metrics.names().len(), series);
    no_place_is_lost(&mut vm);
}

fn no_place_is_lost(vm: &mut Vm) {
    for path in [lives::HTTP, lives::TCP, lives::GRPC, lives::HOOK] {
        for _ in 0..8 {
            let (context, _) = vm.request(Life::get(path).head, true).unwrap();
            let stream = vm.stream(context).unwrap();
            assert!(stream.local_reply.is_none() && !stream.reset, "{path}");
        }
    }
}
