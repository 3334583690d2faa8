//! The life of entries: who may report on which, what a report, a lost stream and silence do, what is stored and what Envoys may see.
//!
//! Pure: time comes in with each step, effects go out. Not here: sockets, stores, how endpoints are encoded.

mod event;
mod node;
mod protocol;
mod record;
mod settings;
mod timestamp;
mod view;
mod workload;

pub use event::{Event, Gone, Refusal};
pub use node::{Identity, Node};
pub use protocol::{Code, Effect, Input, Report, StreamId};
pub use record::{Auto, Before, Condition, Reason, Record, Status};
pub use settings::{PeerAddressCheck, Settings, UnknownPolicy};
pub use timestamp::Timestamp;
pub use view::{AgentView, ConditionView, WorkloadView};
pub use workload::Workload;
