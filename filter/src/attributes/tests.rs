use std::collections::BTreeMap;
use std::time::Duration;

use super::{Attribute, Attributes, Unreadable};

/// A table of attributes instead of Envoy.
#[derive(Clone, Default)]
pub(crate) struct Table {
    pub(crate) values: BTreeMap<Attribute, Vec<u8>>,
    pub(crate) unreadable: Option<Attribute>,
    pub(crate) elapsed: Option<Duration>,
}

impl Table {
    pub(crate) fn new<const N: usize>(values: [(Attribute, &str); N]) -> Self {
        let values = values.into_iter().map(|(attribute, value)| (attribute, value.into())).collect();
        Self { values, unreadable: None, elapsed: Some(Duration::ZERO) }
    }

    /// Returns a table with a status and other values of a route's response.
    pub(crate) fn response<const N: usize>(status: &str, more: [(Attribute, &str); N]) -> Self {
        let mut table = Self::new(more);
        table.values.insert(Attribute::ResponseHeader(":status"), status.into());
        table
    }
}

impl Attributes for Table {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        let is_unreadable = self.unreadable == Some(attribute);
        if is_unreadable { Err(Unreadable) } else { Ok(self.values.get(&attribute).cloned()) }
    }

    fn elapsed(&self) -> Option<Duration> {
        self.elapsed
    }
}
