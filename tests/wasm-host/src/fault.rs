//! Faults as data: which host call fails, when, and how.

/// The status of a host call, with the numbers of proxy-wasm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    #[default]
    Ok = 0,
    /// No such header, property, buffer, metric or foreign function.
    NotFound = 1,
    /// A number out of range, a map that is not available in the current phase, or an unknown
    /// cluster.
    BadArgument = 2,
    /// A pointer and size outside the guest's memory.
    InvalidMemoryAccess = 6,
    /// Envoy's response to a call outside the capability allow-list.
    InternalFailure = 10,
    /// A callout without a response.
    BrokenConnection = 11,
    /// A call that this host does not implement.
    Unimplemented = 12,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call does nothing and returns this number, which need not be a [`Status`].
    Status(u32),
    /// The call traps, like a panic of the guest.
    Trap,
    /// A call that returns bytes returns these instead; they need not be UTF-8.
    Value(Vec<u8>),
    /// A call that returns an ID (callout, metric) succeeds but returns this one.
    Id(u32),
}

const RETURNS_BYTES: [&str; 4] = [
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_value",
    "proxy_get_property",
    "proxy_call_foreign_function",
];
const RETURNS_ID: [&str; 2] = ["proxy_http_call", "proxy_define_metric"];

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
            Fault::Value(_) => RETURNS_BYTES.contains(&call),
            Fault::Id(_) => RETURNS_ID.contains(&call),
        };
        assert!(known, "{call} = {fault:?}: unknown call, or the fault does not apply to it");
        self.0.push(Planned { call: call.to_owned(), nth, seen: 0, fault });
    }

    /// Counts a call and returns its fault, if there is one; the fault that was added last has
    /// priority.
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
