//! PURE. Connections: what was sent arrives in its order, later, or never. Each end learns by itself that the other one is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use discovery::entries::{Node, StreamId};
use discovery::message::{Request, Response};
use workload_health::Hello;
use workload_health::reporter::Report;

/// What crosses a connection.
#[derive(Debug, Clone)]
pub enum Packet {
    /// The first request.
    First(Box<Node>),
    /// A report.
    Report(Report),
    /// The answer to a hello.
    Answer { version: String, refusal: Option<String> },
    /// The sender says nothing any more.
    Fin,
    /// Our server's hello.
    Hello { hello: Hello, version: String, nonce: String },
    /// Our server's acknowledgement.
    Ack(String),
    /// What an Envoy asks.
    Request(Box<Request>),
    /// What an Envoy is told, and whether by a server that has lost its store.
    Response(Response, bool),
    /// The server ended the stream.
    End { refused: bool },
}

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Who opened it.
    Machine,
    /// Who took it.
    Server,
}

/// One direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pipe {
    /// Nothing arrives before what was sent before.
    last: Duration,
    /// Nothing arrives at all.
    pub dead: bool,
}

/// A connection with its one stream.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Who opened it: a machine, or behind those an Envoy.
    pub machine: usize,
    /// Of the machine.
    pub run: u64,
    /// Who took it.
    pub server: u64,
    /// What the machine's end knows.
    pub machine_open: bool,
    /// What the server's end knows.
    pub server_open: bool,
    /// The server has read the first request.
    pub read: bool,
    /// To the server.
    pub up: Pipe,
    /// To the machine.
    pub down: Pipe,
}

impl Connection {
    fn pipe(&mut self, to: End) -> &mut Pipe {
        match to {
            End::Server => &mut self.up,
            End::Machine => &mut self.down,
        }
    }

    /// When something that needs so long arrives at that end.
    pub fn arrival(&mut self, to: End, at: Duration) -> Duration {
        let pipe = self.pipe(to);
        pipe.last = pipe.last.max(at);
        pipe.last
    }

    /// Whether nothing arrives at that end.
    pub fn is_dead(&mut self, to: End) -> bool {
        self.pipe(to).dead
    }
}

/// All connections that one end still has.
#[derive(Debug, Default)]
pub struct Network {
    connections: BTreeMap<StreamId, Connection>,
    opened: StreamId,
}

impl Network {
    /// A new connection.
    pub fn open(&mut self, machine: usize, run: u64, server: u64) -> StreamId {
        self.opened += 1;
        let connection = Connection {
            machine,
            run,
            server,
            machine_open: true,
            server_open: true,
            read: false,
            up: Pipe::default(),
            down: Pipe::default(),
        };
        self.connections.insert(self.opened, connection);
        self.opened
    }

    /// One of them.
    pub fn get(&mut self, id: StreamId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// All that fit.
    pub fn of(&self, fits: impl Fn(&Connection) -> bool) -> Vec<StreamId> {
        self.connections.iter().filter(|(_, it)| fits(it)).map(|(id, _)| *id).collect()
    }

    /// That end is gone. The connection is forgotten once both are.
    pub fn leave(&mut self, id: StreamId, end: End) {
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
