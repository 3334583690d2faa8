//! Tests of our agent in an Istio mesh on a real node. They are ignored by default; `./justw
//! test-istio-mesh` runs them.

mod alone_docs;
mod alone_webhook;
mod faults;
mod istioctl;
mod kinds;
mod machine;
mod probes;
mod requests;
mod rollout;
