//! The observations of the examiner.

use serde::{Deserialize, Serialize};

use super::request::{Map, Request};
use crate::csi::Call;

/// An observation, with its time in milliseconds since the beginning of the exam.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The plugin has started, or started again. Calls in flight were lost with the former process.
    Starts {
        /// The time.
        at: u64,
    },
    /// A call has arrived.
    Begins {
        /// The time.
        at: u64,
        /// Its number, unique in the exam.
        number: u64,
        /// The call.
        #[serde(with = "by_name")]
        call: Call,
        /// Its request.
        request: Box<Request>,
    },
    /// A call has been answered.
    Ends {
        /// The time.
        at: u64,
        /// The number of the call.
        number: u64,
        /// The answer.
        outcome: Outcome,
    },
    /// The caller has left before the answer: its deadline has passed, it was cancelled, or its connection is lost.
    Leaves {
        /// The time.
        at: u64,
        /// The number of the call.
        number: u64,
    },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// With an answer.
    Answered(Box<Answer>),
    /// With the gRPC code of this number.
    Failed(i32),
}

/// The parts of an answer that later calls have to respect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "each has the name that the specification describes")]
pub struct Answer {
    pub volume_id: String,
    pub volume_context: Map,
    pub accessible_topology: Vec<Map>,
    pub publish_context: Map,
    pub node_expansion_required: bool,
    pub snapshot_id: String,
    pub size_bytes: i64,
    pub group_snapshot_id: String,
    pub snapshot_ids: Vec<String>,
    /// Of a Probe, a snapshot or a group; `None` if the answer does not contain it.
    pub ready: Option<bool>,
    pub node_id: String,
    pub next_token: String,
}

mod by_name {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::csi::Call;

    pub(super) fn serialize<S: Serializer>(call: &Call, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(call.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Call, D::Error> {
        let name = String::deserialize(deserializer)?;
        Call::named(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_after_it_was_stored() {
        let request = Box::new(Request { volume_id: "v".to_owned(), ..Request::default() });
        let begins = Event::Begins { at: 7, number: 3, call: Call::NodeStageVolume, request };
        let answer = Answer { ready: Some(false), ..Answer::default() };
        let ends = Event::Ends { at: 9, number: 3, outcome: Outcome::Answered(Box::new(answer)) };
        for event in [Event::Starts { at: 0 }, begins, ends, Event::Leaves { at: 8, number: 3 }] {
            let stored = serde_json::to_string(&event).expect("plain data");
            assert_eq!(serde_json::from_str::<Event>(&stored).expect("plain data"), event, "{stored}");
        }
    }
}
