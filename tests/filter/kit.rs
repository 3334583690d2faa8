//! What the tests of the filter share: a VM with a table, rows of a life and its end, and the words of both.

use std::sync::LazyLock;

use wasm_host::life::{End, Life};
use wasm_host::transcript::{Effect, Headers, headers};
use wasm_host::{Filter, LoadError, Vm, lives};

static FILTER: LazyLock<Result<Filter, LoadError>> = LazyLock::new(Filter::load);

/// A started VM that has no configuration yet.
pub(crate) fn started() -> Vm {
    let filter = FILTER.as_ref().unwrap_or_else(|error| panic!("{error}"));
    Vm::start(filter, lives::host()).unwrap()
}

/// A VM that serves this configuration; what it did until then is forgotten.
pub(crate) fn serving(configuration: &[u8]) -> Vm {
    let mut vm = started();
    let accepted = vm.configure(configuration).unwrap();
    assert!(accepted, "{:?}", vm.transcript().log());
    forget(&mut vm);
    vm
}

/// A VM with one prober of the pod 10.0.0.5, given as JSON, below each of these paths.
pub(crate) fn probing(probers: &[(&str, &str)]) -> Vm {
    let probers: Vec<_> = probers.iter().map(|(path, prober)| format!("{path:?}: {prober}")).collect();
    serving(format!(r#"{{"podIP": "10.0.0.5", "probers": {{{}}}}}"#, probers.join(", ")).as_bytes())
}

/// A VM with the table of `lives`.
pub(crate) fn with_table() -> Vm {
    serving(lives::TABLE)
}

/// Forgets effects and counts.
pub(crate) fn forget(vm: &mut Vm) {
    vm.host_mut().transcript.clear();
    vm.host_mut().calls.reset();
}

/// The head of kubelet's GET.
pub(crate) fn get(path: &str) -> Headers {
    Life::get(path).head
}

/// An answer that passed: this status, nothing else, no body.
pub(crate) fn bare(status: u16) -> End {
    End::Streamed { headers: headers([(":status", status.to_string())]), body: Vec::new() }
}

/// The filter's own answer: no header, and its word before the colon of the body, or no body for no word.
pub(crate) fn reply(status: u32, text: &str) -> End {
    End::Reply { status, headers: Headers::new(), body: text.to_owned() }
}

/// An end as rows write it: the status of an answer of ours with the word of its body, `reset`, `waiting`, `passed`, or
/// the bare status of an answer that passed. Whatever should not go out is shown as it is.
pub(crate) fn shown(end: &End) -> String {
    match end {
        End::Passed => "passed".into(),
        End::Waiting => "waiting".into(),
        End::Reset => "reset".into(),
        End::Reply { status, headers, body } if headers.is_empty() => match body.split_once(": ") {
            Some((word, _)) => format!("{status} {word}"),
            None => format!("{status} {body}").trim_end().to_owned(),
        },
        End::Streamed { headers, body } => match &headers[..] {
            [(name, status)] if name == b":status" && body.iter().all(|byte| *byte == b' ') => {
                format!("passed {} and {} blanks", status.escape_ascii(), body.len())
            }
            _ => format!("{end:?}"),
        },
        End::Reply { .. } => format!("{end:?}"),
    }
}

/// Lives every row in one VM and shows each whose end is another than expected.
pub(crate) fn check(vm: &mut Vm, rows: Vec<(&str, Life, &str)>) {
    let wrong: Vec<_> = rows
        .into_iter()
        .filter_map(|(name, life, expected)| {
            let end = shown(&life.live(vm).unwrap());
            (end != expected).then(|| format!("{name}: {end}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The callouts of a transcript.
pub(crate) fn callouts(vm: &Vm) -> Vec<Effect> {
    vm.transcript().effects().into_iter().filter(|effect| matches!(effect, Effect::HttpCall { .. })).collect()
}

/// The value of a header; empty for none.
pub(crate) fn value(head: &Headers, name: &str) -> String {
    let found = head.iter().find(|(other, _)| other == name.as_bytes());
    found.map_or(String::new(), |(_, value)| value.escape_ascii().to_string())
}
