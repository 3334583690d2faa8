//! The Envoys: they open streams, reconnect after losing them, and process responses.

use discovery::entries::StreamId;
use discovery::message::{Response, TypeUrl};

use super::{Event, World};
use crate::envoy::Envoy;
use crate::injected_bug::InjectedBug;
use crate::network::{End, Packet};

/// The longest pause before a new stream, in milliseconds.
const PAUSE: u64 = 10_000;

/// An Envoy and its stream.
#[derive(Debug)]
pub struct Client {
    pub envoy: Envoy,
    /// The stream; absent while it waits for the next attempt.
    pub stream: Option<StreamId>,
}

impl World {
    pub(super) fn connect_envoy(&mut self, number: usize) {
        let index = self.plan.machines.len() + number;
        if self.clients[number].stream.is_some() {
            return;
        }
        let (Some(server), false) = (self.pick_server(), self.is_cut_off(index)) else {
            return self.connect_envoy_later(number);
        };
        let stream = self.network.open(index, 0, server);
        self.clients[number].stream = Some(stream);
        for request in self.clients[number].envoy.opened() {
            self.trace(|| format!("envoy {number}: stream {stream}: {request:?}"));
            self.send(stream, End::Server, Packet::Request(Box::new(request)));
        }
    }

    fn connect_envoy_later(&mut self, number: usize) {
        let at = self.now + self.random.millis(10, PAUSE);
        self.at(at, Event::ConnectEnvoy(number));
    }

    /// Replaces the Envoy by a new one without resources.
    pub(super) fn restart_envoy(&mut self, number: usize) {
        let (variant, _) = self.plan.envoys[number];
        if let Some(stream) = self.clients[number].stream {
            self.envoy_lost(stream, number);
        }
        self.clients[number].envoy = Envoy::new(variant);
    }

    /// Handles the loss of its stream.
    pub(super) fn envoy_lost(&mut self, stream: StreamId, number: usize) {
        self.send(stream, End::Server, Packet::Fin);
        self.network.close(stream, End::Machine);
        if self.clients[number].stream == Some(stream) {
            self.clients[number].stream = None;
            self.connect_envoy_later(number);
        }
    }

    pub(super) fn arrive_at_envoy(&mut self, stream: StreamId, number: usize, packet: Packet) {
        if self.clients[number].stream != Some(stream) {
            return;
        }
        match packet {
            Packet::Response(mut response, startup_grace) => {
                if self.injected_bug == Some(InjectedBug::EmptySetsAreLost) {
                    response.resources.retain(|resource| resource.version.endpoints != Some(0));
                }
                self.envoy_heard(stream, number, &response, startup_grace);
            }
            Packet::End { .. } => self.envoy_lost(stream, number),
            _ => {}
        }
    }

    fn envoy_heard(&mut self, stream: StreamId, number: usize, response: &Response, startup_grace: bool) {
        let refuses = self.plan.envoys[number].1 && self.now < self.plan.until && self.random.chance(0.1);
        let before = self.clients[number].envoy.endpoints.clone();
        let requests = self.clients[number].envoy.on_response(response, refuses);
        self.trace(|| {
            let names: Vec<&str> = response.resources.iter().map(|resource| &*resource.name).collect();
            format!(
                "envoy {number}: {} {} {names:?}, refuses: {refuses}",
                response.type_url.short_name(),
                response.version
            )
        });
        // The response of an earlier run of the server was based on other information.
        let server = self.network.get(stream).map(|connection| connection.server);
        let of_now = server.is_some_and(|server| self.replica_of(server).is_some());
        if response.type_url == TypeUrl::Endpoint {
            let after = &self.clients[number].envoy.endpoints;
            if self.trace.is_some() && before != *after {
                let after = after.clone();
                self.trace(|| format!("envoy {number}: {before:?} -> {after:?}"));
            }
            self.endpoints_changed();
            if startup_grace && of_now {
                self.invariants.pushed_in_startup_grace(&before, &self.clients[number].envoy.endpoints);
            }
        }
        for request in requests {
            self.send(stream, End::Server, Packet::Request(Box::new(request)));
        }
    }
}
