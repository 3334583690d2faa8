//! A stream that Envoy has opened.

use hyper::body::Incoming;
use serving::grpc::{Messages, Parts};
use tokio::sync::mpsc;
use tonic::Status;
use xds::Variant;

/// Responses to Envoy; the status at the end is always OK.
pub(super) type Responses = mpsc::Sender<Result<Parts, Status>>;

/// A new ADS stream of Envoy.
pub(super) struct NewStream {
    pub(super) variant: Variant,
    pub(super) requests: Messages<Incoming>,
    pub(super) responses: Responses,
}
