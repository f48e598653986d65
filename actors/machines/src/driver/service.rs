//! The service of a driver beside the session of all go-plugin plugins: `Init`, `Capabilities`, and its fingerprints.

use std::sync::Arc;

use super::{AttributeValue, Attributes, DriverCapabilities, Fingerprint, FsIsolation, MountSupport};
use crate::session::{Said, Service, ServiceStep};
use crate::vocabulary::DriverName;

/// A step that only drivers have.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverStep {
    /// Initialize the driver (D109).
    Initialise,
    /// Ask for its capabilities (D103).
    Capabilities,
}

impl ServiceStep for DriverStep {
    fn as_str(self) -> &'static str {
        match self {
            Self::Initialise => "Init",
            Self::Capabilities => "Capabilities",
        }
    }
}

/// The results of a driver's own steps.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum DriverTold {
    /// Its capabilities.
    Capable(DriverCapabilities),
    /// Its fingerprint (D105).
    Fingerprinted(Fingerprint),
}

/// The known state of a driver's service.
#[derive(Debug, Clone, Hash)]
pub(super) struct DriverService {
    pub(super) name: DriverName,
    /// The attributes that it reported last; empty before that.
    pub(super) attributes: Arc<Attributes>,
    /// Its capabilities; `None` before it has reported them.
    pub(super) capabilities: Option<Arc<DriverCapabilities>>,
    /// Its mount support, as reported over its present connection.
    told_mounts: MountSupport,
}

impl DriverService {
    pub(super) fn new(name: DriverName) -> Self {
        Self { name, attributes: Arc::default(), capabilities: None, told_mounts: MountSupport::Any }
    }

    /// Resolves the reported mount support. A task that shares the file system of the host has no place of its own for mounts: the
    /// mount point would be a directory of the host, so the task would write to the wrong disk.
    fn resolve_mounts(&mut self) {
        let Some(capabilities) = &mut self.capabilities else { return };
        let key = format!("driver.{}.mounts", self.name);
        let says_so = self.attributes.get(&key).is_some_and(|told| told.value == AttributeValue::Bool(true));
        let mounts = match self.told_mounts {
            MountSupport::Any if capabilities.fs_isolation == FsIsolation::None && !says_so => {
                MountSupport::None
            }
            told => told,
        };
        if capabilities.mounts != mounts {
            Arc::make_mut(capabilities).mounts = mounts;
        }
    }
}

impl Service for DriverService {
    type Step = DriverStep;
    type Told = DriverTold;

    const NOUN: &'static str = "driver";
    const STEPS: &'static [DriverStep] = &[DriverStep::Initialise, DriverStep::Capabilities];

    /// A driver that needs no preparation need not have the call (D109).
    fn may_lack(step: DriverStep) -> bool {
        match step {
            DriverStep::Initialise => true,
            DriverStep::Capabilities => false,
        }
    }

    fn take(&mut self, step: DriverStep, told: Option<&DriverTold>) -> bool {
        match (step, told) {
            (DriverStep::Initialise, None) => true,
            (DriverStep::Capabilities, Some(DriverTold::Capable(capabilities))) => {
                self.told_mounts = capabilities.mounts;
                self.capabilities = Some(Arc::new(capabilities.clone()));
                self.resolve_mounts();
                true
            }
            (DriverStep::Initialise | DriverStep::Capabilities, _) => false,
        }
    }

    fn take_from_stream(&mut self, told: &DriverTold) -> Option<Said> {
        let DriverTold::Fingerprinted(Fingerprint { health, description, attributes }) = told else {
            return None;
        };
        if *self.attributes != *attributes {
            self.attributes = Arc::new(attributes.clone());
        }
        self.resolve_mounts();
        Some(Said { health: *health, description: description.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::*;

    #[test]
    fn a_driver_that_shares_the_file_system_of_the_host_mounts_only_if_it_says_so_t077() {
        let mut service = DriverService::new(DriverName::new("exec").unwrap());
        let mut resolved = |fs_isolation, told, says: Option<bool>| {
            let value = |says| Attribute { value: AttributeValue::Bool(says), unit: String::new() };
            let said = says.map(|says| ("driver.exec.mounts".to_owned(), value(says)));
            service.attributes = Arc::new(said.into_iter().collect());
            service.capabilities = Some(Arc::new(DriverCapabilities {
                send_signals: true,
                exec: true,
                fs_isolation,
                network_modes: Vec::new(),
                must_create_network: false,
                mounts: told,
                disable_log_collection: false,
                dynamic_workload_users: false,
            }));
            service.told_mounts = told;
            service.resolve_mounts();
            service.capabilities.as_ref().map(|capabilities| capabilities.mounts)
        };
        use {FsIsolation as Fs, MountSupport as Mounts};
        assert_eq!(resolved(Fs::None, Mounts::Any, None), Some(Mounts::None), "Nomad's raw_exec");
        assert_eq!(resolved(Fs::None, Mounts::Any, Some(false)), Some(Mounts::None));
        assert_eq!(resolved(Fs::None, Mounts::Any, Some(true)), Some(Mounts::Any));
        assert_eq!(resolved(Fs::None, Mounts::None, Some(true)), Some(Mounts::None), "it says both");
        for fs_isolation in [Fs::Chroot, Fs::Image, Fs::Unveil] {
            assert_eq!(resolved(fs_isolation, Mounts::Any, None), Some(Mounts::Any), "{fs_isolation:?}");
            assert_eq!(resolved(fs_isolation, Mounts::None, None), Some(Mounts::None), "{fs_isolation:?}");
        }
    }
}
