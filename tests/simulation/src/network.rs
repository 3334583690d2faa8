//! Connections: packets arrive in order, later, or never. Each end detects separately that the
//! other one is gone.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use discovery::entries::{Node, StreamId};
use discovery::message::{Request, Response};
use workload_health::Hello;
use workload_health::Report;

/// A message on a connection.
#[derive(Debug, Clone)]
pub enum Packet {
    /// The first request of an agent.
    First(Box<Node>),
    /// A health report of an agent.
    Report(Report),
    /// The ACK or NACK of a hello.
    Answer { version: String, refusal: Option<String> },
    /// The sender has closed its direction.
    Fin,
    /// The server's hello message.
    Hello { hello: Hello, version: String, nonce: String },
    /// An acknowledgement of a report, with its nonce.
    Ack(String),
    /// A request of an Envoy.
    Request(Box<Request>),
    /// A response to an Envoy, and whether the server has lost its store.
    Response(Response, bool),
    /// The server ended the stream.
    End { refused: bool },
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client: a machine, or an Envoy.
    Machine,
    Server,
}

/// One direction of a connection.
#[derive(Debug, Clone, Default)]
pub struct Direction {
    /// The packets that have not arrived yet. The one that arrives next is the first, also if a fault has
    /// delayed it to the arrival time of another one.
    in_flight: VecDeque<Packet>,
    /// The arrival time of the last packet, before which no later packet arrives.
    last: Duration,
    /// Whether packets are lost.
    pub dead: bool,
}

/// A connection with its one stream.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The number of the client: a machine, or after those an Envoy.
    pub machine: usize,
    /// The run of the client.
    pub run: u64,
    /// The run of the server.
    pub server: u64,
    /// Whether the connection is open for the client.
    pub machine_open: bool,
    /// Whether the connection is open for the server.
    pub server_open: bool,
    /// Whether the server has read the first request.
    pub read: bool,
    /// The direction to the server.
    pub up: Direction,
    /// The direction to the client.
    pub down: Direction,
}

impl Connection {
    fn direction(&mut self, to: End) -> &mut Direction {
        match to {
            End::Server => &mut self.up,
            End::Machine => &mut self.down,
        }
    }

    /// Sends a packet to that end. Returns its arrival time, after those sent before it.
    pub fn send(&mut self, to: End, packet: Packet, at: Duration) -> Duration {
        self.direction(to).in_flight.push_back(packet);
        self.arrival(to, at)
    }

    /// Takes the packet that arrives next at that end.
    pub fn receive(&mut self, end: End) -> Option<Packet> {
        self.direction(end).in_flight.pop_front()
    }

    /// Returns the arrival time of a packet that arrives at that end at this time or later.
    pub fn arrival(&mut self, to: End, at: Duration) -> Duration {
        let direction = self.direction(to);
        direction.last = direction.last.max(at);
        direction.last
    }

    /// Returns whether packets to that end are lost.
    pub fn is_dead(&mut self, to: End) -> bool {
        self.direction(to).dead
    }
}

/// All connections that at least one end considers open.
#[derive(Debug, Default)]
pub struct Network {
    connections: BTreeMap<StreamId, Connection>,
    opened: StreamId,
}

impl Network {
    pub fn open(&mut self, machine: usize, run: u64, server: u64) -> StreamId {
        self.opened += 1;
        let connection = Connection {
            machine,
            run,
            server,
            machine_open: true,
            server_open: true,
            read: false,
            up: Direction::default(),
            down: Direction::default(),
        };
        self.connections.insert(self.opened, connection);
        self.opened
    }

    pub fn get(&mut self, id: StreamId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// Returns the run of the server of a connection that the client considers open.
    pub fn server(&self, id: StreamId) -> Option<u64> {
        self.connections.get(&id).filter(|it| it.machine_open).map(|it| it.server)
    }

    /// Returns all connections for which `fits` is true.
    pub fn of(&self, fits: impl Fn(&Connection) -> bool) -> Vec<StreamId> {
        self.connections.iter().filter(|(_, it)| fits(it)).map(|(id, _)| *id).collect()
    }

    /// Closes one end; the connection is removed when both are closed.
    pub fn close(&mut self, id: StreamId, end: End) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match end {
            End::Machine => connection.machine_open = false,
            End::Server => connection.server_open = false,
        }
        if !connection.machine_open && !connection.server_open {
            self.connections.remove(&id);
        }
    }
}
