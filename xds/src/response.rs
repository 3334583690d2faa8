//! `DiscoveryResponse` and `DeltaDiscoveryResponse`.

use bytes::{Bytes, BytesMut};

use crate::fields::{Malformed, fields, put_bytes, put_nonempty};
use crate::type_url::RESOURCE;
use crate::{ITEM_LIMIT, TEXT_LIMIT, Variant};

/// One resource of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub name: String,
    /// Version of the resource, in the incremental variant only.
    pub version: String,
    /// The encoded `google.protobuf.Any`.
    pub any: Bytes,
    /// False if the resource expires by itself, or has no name.
    pub is_storable: bool,
}

/// A response of a control plane, in either variant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub type_url: String,
    /// `version_info` or `system_version_info`.
    pub version: String,
    pub nonce: String,
    pub resources: Vec<Resource>,
    /// Names of `removed_resources`.
    pub removed: Vec<String>,
    /// True if the response contains more resources and names than [`ITEM_LIMIT`]; the rest was not
    /// read.
    pub is_cut: bool,
    /// Size of the message in bytes.
    pub size: usize,
}

/// A resource that the proxy writes in the incremental variant.
pub struct DeltaResource<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub any: &'a [u8],
}

impl Response {
    /// Reads the fields of a response that the proxy needs.
    ///
    /// # Errors
    /// If the message is no response, or its version, nonce or type URL is longer than 64 KiB.
    pub fn parse(message: &Bytes, variant: Variant) -> Result<Self, Malformed> {
        let mut response = Self { size: message.len(), ..Self::default() };
        for field in fields(message) {
            let field = field?;
            let is_item = field.number == 2 || field.number == 6 && variant == Variant::Delta;
            if is_item && response.resources.len() + response.removed.len() >= ITEM_LIMIT {
                response.is_cut = true;
                continue;
            }
            if !is_item && field.raw.len() > TEXT_LIMIT && [1, 4, 5].contains(&field.number) {
                return Err(Malformed("a version, nonce or type URL of more than 64 KiB"));
            }
            match (variant, field.number) {
                (_, 1) => response.version = field.text()?,
                (Variant::Sotw, 2) => response.resources.push(sotw_resource(field.bytes()?)?),
                (Variant::Delta, 2) => response.resources.push(delta_resource(&field.bytes()?)?),
                (_, 4) => response.type_url = field.text()?,
                (_, 5) => response.nonce = field.text()?,
                (Variant::Delta, 6) => response.removed.push(field.text()?),
                _ => {}
            }
        }
        Ok(response)
    }

    /// Returns the encoded field that gives a response another nonce if it follows the message: of
    /// two fields with the same number, the last one counts.
    pub fn nonce_suffix(nonce: &str) -> Bytes {
        let mut to = BytesMut::new();
        put_bytes(&mut to, 5, nonce.as_bytes());
        to.freeze()
    }

    /// Like [`Response::nonce_suffix`], for the version of a response in state of the world.
    pub fn version_suffix(version: &str) -> Bytes {
        let mut to = BytesMut::new();
        put_bytes(&mut to, 1, version.as_bytes());
        to.freeze()
    }

    /// Encodes a response in state of the world, without a nonce.
    pub fn sotw<'a>(type_url: &str, version: &str, resources: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
        let mut to = BytesMut::new();
        put_nonempty(&mut to, 1, version.as_bytes());
        for any in resources {
            put_bytes(&mut to, 2, any);
        }
        put_nonempty(&mut to, 4, type_url.as_bytes());
        to.freeze()
    }

    /// Encodes an incremental response, without a nonce.
    pub fn delta<'a>(
        type_url: &str,
        version: &str,
        resources: impl IntoIterator<Item = DeltaResource<'a>>,
    ) -> Bytes {
        let mut to = BytesMut::new();
        put_nonempty(&mut to, 1, version.as_bytes());
        for DeltaResource { name, version, any } in resources {
            let mut resource = BytesMut::with_capacity(any.len() + name.len() + version.len() + 16);
            put_nonempty(&mut resource, 1, version.as_bytes());
            put_bytes(&mut resource, 2, any);
            put_nonempty(&mut resource, 3, name.as_bytes());
            put_bytes(&mut to, 2, &resource);
        }
        put_nonempty(&mut to, 4, type_url.as_bytes());
        to.freeze()
    }
}

/// The name is field 1 of every resource type of Envoy, but that of the wrapper is field 3.
fn sotw_resource(any: Bytes) -> Result<Resource, Malformed> {
    let (mut type_url, mut value) = (String::new(), Bytes::new());
    for field in fields(&any) {
        let field = field?;
        match field.number {
            1 => type_url = field.text()?,
            2 => value = field.bytes()?,
            _ => {}
        }
    }
    if type_url == RESOURCE {
        let wrapped = delta_resource(&value)?;
        return Ok(Resource { any, version: String::new(), ..wrapped });
    }
    // An unknown type may use field 1 for something else, and its content is not checked here.
    let name = fields(&value).map_while(Result::ok).find(|field| field.number == 1);
    let name = name.and_then(|field| field.text().ok()).unwrap_or_default();
    Ok(Resource { is_storable: !name.is_empty(), name, version: String::new(), any })
}

fn delta_resource(message: &Bytes) -> Result<Resource, Malformed> {
    /// `ttl`: without a refresh the resource expires.
    const TTL: u64 = 6;
    let mut resource =
        Resource { name: String::new(), version: String::new(), any: Bytes::new(), is_storable: true };
    for field in fields(message) {
        let field = field?;
        match field.number {
            1 => resource.version = field.text()?,
            2 => resource.any = field.bytes()?,
            3 => resource.name = field.text()?,
            TTL => resource.is_storable = false,
            _ => {}
        }
    }
    resource.is_storable &= !resource.name.is_empty() && !resource.any.is_empty();
    Ok(resource)
}
