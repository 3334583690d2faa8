//! Simulates an API server with one WorkloadEntry: resource versions, optimistic concurrency, and a
//! status subresource.

use serde_json::Value;

use super::super::{ApiResult, Request};
use crate::discovery::store::kubernetes::decision::Step;
use crate::discovery::store::kubernetes::object;

#[derive(Default)]
pub(super) struct Server {
    pub(super) object: Option<Value>,
    version: u64,
}

impl Server {
    fn stamp(&mut self, mut object: Value) -> ApiResult {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.object = Some(object.clone());
        ApiResult::Object(Box::new(object))
    }

    /// Changes the object as another writer would.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut object = self.object.clone().expect("it is there");
        change(&mut object);
        self.stamp(object);
    }

    pub(super) fn answer(&mut self, request: &Request) -> ApiResult {
        let step = match request {
            Request::Read => {
                return self
                    .object
                    .clone()
                    .map_or(ApiResult::NotFound, |object| ApiResult::Object(Box::new(object)));
            }
            Request::Write(step) => step,
        };
        let there = self.object.clone();
        let is_current = |version: Option<&str>| there.as_ref().and_then(object::version) == version;
        match (step, &there) {
            (Step::Create(_), Some(_)) => ApiResult::Conflict,
            (Step::Create(object), None) => {
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("u{}", self.version).into();
                object.as_object_mut().expect("an object").shift_remove("status");
                self.stamp(object)
            }
            (_, None) => ApiResult::NotFound,
            (Step::Replace(object) | Step::ReplaceStatus(object), Some(_))
                if !is_current(object::version(object)) =>
            {
                ApiResult::Conflict
            }
            (Step::Replace(object), Some(there)) => {
                let mut object = object.clone();
                object["status"] = there["status"].clone();
                self.stamp(object)
            }
            (Step::ReplaceStatus(object), Some(there)) => {
                let mut after = there.clone();
                after["status"] = object["status"].clone();
                self.stamp(after)
            }
            (Step::Delete { version, .. }, Some(_)) if !is_current(Some(version)) => ApiResult::Conflict,
            (Step::Delete { .. }, Some(_)) => {
                self.object = None;
                ApiResult::NotFound
            }
            (Step::UpToDate | Step::OwnedByOther, Some(_)) => panic!("this step sends no request"),
        }
    }
}
