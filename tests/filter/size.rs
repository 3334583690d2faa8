//! How large the filter is: its file, and its memory at the start and under load.

use std::fs;

use wasm_host::life::Life;
use wasm_host::lives::{self, TABLE};
use wasm_host::{Filter, FilterFile, Vm};

use crate::kit::{forget, started};

/// 170 KiB: what V8 compiles in some 60 ms at the start of every Envoy.
const FILE_BYTES: u64 = 174_080;
/// 128 KiB at the start, of which 64 are the stack, and 192 at most with a small table.
const PAGES_AT_START: u64 = 2;
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

/// A short form of a million hostile requests.
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
