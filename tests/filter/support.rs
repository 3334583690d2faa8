//! Support for the tests of the filter: a configured VM, and rows of a scenario and its expected
//! outcome.

use std::sync::LazyLock;

use wasm_host::scenario::{Outcome, Scenario};
use wasm_host::transcript::{Effect, Headers, headers};
use wasm_host::{Filter, LoadError, Vm, scenarios};

static FILTER: LazyLock<Result<Filter, LoadError>> = LazyLock::new(Filter::load);

/// Starts a VM without a configuration.
pub(crate) fn start_vm() -> Vm {
    let filter = FILTER.as_ref().unwrap_or_else(|error| panic!("{error}"));
    Vm::start(filter, scenarios::host()).unwrap()
}

/// Starts a VM with this configuration, and clears its transcript and counters.
pub(crate) fn configured_vm(configuration: &[u8]) -> Vm {
    let mut vm = start_vm();
    let accepted = vm.configure(configuration).unwrap();
    assert!(accepted, "{:?}", vm.transcript().log());
    clear(&mut vm);
    vm
}

/// Starts a VM that has, for each path, the prober in JSON, and the Pod address 10.0.0.5.
pub(crate) fn vm_with_probers(probers: &[(&str, &str)]) -> Vm {
    let probers: Vec<_> = probers.iter().map(|(path, prober)| format!("{path:?}: {prober}")).collect();
    configured_vm(format!(r#"{{"podIP": "10.0.0.5", "probers": {{{}}}}}"#, probers.join(", ")).as_bytes())
}

/// Starts a VM with the prober table that the scenarios use.
pub(crate) fn vm_with_table() -> Vm {
    configured_vm(scenarios::TABLE)
}

/// Clears the transcript and the counters of host calls.
pub(crate) fn clear(vm: &mut Vm) {
    vm.host_mut().transcript.clear();
    vm.host_mut().calls.reset();
}

/// The headers of the kubelet's GET request.
pub(crate) fn get(path: &str) -> Headers {
    Scenario::get(path).head
}

/// The end of a response that passed: only the status, and no body.
pub(crate) fn passed(status: u16) -> Outcome {
    Outcome::Streamed { headers: headers([(":status", status.to_string())]), body: Vec::new() }
}

/// The end of a local reply of the filter, which has a body and no headers.
pub(crate) fn reply(status: u32, text: &str) -> Outcome {
    Outcome::Reply { status, headers: Headers::new(), body: text.to_owned() }
}

/// Formats an outcome as in the rows: the status and the reason of a local reply, `reset`,
/// `waiting`, `passed`, or `passed` with the status of a response. Any other outcome is shown by its
/// `Debug` output.
pub(crate) fn format_outcome(end: &Outcome) -> String {
    match end {
        Outcome::Passed => "passed".into(),
        Outcome::Waiting => "waiting".into(),
        Outcome::Reset => "reset".into(),
        Outcome::Reply { status, headers, body } if headers.is_empty() => match body.split_once(": ") {
            Some((reason, _)) => format!("{status} {reason}"),
            None => format!("{status} {body}").trim_end().to_owned(),
        },
        Outcome::Streamed { headers, body } => match &headers[..] {
            [(name, status)] if name == b":status" && body.iter().all(|byte| *byte == b' ') => {
                format!("passed {} and {} spaces", status.escape_ascii(), body.len())
            }
            _ => format!("{end:?}"),
        },
        Outcome::Reply { .. } => format!("{end:?}"),
    }
}

/// Runs every row in one VM, and fails with a list of those whose end differs from the expected
/// one.
pub(crate) fn check(vm: &mut Vm, rows: Vec<(&str, Scenario, &str)>) {
    let wrong: Vec<_> = rows
        .into_iter()
        .filter_map(|(name, scenario, expected)| {
            let end = format_outcome(&scenario.run(vm).unwrap());
            (end != expected).then(|| format!("{name}: {end}, expected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

pub(crate) fn callouts(vm: &Vm) -> Vec<Effect> {
    vm.transcript().effects().into_iter().filter(|effect| matches!(effect, Effect::HttpCall { .. })).collect()
}

/// Returns the value of a header, or an empty string if it is absent.
pub(crate) fn value(head: &Headers, name: &str) -> String {
    let found = head.iter().find(|(other, _)| other == name.as_bytes());
    found.map_or(String::new(), |(_, value)| value.escape_ascii().to_string())
}
