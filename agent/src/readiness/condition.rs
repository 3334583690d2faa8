//! The readiness conditions and their names.

/// Readiness condition; Envoy is ready if all conditions are met. `Ord` is the order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    Admin,
    /// Clusters were received, or are static.
    Clusters,
    /// The probe listener and the filter answer.
    DataPath,
    Drain,
    /// Listeners were received, or are static.
    Listeners,
    Live,
    Process,
    Shutdown,
    Workers,
}

impl Condition {
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Clusters => "clusters",
            Self::DataPath => "data-path",
            Self::Drain => "drain",
            Self::Listeners => "listeners",
            Self::Live => "live",
            Self::Process => "process",
            Self::Shutdown => "shutdown",
            Self::Workers => "workers",
        }
    }
}

/// Splits conditions, each with the reason if it is not met, into pending ones and met ones, which
/// are sorted. A pending condition that depends on another pending one is omitted, so that a missing
/// Envoy is reported as one reason and not as seven.
pub(super) fn split(
    conditions: Vec<(Condition, Option<String>)>,
) -> (Vec<(Condition, String)>, Vec<Condition>) {
    let (mut pending, mut met) = (Vec::new(), Vec::new());
    for (condition, reason) in conditions {
        match reason {
            Some(reason) => pending.push((condition, reason)),
            None => met.push(condition),
        }
    }
    pending.retain(|(condition, _)| match condition {
        Condition::Admin | Condition::DataPath => met.contains(&Condition::Process),
        Condition::Live => met.contains(&Condition::Admin),
        Condition::Clusters | Condition::Listeners | Condition::Workers => met.contains(&Condition::Live),
        Condition::Process | Condition::Drain | Condition::Shutdown => true,
    });
    met.sort();
    (pending, met)
}
