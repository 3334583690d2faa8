//! The API server of Kubernetes, as the store that several servers share: objects with resource versions,
//! optimistic concurrency, a status subresource, and Leases.

use std::collections::{BTreeMap, BTreeSet};

use discovery::objects::Key;
use discovery_server::store::kubernetes::leases::Lease;
use discovery_server::store::kubernetes::object;
use discovery_server::store::kubernetes::request::{ApiError, Request};
use serde_json::Value;

#[derive(Debug, Default)]
pub struct ApiServer {
    pub objects: BTreeMap<Key, Value>,
    /// Objects that existed once.
    pub deleted: BTreeSet<Key>,
    /// Resource version and whether the Lease was released, by instance.
    leases: BTreeMap<String, (u64, bool)>,
    version: u64,
}

/// A watch event: the object, or its last state, and whether it exists.
pub type WatchEvent = (Value, bool);

impl ApiServer {
    /// Processes a request. Returns the response and the watch event that it causes.
    pub fn answer(&mut self, key: &Key, request: &Request) -> (Result<Value, ApiError>, Option<WatchEvent>) {
        let current = self.objects.get(key).cloned();
        match (self.check(current.as_ref(), request), current) {
            (Err(error), _) => (Err(error), None),
            (Ok(None), Some(current)) if *request == Request::Read => (Ok(current), None),
            (Ok(Some(object)), _) => {
                let object = self.put(key, object);
                (Ok(object.clone()), Some((object, true)))
            }
            // As the real client, which reads the result of a deletion as this.
            (Ok(None), _) => (Err(ApiError::NotFound), self.delete(key)),
        }
    }

    /// Returns what the request writes; `None`: nothing.
    fn check(&mut self, current: Option<&Value>, request: &Request) -> Result<Option<Value>, ApiError> {
        let Some(current) = current else {
            let Request::Create(object) = request else { return Err(ApiError::NotFound) };
            let mut object = object.clone();
            object["metadata"]["uid"] = format!("u{}", self.version).into();
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
            return Ok(Some(object));
        };
        let version = match request {
            Request::Read => return Ok(None),
            Request::Create(_) => None,
            Request::Replace(object) | Request::ReplaceStatus(object) => object::version(object),
            Request::Delete { version, .. } => Some(version.as_str()),
        };
        if version != object::version(current) {
            return Err(ApiError::Conflict);
        }
        Ok(Some(match request {
            Request::Replace(object) => with_status_of(object, current),
            Request::ReplaceStatus(object) => with_status_of(current, object),
            _ => return Ok(None),
        }))
    }

    /// Stores an object and returns it with its new version.
    pub fn put(&mut self, key: &Key, mut object: Value) -> Value {
        object["metadata"]["resourceVersion"] = self.next_version().to_string().into();
        self.objects.insert(key.clone(), object.clone());
        object
    }

    /// Deletes an object and returns the event.
    pub fn delete(&mut self, key: &Key) -> Option<WatchEvent> {
        let mut object = self.objects.remove(key)?;
        self.deleted.insert(key.clone());
        object["metadata"]["resourceVersion"] = self.next_version().to_string().into();
        Some((object, false))
    }

    pub fn renew_lease(&mut self, instance: &str, is_released: bool) {
        let version = self.next_version();
        self.leases.insert(instance.to_owned(), (version, is_released));
    }

    pub fn leases(&self) -> Vec<Lease> {
        let lease = |(instance, (version, released)): (&String, &(u64, bool))| Lease {
            instance: instance.clone(),
            version: version.to_string(),
            released: *released,
        };
        self.leases.iter().map(lease).collect()
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}

fn with_status_of(object: &Value, other: &Value) -> Value {
    let mut object = object.clone();
    object["status"] = other["status"].clone();
    object
}
