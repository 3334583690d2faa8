//! PURE. Mistakes that are built in on purpose, where both sides meet: a simulation that does not find them proves nothing.

use clap::ValueEnum;

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    /// The server acknowledges reports before they are stored.
    AcknowledgeAtOnce,
    /// The server never hears that a stream was closed.
    NeverClosed,
    /// Agents do not hear acknowledgements.
    DeafToAcknowledgements,
    /// The server publishes nothing after a while.
    NeverPublish,
    /// A server that lost its store answers as if it knew everything.
    NeverSettle,
    /// Agents say nothing on a stream that is not their first.
    SilentAfterReconnect,
    /// Envoys do not take sets without endpoints.
    EmptySetsAreLost,
    /// A server that ends loses what it wrote last, though that was durable.
    StoreForgets,
    /// Plain agents do not come back once they lost their stream.
    NeverReconnect,
}
