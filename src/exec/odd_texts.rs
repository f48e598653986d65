//! Unusual texts that the driver sends on request, to test that its host neither trusts them nor repeats them unescaped.

use callboard_proto::drivers::{DriverTaskEvent, FingerprintResponse};
use clap::Args;
use futures_util::{Stream, stream};

/// The texts. They are sent unchanged, with all terminal control sequences.
#[derive(Debug, Clone, Default, Args)]
pub struct OddTexts {
    /// Use this text as the health description
    #[arg(long, value_name = "TEXT")]
    pub say_of_health: Option<String>,

    /// Send this as the error of each fingerprint
    #[arg(long, value_name = "TEXT")]
    pub say_of_fingerprints: Option<String>,

    /// Use this as the message of a call that fails because of --fail
    #[arg(long, value_name = "TEXT", requires = "fail")]
    pub say_of_failures: Option<String>,

    /// Begin the stream of task events with this many that name no task
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub odd_events: u32,

    /// Allocation that those events name
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub odd_events_of: String,
}

impl OddTexts {
    /// Puts the texts into a fingerprint.
    pub(super) fn spoil(&self, report: &mut FingerprintResponse) {
        if let Some(text) = &self.say_of_health {
            report.health_description.clone_from(text);
        }
        if let Some(text) = &self.say_of_fingerprints {
            report.err.clone_from(text);
        }
    }

    pub(super) fn events(&self) -> impl Stream<Item = DriverTaskEvent> + Send + use<> {
        let event = DriverTaskEvent { alloc_id: self.odd_events_of.clone(), ..Default::default() };
        stream::iter((0..self.odd_events).map(move |_| event.clone()))
    }
}
