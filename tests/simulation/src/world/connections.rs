//! The connections: packets arrive unless a fault prevents it, and each end detects that the other
//! one is gone.

use std::time::Duration;

use discovery::entries::StreamId;

use super::{Event, Host, LossReason, World};
use crate::network::{End, Packet};

impl World {
    /// Sends a packet, which the network may delay or lose.
    pub(super) fn send(&mut self, stream: StreamId, to: End, packet: Packet) {
        let at = self.now + self.latency();
        let Some(connection) = self.network.get(stream) else { return };
        let at = connection.send(to, packet, at);
        self.at(at, Event::Arrive(stream, to));
    }

    pub(super) fn arrive(&mut self, stream: StreamId, end: End) {
        let Some(connection) = self.network.get(stream) else { return };
        let host = self.plan.host(connection.machine);
        if connection.is_dead(end) {
            return;
        }
        let mut later = self.hosts[host].partition.1;
        if end == End::Machine {
            later = later.max(self.hosts[host].frozen.1);
        }
        if self.now < later {
            let at = connection.arrival(end, later + Duration::from_millis(1));
            return self.at(at, Event::Arrive(stream, end));
        }
        let Some(packet) = connection.receive(end) else { return };
        match end {
            End::Machine => self.arrive_at_machine(stream, packet),
            End::Server => self.arrive_at_server(stream, packet),
        }
    }

    /// Informs an end that the other one is gone.
    pub(super) fn detect_loss(&mut self, stream: StreamId, end: End, reason: LossReason) {
        if let LossReason::Unanswered { host, since } = reason {
            let Host { partition, frozen, .. } = &self.hosts[host];
            let lasts = |(began, until): &(Duration, Duration)| *began == since && self.now < *until;
            if !lasts(partition) && !lasts(frozen) {
                return;
            }
        }
        let Some(connection) = self.network.get(stream) else { return };
        match end {
            End::Machine if connection.machine_open => self.machine_lost(stream, false),
            End::Server if connection.server_open => self.server_lost(stream),
            _ => {}
        }
    }

    /// Both ends detect the loss by their PINGs, if their host is not paused.
    pub(super) fn unanswered(&mut self, stream: StreamId, reason: LossReason, ends: &[End]) {
        for end in ends {
            let after = match end {
                End::Machine => self.random.millis(20_000, 30_000),
                End::Server => self.random.millis(10_000, 20_000),
            };
            self.at(self.now + after, Event::LossDetected(stream, *end, reason));
        }
    }
}
