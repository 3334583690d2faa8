//! A server's streams to Envoys: it builds and pushes snapshots.

use discovery::entries::{Input, StreamId};
use discovery::snapshot::{Snapshot, SnapshotSettings};
use discovery::stream::{Effect as AdsEffect, Input as Ads};

use super::{Server, World};
use crate::injected_bug::InjectedBug;
use crate::network::{End, Packet};

impl World {
    pub(super) fn publish(&mut self, replica: usize) {
        let wall = self.wall();
        let Some(server) = &mut self.servers[replica] else { return };
        if self.injected_bug == Some(InjectedBug::NeverPublish) && self.invariants.steps > 50 {
            server.debounce.pushed(self.now - server.started);
            return;
        }
        // The injected bug treats the store as if it had not been empty.
        let startup_grace =
            server.startup_grace.is_some() && self.injected_bug != Some(InjectedBug::NoStartupGrace);
        let settings = SnapshotSettings {
            last_endpoint: self.plan.last_endpoint,
            startup_grace,
            outbound_listeners: None,
            removal_limits: self.plan.settings.removal_limits(),
            now: wall,
        };
        let Server { entries, config, snapshot: previous, .. } = &*server;
        let snapshot = Snapshot::build(config, &mut entries.workloads(), settings, Some(previous));
        let preserved = snapshot.preserved().clone();
        server.snapshot = snapshot;
        server.debounce.pushed(self.now - server.started);
        let streams: Vec<StreamId> = server.streams.keys().copied().collect();
        self.step_server(replica, Input::Preserved(preserved));
        for stream in streams {
            self.step_stream(replica, stream, Ads::Poll);
        }
    }

    pub(super) fn step_stream(&mut self, replica: usize, stream: StreamId, input: Ads) {
        let Some(server) = &mut self.servers[replica] else { return };
        let Some(ads) = server.streams.get_mut(&stream) else { return };
        let effects = ads.step(self.now - server.started, input, &server.snapshot);
        self.invariants.server_stepped(effects.len());
        for effect in effects {
            match effect {
                AdsEffect::Open(node) => {
                    let peer = "10.9.9.9:40000".parse().expect("an address and a port");
                    self.step_server(replica, Input::Opened { stream, peer, identity: None, node });
                }
                AdsEffect::Send(response) => {
                    let startup_grace =
                        self.servers[replica].as_ref().is_some_and(|server| server.startup_grace.is_some());
                    self.send(stream, End::Machine, Packet::Response(response, startup_grace));
                }
                AdsEffect::Close(code, text) => {
                    self.invariants.violation(|| format!("stream {stream} is closed with {code:?}: {text}"));
                }
                AdsEffect::Report(_)
                | AdsEffect::ProbeAcked(_)
                | AdsEffect::ProbeNacked(_)
                | AdsEffect::Event(_) => {}
            }
        }
    }
}
