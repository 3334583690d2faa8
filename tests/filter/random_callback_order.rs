//! Tests that deliver events in a pseudorandom order, which is the same in every run: nothing traps,
//! and afterwards probes still work.

use wasm_host::scenarios::{self, GRPC, HOOK, HTTP, TABLE, TCP};
use wasm_host::transcript::headers;
use wasm_host::{CalloutAnswer, Vm, VmError};

use crate::callback_order::assert_serves;
use crate::support::{clear, get, start_vm};

/// The generator SplitMix64, which gives the same numbers in every run.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 33).unwrap() % end
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Delivers one random event. The error `OutOfTurn`, for an event that Envoy would not deliver, is
/// allowed; a trap is not.
fn step(vm: &mut Vm, numbers: &mut SplitMix64, contexts: &mut Vec<u32>) -> Result<(), VmError> {
    let context = if contexts.is_empty() { 0 } else { *numbers.of(contexts) };
    match numbers.below(8) {
        0..=2 => {
            let path = *numbers.of(&[HTTP, TCP, GRPC, HOOK, "/app-health/x", "/"]);
            contexts.push(vm.request(get(path), numbers.below(8) > 0)?.0);
        }
        3 => {
            let status = *numbers.of(&["200", "302", "503", "", "\u{ff}"]);
            let location = *numbers.of(&["/a", "http://other/", "http://["]);
            vm.response(context, headers([(":status", status), ("location", location)]), false)?;
        }
        4 => drop(vm.response_body(context, &vec![b'x'; numbers.below(12_000)], numbers.below(3) == 0)?),
        5 => {
            let token = vm.host().newest_callout();
            match numbers.below(3) {
                0 => vm.callout_failed(token)?,
                1 => vm.callout_answer(token, scenarios::grpc(Some(1), "0"))?,
                _ => vm.callout_answer(token, CalloutAnswer::default())?,
            }
        }
        6 => vm.finish(context)?,
        _ => {
            vm.configure(numbers.of::<&[u8]>(&[TABLE, b"{}", b"[]"]))?;
        }
    }
    Ok(())
}

#[test]
fn random_orders_of_events_never_trap() {
    for seed in 1..=8 {
        let (mut vm, mut numbers, mut contexts) = (start_vm(), SplitMix64(seed), Vec::new());
        for number in 0..2_000 {
            match step(&mut vm, &mut numbers, &mut contexts) {
                Ok(()) | Err(VmError::OutOfTurn { .. }) => {}
                Err(error) => panic!("seed {seed}, step {number}: {error}"),
            }
            clear(&mut vm);
            contexts.retain(|context| vm.stream(*context).is_some());
            if contexts.len() > 20 {
                contexts.remove(0);
            }
        }
        assert!(vm.configure(TABLE).unwrap());
        assert_serves(&mut vm);
    }
}
