//! Defines a request: its call, the checks before it is sent, and the checks of its answer.

use super::call::Call;
use crate::rpc::Fault;
use crate::vocabulary::CsiFingerprint;

/// A request of CSI, with the answer that it gets.
pub trait Request {
    /// Its answer.
    type Answer;

    /// Its call.
    const CALL: Call;

    /// Checks sizes and formats, which depend only on the request (C004 to C009, C023, C050 to C058).
    ///
    /// # Errors
    /// The first rule that it breaks.
    fn check(&self) -> Result<(), Fault>;

    /// Checks fields that are allowed only for plugins with a capability. The capability of the call itself is checked by
    /// [`Call::check_offered`].
    ///
    /// # Errors
    /// The first rule that it breaks.
    fn check_capabilities(&self, _plugin: &CsiFingerprint) -> Result<(), Fault> {
        Ok(())
    }

    /// Checks the answer: sizes and formats (C011), and whether it answers this request.
    ///
    /// # Errors
    /// The first rule that it breaks.
    fn check_answer(&self, _answer: &Self::Answer) -> Result<(), Fault> {
        Ok(())
    }

    /// The values of its secrets and mount flags, for [`redacted`](super::redacted) (C025).
    fn withheld(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Checks everything that can be known before the call.
    ///
    /// # Errors
    /// The first rule that it breaks. Nothing has been sent.
    fn validate(&self, plugin: &CsiFingerprint) -> Result<(), RequestError> {
        let offered = Self::CALL.check_offered(plugin);
        let checked = offered.and_then(|()| self.check()).and_then(|()| self.check_capabilities(plugin));
        checked.map_err(|fault| RequestError::new(Self::CALL, fault))
    }
}

/// A request that was not sent, since it breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} was not sent: {fault}; {}", .fault.problem.remedy())]
pub struct RequestError {
    /// The call.
    pub call: Call,
    /// The rule and the field.
    pub fault: Fault,
}

impl RequestError {
    /// A request that breaks a rule.
    #[must_use]
    pub const fn new(call: Call, fault: Fault) -> Self {
        Self { call, fault }
    }

    /// Whether the plugin lacks a capability that the request needs. Another plugin may take it.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        self.fault.is_unsupported()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{fingerprint, mount};
    use super::super::{CreateVolumeRequest, NodeStageVolumeRequest};
    use super::*;

    #[test]
    fn a_refused_request_says_what_was_tried_what_is_wrong_and_what_to_do_c004_c120() {
        let named = |name: String| CreateVolumeRequest {
            name,
            volume_capabilities: vec![mount()],
            ..CreateVolumeRequest::default()
        };
        let error = named("n".repeat(129)).validate(&fingerprint()).expect_err("too long");
        assert_eq!(
            error.to_string(),
            "CreateVolume was not sent: name has 129 bytes, at most 128 are allowed; shorten it"
        );
        assert!(!error.is_unsupported());
        assert_eq!(named("n".repeat(128)).validate(&fingerprint()), Ok(()));
        let stage = NodeStageVolumeRequest {
            volume_id: "v".to_owned(),
            publish_context: Default::default(),
            staging_target_path: "/stage".to_owned(),
            volume_capability: mount(),
            secrets: Default::default(),
            volume_context: Default::default(),
        };
        let mut bare = fingerprint();
        bare.node = Some(Vec::new());
        let error = stage.validate(&bare).expect_err("it does not stage");
        assert!(error.is_unsupported());
        assert_eq!(
            error.to_string(),
            "NodeStageVolume was not sent: NodeStageVolume needs the capability STAGE_UNSTAGE_VOLUME, which the plugin does not \
             report; leave it out, or use a plugin that has the capability"
        );
    }
}
