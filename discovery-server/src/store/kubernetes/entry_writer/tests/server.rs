//! Simulates an API server with one WorkloadEntry: resource versions, optimistic concurrency, and a
//! status subresource.

use serde_json::Value;

use crate::store::kubernetes::object;
use crate::store::kubernetes::request::{ApiError, Request};

type Response = Result<Value, ApiError>;

#[derive(Default)]
pub(super) struct Server {
    pub(super) object: Option<Value>,
    version: u64,
}

impl Server {
    fn stamp(&mut self, mut object: Value) -> Response {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.object = Some(object.clone());
        Ok(object)
    }

    /// Changes the object as another writer would.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut object = self.object.clone().expect("it is there");
        change(&mut object);
        let _ = self.stamp(object);
    }

    pub(super) fn answer(&mut self, request: &Request) -> Response {
        let current = match &self.object {
            None => match request {
                Request::Create(object) => {
                    let mut object = object.clone();
                    object["metadata"]["uid"] = format!("u{}", self.version).into();
                    object.as_object_mut().expect("an object").shift_remove("status");
                    return self.stamp(object);
                }
                _ => return Err(ApiError::NotFound),
            },
            Some(current) => current.clone(),
        };
        let version = match request {
            Request::Read => return Ok(current),
            Request::Create(_) => None,
            Request::Replace(object) | Request::ReplaceStatus(object) => object::version(object),
            Request::Delete { version, .. } => Some(version.as_str()),
        };
        if version != object::version(&current) {
            return Err(ApiError::Conflict);
        }
        let mut after = current.clone();
        match request {
            Request::Replace(object) => {
                after = object.clone();
                after["status"] = current["status"].clone();
            }
            Request::ReplaceStatus(object) => after["status"] = object["status"].clone(),
            _ => {
                self.object = None;
                return Err(ApiError::NotFound);
            }
        }
        self.stamp(after)
    }
}
