//! Bugs to inject where both sides interact: the simulation must find each of them.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InjectedBug {
    /// The server acknowledges reports before they are stored.
    AcknowledgeAtOnce,
    /// The server is not informed when a stream closes.
    NeverClosed,
    /// Agents ignore the acknowledgements of the server.
    DeafToAcknowledgements,
    /// The server stops publishing after a while.
    NeverPublish,
    /// A server that lost its store responds as if it were complete.
    NoStartupGrace,
    /// Agents send nothing on any stream but their first.
    SilentAfterReconnect,
    /// Envoys ignore assignments without endpoints.
    EmptySetsAreLost,
    /// A restart of the server loses the last writes although they were durable.
    StoreForgets,
    /// Istio agents do not reconnect after a lost stream.
    NeverReconnect,
    /// Servers that share a store do not learn what the others write.
    WatchEventsAreLost,
    /// Agents that stop cleanly send no final report.
    NoFinalReport,
}
