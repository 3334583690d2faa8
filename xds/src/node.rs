//! `envoy.config.core.v3.Node`.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use crate::fields::{Malformed, fields, put_bytes, put_nonempty};
use crate::json::encode_struct;

/// The identity of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Node ID, for a machine `sidecar~<ip>~<hostname>.<namespace>~<namespace>.svc.cluster.local`.
    pub id: String,
    /// Region, zone and sub-zone; an unknown one is empty.
    pub locality: Option<[String; 3]>,
    /// JSON object with Istio's metadata fields and those of app-health.
    pub metadata: Value,
}

impl Node {
    /// Encodes the node without the name of a program, so that it can be merged into Envoy's node.
    pub fn encode_identity(&self) -> Bytes {
        let mut to = BytesMut::new();
        put_nonempty(&mut to, 1, self.id.as_bytes());
        put_nonempty(&mut to, 3, &encode_struct(&self.metadata));
        if let Some(parts) = &self.locality {
            let mut locality = BytesMut::new();
            for (number, part) in (1..).zip(parts) {
                put_nonempty(&mut locality, number, part.as_bytes());
            }
            put_bytes(&mut to, 4, &locality);
        }
        to.freeze()
    }

    /// Encodes the node of a program with this name and version.
    pub fn encode(&self, program: &str, version: &str) -> Bytes {
        let mut to = BytesMut::from(&*self.encode_identity());
        put_nonempty(&mut to, 6, program.as_bytes());
        put_nonempty(&mut to, 7, version.as_bytes());
        to.freeze()
    }
}

/// A received node. Envoy also lists hundreds of extensions, which are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceivedNode {
    pub id: String,
    /// The encoded `google.protobuf.Struct`.
    pub metadata: Bytes,
    /// Region, zone and sub-zone; an unknown one is empty.
    pub locality: [String; 3],
    /// Name and version of the program.
    pub program: String,
    pub version: String,
}

impl ReceivedNode {
    pub fn parse(message: &Bytes) -> Result<Self, Malformed> {
        let mut node = Self::default();
        for field in fields(message) {
            let field = field?;
            match field.number {
                1 => node.id = field.text()?,
                3 => node.metadata = field.bytes()?,
                4 => node.merge_locality(&field.bytes()?)?,
                6 => node.program = field.text()?,
                7 => node.version = field.text()?,
                _ => {}
            }
        }
        Ok(node)
    }

    fn merge_locality(&mut self, message: &Bytes) -> Result<(), Malformed> {
        for field in fields(message) {
            let field = field?;
            let [region, zone, sub_zone] = &mut self.locality;
            match field.number {
                1 => *region = field.text()?,
                2 => *zone = field.text()?,
                3 => *sub_zone = field.text()?,
                _ => {}
            }
        }
        Ok(())
    }
}
