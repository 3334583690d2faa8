//! What happened to each probe.

use crate::warning::Code;

enum_table::table! {
    #[derive(PartialOrd, Ord, Hash)]
    pub enum ProbeResult(
        /// Returns the word in the metric.
        word: &'static str,
    ) {
        /// The probe now targets the proxy.
        Rewritten("rewritten"),
        /// The probe targeted the proxy already.
        AlreadyRewritten("already_rewritten"),
        /// The probe was not changed.
        NotRewritten("not_rewritten"),
    }
}

/// A probe or hook that uses the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSummary {
    /// The container's name, or its list and index if the name is invalid.
    pub container: String,
    /// The last segment of the path, for example `livez`.
    pub word: String,
    /// `httpGet`, `tcpSocket` or `grpc`; empty if the handler is unknown or the probe malformed.
    pub handler: &'static str,
    pub result: ProbeResult,
    /// The reason for [`ProbeResult::NotRewritten`].
    pub code: Option<Code>,
}
