//! A body that broke off.

/// The body of a response broke off, so that kubelet's prober cannot tell a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenBody;
