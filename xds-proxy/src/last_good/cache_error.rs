//! Why a stored configuration is ignored.

use xds::Malformed;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    #[error("damaged: {0}")]
    Damaged(&'static str),
    #[error("damaged: {0}")]
    Malformed(#[from] Malformed),
    #[error("it belongs to another node: {0:?}")]
    Foreign(String),
}
