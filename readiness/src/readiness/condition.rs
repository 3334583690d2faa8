//! The readiness conditions and their names.

enum_table::table! {
    /// Readiness condition; Envoy is ready if all conditions are met. `Ord` is the order of the names.
    #[derive(PartialOrd, Ord)]
    pub enum Condition(name: &'static str) {
        Admin("admin"),
        /// Clusters were received, or are static.
        Clusters("clusters"),
        /// The probe listener and the filter answer.
        DataPath("data-path"),
        Drain("drain"),
        /// Listeners were received, or are static.
        Listeners("listeners"),
        Live("live"),
        /// The agent answers DNS queries and has the names of the mesh.
        Names("names"),
        Process("process"),
        Shutdown("shutdown"),
        Workers("workers"),
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
        Condition::Process | Condition::Names | Condition::Drain | Condition::Shutdown => true,
    });
    met.sort();
    (pending, met)
}
