//! The server's streams to Envoys: it builds and pushes snapshots.

use discovery::entries::{Input, StreamId};
use discovery::snapshot::{Snapshot, SnapshotSettings};
use discovery::stream::{Effect as AdsEffect, Input as Ads};

use super::{Server, World};
use crate::network::{End, Packet};
use crate::sabotage::Sabotage;

impl World {
    pub(super) fn publish(&mut self) {
        let Some(server) = &mut self.server else { return };
        if self.sabotage == Some(Sabotage::NeverPublish) && self.watch.steps > 50 {
            server.debounce.pushed(self.now - server.started);
            return;
        }
        // The injected bug treats the store as if it had not been empty.
        let settling = server.settling.is_some() && self.sabotage != Some(Sabotage::NeverSettle);
        let settings = SnapshotSettings { last_endpoint: self.plan.last_endpoint, startup_grace: settling };
        let Server { entries, config, snapshot: previous, .. } = &*server;
        let snapshot = Snapshot::build(config, &mut entries.workloads(), settings, Some(previous));
        let kept = snapshot.kept().clone();
        server.snapshot = snapshot;
        server.debounce.pushed(self.now - server.started);
        let streams: Vec<StreamId> = server.streams.keys().copied().collect();
        self.step_server(Input::LastEndpointsKept(kept));
        for stream in streams {
            self.step_stream(stream, Ads::Poll);
        }
    }

    pub(super) fn step_stream(&mut self, stream: StreamId, input: Ads) {
        let Some(server) = &mut self.server else { return };
        let Some(ads) = server.streams.get_mut(&stream) else { return };
        let effects = ads.step(self.now - server.started, input, &server.snapshot);
        self.watch.server_stepped(effects.len());
        for effect in effects {
            match effect {
                AdsEffect::Open(node) => {
                    let peer = "10.9.9.9:40000".parse().expect("an address and a port");
                    self.step_server(Input::Opened { stream, peer, identity: None, node });
                }
                AdsEffect::Send(response) => {
                    let settling = self.server.as_ref().is_some_and(|server| server.settling.is_some());
                    self.send(stream, End::Machine, Packet::Response(response, settling));
                }
                AdsEffect::Close(code, text) => {
                    self.watch.wrong(|| format!("stream {stream} is closed with {code:?}: {text}"));
                }
                AdsEffect::Report(_)
                | AdsEffect::ProbeAcked(_)
                | AdsEffect::ProbeNacked(_)
                | AdsEffect::Event(_) => {}
            }
        }
    }
}
