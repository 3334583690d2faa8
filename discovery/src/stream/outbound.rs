//! The subscriptions to listeners and routes. Only streams of Envoys that request them have these.

use super::subscription::Subscription;
use crate::message::{TypeUrl, Variant};

#[derive(Debug)]
pub(super) struct OutboundSubscriptions {
    pub(super) listeners: Subscription,
    pub(super) routes: Subscription,
}

impl OutboundSubscriptions {
    pub(super) fn new(variant: Variant) -> Self {
        Self {
            listeners: Subscription::new(TypeUrl::Listener, variant),
            routes: Subscription::new(TypeUrl::Route, variant),
        }
    }
}
