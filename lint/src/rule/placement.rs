//! The rule about settings of the injection that are on another object than the Pod.

use super::{Rule, Severity, rules};

rules! { PLACEMENT_RULES:
    WRONG_PLACE = "AH130" "wrong-place" Warning,
    "a label or annotation of the injection is on the workload and not on its Pod template",
    "The controller creates the Pods from the template, so they do not get the labels and annotations \
     of the workload, and the setting has no effect. For example, a Pod gets a sidecar although its \
     Deployment says sidecar.istio.io/inject: false.",
    "Move it to metadata of the Pod template, such as spec.template.metadata.";
}
