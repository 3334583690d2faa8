//! `envoy.config.core.v3.Node`.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use crate::fields::{Malformed, fields, put_bytes, put_nonempty};
use crate::json::encode_struct;

/// The identity of a client. Envoy also lists hundreds of extensions, which are not read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Node ID, for a machine `sidecar~<ip>~<hostname>.<namespace>~<namespace>.svc.cluster.local`.
    pub id: String,
    /// Region, zone and sub-zone; an unknown one is empty.
    pub locality: Option<[String; 3]>,
    /// JSON object with Istio's metadata fields and those of app-health.
    pub metadata: Value,
    /// Name and version of the program.
    pub program: String,
    pub version: String,
}

impl Node {
    /// Reads a node. `decode_metadata` converts the encoded `google.protobuf.Struct`, whose size it can
    /// limit.
    pub fn parse<E: From<Malformed>>(
        message: &Bytes,
        decode_metadata: impl FnOnce(&Bytes) -> Result<Value, E>,
    ) -> Result<Self, E> {
        let (mut node, mut metadata) = (Self::default(), Bytes::new());
        for field in fields(message) {
            let field = field?;
            match field.number {
                1 => node.id = field.text()?,
                3 => metadata = field.bytes()?,
                4 => merge_locality(node.locality.get_or_insert_default(), &field.bytes()?)?,
                6 => node.program = field.text()?,
                7 => node.version = field.text()?,
                _ => {}
            }
        }
        node.metadata = decode_metadata(&metadata)?;
        Ok(node)
    }

    /// Encodes the node without the program, so that it can be merged into Envoy's node.
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

    /// Encodes the node.
    pub fn encode(&self) -> Bytes {
        let mut to = BytesMut::from(&*self.encode_identity());
        put_nonempty(&mut to, 6, self.program.as_bytes());
        put_nonempty(&mut to, 7, self.version.as_bytes());
        to.freeze()
    }
}

fn merge_locality(locality: &mut [String; 3], message: &Bytes) -> Result<(), Malformed> {
    for field in fields(message) {
        let field = field?;
        let [region, zone, sub_zone] = locality;
        match field.number {
            1 => *region = field.text()?,
            2 => *zone = field.text()?,
            3 => *sub_zone = field.text()?,
            _ => {}
        }
    }
    Ok(())
}
