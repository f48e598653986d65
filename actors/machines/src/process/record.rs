//! The record of a process on disk, by which the next run of the host finds it again.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::identity::Identity;
use super::name::{ProcessName, ProcessTag};
use super::spec::{Lifetime, ProcessSpec, Reach};
use crate::goplugin::Handshake;
use crate::vocabulary::Timestamp;

/// How far the output of a process has been read and logged, as byte offsets into its files. A line counts when it was
/// logged, so no line is lost, and only lines of the last moments before a crash are logged twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Positions {
    /// Of standard output.
    pub output: u64,
    /// Of standard error.
    pub errors: u64,
}

/// The record of one process. Written ahead: the intent before the spawn (PRC-09), the identity before any caller gets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessRecord {
    /// Its name.
    pub name: ProcessName,
    /// The tag of its launch.
    pub tag: ProcessTag,
    /// Whether it ends with the host.
    pub lifetime: Lifetime,
    /// Which descendants end with it.
    pub reach: Reach,
    /// Identifies its spec without containing its secrets: the path of its program and the required digest, arguments, environment,
    /// the names of the inherited variables, lifetime, reach and working directory. Not included are the content of the file,
    /// the terms of the handshake, timeouts, graces, the handling of its output, and the variables that the host adds to the environment of
    /// a launch. So it is the same in each run of the host until the spec is changed.
    pub spec_digest: [u8; 32],
    /// The grace to end when the host stops.
    pub stop_grace: Duration,
    /// How many bytes of each output stream are kept after they were read.
    pub output_kept_bytes: u64,
    /// The time of its intent.
    pub started_at: Timestamp,
    /// Its identity. `None` before it was spawned.
    pub identity: Option<Identity>,
    /// Whether it was ready. If not, it is ended instead of adopted.
    pub is_ready: bool,
    /// Its handshake, if one was required.
    pub handshake: Option<Handshake>,
    /// The positions up to which its output has been read.
    pub positions: Positions,
}

impl ProcessRecord {
    /// The intent to launch a process.
    #[must_use]
    pub fn intent(name: ProcessName, tag: ProcessTag, spec: &ProcessSpec, now: Timestamp) -> Self {
        Self {
            name,
            tag,
            lifetime: spec.lifetime,
            reach: spec.reach,
            spec_digest: digest(spec, tag),
            stop_grace: spec.stop_grace,
            output_kept_bytes: spec.output_kept_bytes,
            started_at: now,
            identity: None,
            is_ready: false,
            handshake: None,
            positions: Positions::default(),
        }
    }

    /// Whether it was launched from this spec.
    #[must_use]
    pub fn is_of(&self, spec: &ProcessSpec) -> bool {
        self.spec_digest == digest(spec, self.tag)
    }
}

/// The digest of a spec, salted with the tag: equal secrets have different digests in different launches.
pub(super) fn digest(spec: &ProcessSpec, tag: ProcessTag) -> [u8; 32] {
    let ProcessSpec { executable, arguments, environment, inherit, lifetime, reach, directory, .. } = spec;
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(bytes);
    };
    part(&tag.bytes());
    part(executable.place().as_os_str().as_encoded_bytes());
    part(executable.sha256.as_ref().map_or(&[], |digest| &digest[..]));
    part(directory.as_os_str().as_encoded_bytes());
    part(lifetime.as_str().as_bytes());
    part(reach.as_str().as_bytes());
    for list in [arguments, inherit] {
        part(&u64::try_from(list.len()).unwrap_or(u64::MAX).to_le_bytes());
        list.iter().for_each(|text| part(text.as_bytes()));
    }
    for (name, value) in environment {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::super::spec::Executable;
    use super::*;
    use crate::goplugin::HandshakeTerms;

    #[test]
    fn a_record_knows_its_own_spec_from_another() {
        let spec = ProcessSpec::new(Executable::at("/bin/true"));
        let name = ProcessName::new("a").expect("a good name");
        let tag = ProcessTag::new([3; 16]);
        let record = ProcessRecord::intent(name, tag, &spec, Timestamp::default());
        assert!(record.is_of(&spec));
        let mut other = spec.clone();
        other.environment.insert("A".to_owned(), "1".to_owned());
        assert!(!record.is_of(&other));
        let mut other = spec;
        other.arguments = vec!["a".to_owned()];
        assert!(!record.is_of(&other));
    }

    #[test]
    fn what_is_started_makes_the_digest_and_the_terms_and_times_of_a_launch_do_not() {
        let spec = ProcessSpec::new(Executable::at("/bin/true"));
        let tag = ProcessTag::new([3; 16]);
        let is_same = |change: &dyn Fn(&mut ProcessSpec)| {
            let mut other = spec.clone();
            change(&mut other);
            digest(&other, tag) == digest(&spec, tag)
        };
        assert!(!is_same(&|other| other.executable = Executable::at("/bin/false")));
        assert!(!is_same(&|other| other.executable.sha256 = Some([0; 32])));
        assert!(!is_same(&|other| other.inherit.clear()));
        assert!(!is_same(&|other| other.lifetime = Lifetime::Surviving));
        assert!(!is_same(&|other| other.reach = Reach::Everything));
        assert!(!is_same(&|other| other.directory = "/tmp".into()));
        assert!(is_same(&|other| other.handshake = Some(HandshakeTerms::nomad(Some("/run".into())))));
        assert!(is_same(&|other| (other.start_timeout, other.stop_grace) = (Duration::ZERO, Duration::ZERO)));
        assert!(is_same(&|other| (other.output_kept_bytes, other.joins_output) = (0, true)));
        assert_ne!(digest(&spec, tag), digest(&spec, ProcessTag::new([4; 16])), "equal secrets do not show");
    }

    /// The next version of the host compares digests with those of this version: another digest of the same spec ends every driver once.
    #[test]
    fn p2_the_digest_of_a_spec_is_the_same_in_every_version() {
        let mut spec = ProcessSpec::new(Executable::at("/bin/true"));
        spec.arguments = vec!["a".to_owned()];
        spec.environment.insert("A".to_owned(), "1".to_owned());
        let found = digest(&spec, ProcessTag::new([3; 16]));
        assert_eq!(found[..8], [0xbd_u8, 0x82, 0xe6, 0xd4, 0x8b, 0x22, 0x2d, 0x12]);
    }
}
