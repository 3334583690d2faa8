//! `DiscoveryResponse` and `DeltaDiscoveryResponse`.

use bytes::{Bytes, BytesMut};

use crate::fields::{Malformed, bytes_size, fields, put_bytes, put_key, put_nonempty};
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
}

/// A resource to write.
pub struct ResourceRef<'a> {
    /// Name and version, in the incremental variant only.
    pub name: &'a str,
    pub version: &'a str,
    /// The encoded `google.protobuf.Any`.
    pub any: &'a [u8],
}

/// A response to write, without its resources.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseHead<'a> {
    pub type_url: &'a str,
    pub version: &'a str,
    pub nonce: &'a str,
}

impl Response {
    /// Reads the fields of a response that the proxy needs.
    ///
    /// # Errors
    /// If the message is no response, or its version, nonce or type URL is longer than 64 KiB.
    pub fn parse(message: &Bytes, variant: Variant) -> Result<Self, Malformed> {
        let mut response = Self::default();
        for field in fields(message) {
            let field = field?;
            let is_item = field.number == 2 || field.number == 6 && variant == Variant::Delta;
            if is_item && response.resources.len() + response.removed.len() >= ITEM_LIMIT {
                response.is_cut = true;
                continue;
            }
            if !is_item && field.raw().len() > TEXT_LIMIT && [1, 4, 5].contains(&field.number) {
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
}

impl ResponseHead<'_> {
    /// Encodes a response; see [`ResponseHead::encode_to`].
    pub fn encode<'a>(
        self,
        variant: Variant,
        resources: impl IntoIterator<Item = ResourceRef<'a>>,
        removed: impl IntoIterator<Item = &'a str>,
    ) -> Bytes {
        let mut to = BytesMut::new();
        self.encode_to(variant, resources, removed, &mut to);
        to.freeze()
    }

    /// Appends an encoded response. `removed` is written in the incremental variant only.
    pub fn encode_to<'a>(
        self,
        variant: Variant,
        resources: impl IntoIterator<Item = ResourceRef<'a>>,
        removed: impl IntoIterator<Item = &'a str>,
        to: &mut BytesMut,
    ) {
        put_nonempty(to, 1, self.version.as_bytes());
        for ResourceRef { name, version, any } in resources {
            match variant {
                Variant::Sotw => put_bytes(to, 2, any),
                Variant::Delta => {
                    let optional = |text: &str| if text.is_empty() { 0 } else { bytes_size(text.len()) };
                    put_key(to, 2, optional(version) + bytes_size(any.len()) + optional(name));
                    put_nonempty(to, 1, version.as_bytes());
                    put_bytes(to, 2, any);
                    put_nonempty(to, 3, name.as_bytes());
                }
            }
        }
        put_nonempty(to, 4, self.type_url.as_bytes());
        put_nonempty(to, 5, self.nonce.as_bytes());
        if variant == Variant::Delta {
            removed.into_iter().for_each(|name| put_bytes(to, 6, name.as_bytes()));
        }
    }
}

/// Encodes a `google.protobuf.Any`.
pub fn any(type_url: &str, value: &[u8]) -> Bytes {
    let mut to = BytesMut::with_capacity(bytes_size(type_url.len()) + bytes_size(value.len()));
    put_nonempty(&mut to, 1, type_url.as_bytes());
    put_nonempty(&mut to, 2, value);
    to.freeze()
}

/// Returns type URL and value of an encoded `google.protobuf.Any`.
pub fn parse_any(any: &Bytes) -> Result<(String, Bytes), Malformed> {
    let (mut type_url, mut value) = (String::new(), Bytes::new());
    for field in fields(any) {
        let field = field?;
        match field.number {
            1 => type_url = field.text()?,
            2 => value = field.bytes()?,
            _ => {}
        }
    }
    Ok((type_url, value))
}

/// The name is field 1 of every resource type of Envoy, but that of the wrapper is field 3.
fn sotw_resource(any: Bytes) -> Result<Resource, Malformed> {
    let (type_url, value) = parse_any(&any)?;
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
