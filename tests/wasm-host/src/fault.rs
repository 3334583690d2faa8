//! Faults as data: which host call goes wrong, when, and how.

/// The answer of a host call, with proxy-wasm's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// The call was done.
    #[default]
    Ok = 0,
    /// No such header, property, buffer, metric or foreign function.
    NotFound = 1,
    /// A number out of range, a map outside its phase, a cluster that does not exist.
    BadArgument = 2,
    /// A pointer and size outside the guest's memory.
    InvalidMemoryAccess = 6,
    /// What Envoy answers to a call outside the capability allow-list.
    InternalFailure = 10,
    /// A callout without an answer.
    BrokenConnection = 11,
    /// A call that this host does not have.
    Unimplemented = 12,
}

/// How a call goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call does nothing and answers this number, which need not be one of [`Status`].
    Status(u32),
    /// The call traps, as a guest's own panic does.
    Trap,
    /// A call that gives bytes gives these, whatever is there; they need not be UTF-8.
    Value(Vec<u8>),
    /// A call that gives bytes answers Ok with this pointer and size, which need not make sense.
    Pointer { pointer: u32, size: u32 },
    /// A call that gives an id (callout, metric) does its work and gives this one.
    Id(u32),
}

const GIVES_BYTES: [&str; 4] = [
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_value",
    "proxy_get_property",
    "proxy_call_foreign_function",
];
const GIVES_ID: [&str; 2] = ["proxy_http_call", "proxy_define_metric"];

#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Planned>);

#[derive(Debug)]
struct Planned {
    call: String,
    nth: Option<u32>,
    seen: u32,
    fault: Fault,
}

impl Faults {
    pub(super) fn plan(&mut self, call: &str, nth: Option<u32>, fault: Fault) {
        let known = match &fault {
            Fault::Status(_) | Fault::Trap => super::ALLOWED.contains(&call),
            Fault::Value(_) | Fault::Pointer { .. } => GIVES_BYTES.contains(&call),
            Fault::Id(_) => GIVES_ID.contains(&call),
        };
        assert!(known, "{call} = {fault:?}: no such call, or the fault means nothing to it");
        self.0.push(Planned { call: call.to_owned(), nth, seen: 0, fault });
    }

    /// Counts a call and says how it goes wrong, if it does; what was planned last wins.
    pub(super) fn next(&mut self, call: &str) -> Option<Fault> {
        let mut fault = None;
        for planned in self.0.iter_mut().filter(|planned| planned.call == call) {
            planned.seen += 1;
            if planned.nth.is_none_or(|nth| nth == planned.seen) {
                fault = Some(planned.fault.clone());
            }
        }
        fault
    }
}
