//! What is known about a Pod besides itself.

use serde_json::Value;

/// Attributes of a Pod that the Pod itself may not contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodContext<'a> {
    /// The namespace of the Pod or of the object that contains it; empty if unknown.
    pub namespace: &'a str,
    /// True if the Pod is the template of a Job.
    pub job: bool,
    /// The `volumeClaimTemplates` of the StatefulSet that contains the Pod. Each becomes a volume of
    /// its Pods, and replaces a volume of the same name.
    pub claims: &'a [Value],
}
