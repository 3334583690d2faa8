//! `DiscoveryRequest` and `DeltaDiscoveryRequest`.

use bytes::{Bytes, BytesMut};

use crate::fields::{Field, Malformed, fields, put_bytes, put_integer, put_nonempty};
use crate::{ITEM_LIMIT, Variant};

/// A request of a client, in either variant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub type_url: String,
    /// `version_info`, in state of the world only.
    pub version: String,
    pub nonce: String,
    pub node: Option<Bytes>,
    /// The encoded `google.rpc.Status` of a NACK.
    pub error: Option<Bytes>,
    /// Names of `resource_names` or `resource_names_subscribe`.
    pub subscribe: Vec<String>,
    /// Names of `resource_names_unsubscribe`.
    pub unsubscribe: Vec<String>,
    /// `initial_resource_versions`: names with versions.
    pub initial_versions: Vec<(String, String)>,
    /// The encoded fields of the subscription, and those that are not known here. Only
    /// [`Self::parse`] reads them.
    pub subscription: Bytes,
    /// True if the request contains more names than the limit; the rest was not read.
    pub is_cut: bool,
}

impl Request {
    /// Reads a request with at most [`ITEM_LIMIT`] names, which can be encoded again.
    pub fn parse(message: &Bytes, variant: Variant) -> Result<Self, Malformed> {
        let mut subscription = BytesMut::new();
        let mut request = Self::read(message, variant, ITEM_LIMIT, Some(&mut subscription))?;
        request.subscription = subscription.freeze();
        Ok(request)
    }

    /// Reads a request with at most `limit` names, without a copy of their encoded fields.
    pub fn parse_limited(message: &Bytes, variant: Variant, limit: usize) -> Result<Self, Malformed> {
        Self::read(message, variant, limit, None)
    }

    fn read(
        message: &Bytes,
        variant: Variant,
        limit: usize,
        mut subscription: Option<&mut BytesMut>,
    ) -> Result<Self, Malformed> {
        let mut request = Self::default();
        for field in fields(message) {
            let field = field?;
            let is_subscription = match variant {
                Variant::Sotw => request.sotw_field(&field)?,
                Variant::Delta => request.delta_field(&field)?,
            };
            if let Some(to) = subscription.as_mut().filter(|_| is_subscription) {
                to.extend_from_slice(field.raw());
            }
            let names = request.subscribe.len() + request.unsubscribe.len();
            request.is_cut = names + request.initial_versions.len() > limit;
            if request.is_cut {
                break;
            }
        }
        Ok(request)
    }

    /// Returns true if the field belongs to the subscription.
    fn sotw_field(&mut self, field: &Field<'_>) -> Result<bool, Malformed> {
        match field.number {
            1 => self.version = field.text()?,
            2 => self.node = Some(field.bytes()?),
            3 => self.subscribe.push(field.text()?),
            4 => self.type_url = field.text()?,
            5 => self.nonce = field.text()?,
            6 => self.error = Some(field.bytes()?),
            _ => {}
        }
        Ok(!matches!(field.number, 1 | 2 | 4..=6))
    }

    /// Returns true if the field belongs to the subscription.
    fn delta_field(&mut self, field: &Field<'_>) -> Result<bool, Malformed> {
        match field.number {
            1 => self.node = Some(field.bytes()?),
            2 => self.type_url = field.text()?,
            3 => self.subscribe.push(field.text()?),
            4 => self.unsubscribe.push(field.text()?),
            5 => self.initial_versions.push(entry(&field.bytes()?)?),
            6 => self.nonce = field.text()?,
            7 => self.error = Some(field.bytes()?),
            _ => {}
        }
        Ok(!matches!(field.number, 1 | 2 | 5..=7))
    }

    /// Encodes the request. `initial_versions` and the subscription are written as they are stored;
    /// `subscribe` and `unsubscribe` are not, because the subscription contains them.
    pub fn encode(&self, variant: Variant) -> Bytes {
        let mut to = BytesMut::with_capacity(self.subscription.len() + 512);
        match variant {
            Variant::Sotw => {
                put_nonempty(&mut to, 1, self.version.as_bytes());
                put_optional(&mut to, 2, self.node.as_ref());
                to.extend_from_slice(&self.subscription);
                put_nonempty(&mut to, 4, self.type_url.as_bytes());
                put_nonempty(&mut to, 5, self.nonce.as_bytes());
                put_optional(&mut to, 6, self.error.as_ref());
            }
            Variant::Delta => {
                put_optional(&mut to, 1, self.node.as_ref());
                put_nonempty(&mut to, 2, self.type_url.as_bytes());
                to.extend_from_slice(&self.subscription);
                for (name, version) in &self.initial_versions {
                    let mut entry = BytesMut::new();
                    put_nonempty(&mut entry, 1, name.as_bytes());
                    put_nonempty(&mut entry, 2, version.as_bytes());
                    put_bytes(&mut to, 5, &entry);
                }
                put_nonempty(&mut to, 6, self.nonce.as_bytes());
                put_optional(&mut to, 7, self.error.as_ref());
            }
        }
        to.freeze()
    }

    /// Encodes names as the subscription of a first request in the incremental variant.
    pub fn subscription_to<'a>(names: impl IntoIterator<Item = &'a str>) -> Bytes {
        let mut to = BytesMut::new();
        for name in names {
            put_bytes(&mut to, 3, name.as_bytes());
        }
        to.freeze()
    }

    /// Returns the message of the error of a NACK; an error without one has an empty one.
    ///
    /// # Errors
    /// Returns an error if the error is not a `google.rpc.Status`.
    pub fn error_text(&self) -> Result<Option<String>, Malformed> {
        let Some(status) = &self.error else { return Ok(None) };
        let mut text = String::new();
        for field in fields(status) {
            let field = field?;
            if field.number == 2 {
                text = field.text()?;
            }
        }
        Ok(Some(text))
    }

    /// Encodes a `google.rpc.Status`.
    pub fn status(code: u64, message: &str) -> Bytes {
        let mut to = BytesMut::new();
        put_integer(&mut to, 1, code);
        put_nonempty(&mut to, 2, message.as_bytes());
        to.freeze()
    }
}

fn put_optional(to: &mut BytesMut, number: u64, content: Option<&Bytes>) {
    if let Some(content) = content {
        put_bytes(to, number, content);
    }
}

fn entry(entry: &Bytes) -> Result<(String, String), Malformed> {
    let (mut name, mut version) = (String::new(), String::new());
    for field in fields(entry) {
        let field = field?;
        match field.number {
            1 => name = field.text()?,
            2 => version = field.text()?,
            _ => {}
        }
    }
    Ok((name, version))
}
