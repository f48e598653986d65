//! The rules for orchestrators, and how far a plugin can observe each.
//!
//! The ids are those of the facts about CSI 1.12.0. `docs/examiner.md` has the same table.

use std::fmt;

use crate::rpc::Code;

/// How strictly the specification demands a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// MUST, or a direct consequence of one.
    Must,
    /// SHOULD.
    Should,
    /// The orchestrator may do so.
    May,
}

impl Strength {
    /// Its word in the specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

/// How far a plugin can observe a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The examiner judges it.
    Judged,
    /// The examiner judges a part of it; the text describes that part.
    InPart(&'static str),
    /// Calls cannot show that it is broken; the text gives the reason.
    NotSeen(&'static str),
}

macro_rules! rules {
    ($($name:ident $id:literal $strength:ident $coverage:expr, $text:literal;)*) => {
        /// A rule for orchestrators.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $text] $name,)*
        }

        impl Rule {
            /// All rules, in the order of their ids.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its id.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// Its requirement.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// How strictly it is demanded.
            #[must_use]
            pub const fn strength(self) -> Strength {
                match self {
                    $(Self::$name => Strength::$strength,)*
                }
            }

            /// How far the examiner can observe it.
            #[must_use]
            pub const fn coverage(self) -> Coverage {
                match self {
                    $(Self::$name => $coverage,)*
                }
            }
        }
    };
}

use Coverage::{InPart, Judged, NotSeen};

/// For events inside the orchestrator.
const INSIDE: Coverage = NotSeen("it happens inside the orchestrator");
/// For choices that the orchestrator has.
const CHOICE: Coverage = NotSeen("it is a choice of the orchestrator; no call breaks it");
/// For requirements on the plugin.
const PLUGIN: Coverage = NotSeen("it binds the plugin");
/// For the use of an answer by the orchestrator.
const ANSWER: Coverage = NotSeen("it is about what is done with an answer, not about a call");
/// For the service of snapshot metadata.
const METADATA: Coverage = NotSeen("the examiner has no snapshot metadata service");
/// For requirements on the process of the plugin.
const PROCESS: Coverage = NotSeen("it is about the process of the plugin, not about calls");

rules! {
    C001 "C001" Must Judged, "at most one call in flight for each volume";
    C002 "C002" Must Judged, "at most one call in flight for each snapshot and each group of snapshots";
    C003 "C003" Should Judged, "after ABORTED, wait and retry with growing pauses";
    C004 "C004" Must Judged, "no string field over 128 bytes";
    C005 "C005" Must Judged, "no map over 4 KiB";
    C006 "C006" Must Judged, "a node id has at most 256 bytes";
    C007 "C007" Must Judged, "mount flags have at most 4 KiB together";
    C008 "C008" May PLUGIN, "paths are not bound by 128 bytes";
    C009 "C009" Must Judged, "required fields are there, and required lists are not empty";
    C010 "C010" Must NotSeen("an unset field and its zero value are the same on the wire"), "unset optional fields mean their zero values";
    C011 "C011" Must ANSWER, "an oversized answer is a fault of the plugin, and no crash";
    C012 "C012" May CHOICE, "deadlines and retries are chosen freely";
    C013 "C013" Must Judged, "a retry repeats the same fields";
    C014 "C014" Must Judged, "a call is cancelled by its opposite only";
    C015 "C015" Must Judged, "a caller that gives up has not cancelled its call: its outcome is unknown";
    C016 "C016" Must InPart("seen as C017 to C020, C022 and the codes of each call"), "all gRPC codes are handled";
    C017 "C017" Must Judged, "INVALID_ARGUMENT is never retried unchanged";
    C018 "C018" Should InPart("a retry within one second came before a person could act"), "PERMISSION_DENIED is retried only after an administrator acted";
    C019 "C019" Must Judged, "UNIMPLEMENTED is never retried, unless capabilities were read again";
    C020 "C020" Must Judged, "UNAUTHENTICATED is retried only with other secrets";
    C021 "C021" Must ANSWER, "the details of a status are not relied on";
    C022 "C022" Must Judged, "after an error that says nothing of its effect, the outcome is unknown";
    C023 "C023" Must Judged, "keys of secrets are letters, digits, hyphens, underscores and dots";
    C024 "C024" Must InPart("judged for the secrets that --needs-secret names"), "the secrets that a call needs are in it";
    C025 "C025" Must NotSeen("logs and records of the orchestrator are not calls"), "secrets reach no log, error or record; mount flags reach no log or error, and no record that others can read";
    C026 "C026" Must NotSeen("use --garbage unknown-capabilities, and see whether the orchestrator goes on"), "unknown capabilities are ignored";
    C027 "C027" Should NotSeen("whether a person has chosen an alpha feature is not in a call"), "alpha features are off unless chosen";
    C030 "C030" Must ANSWER, "the name of a plugin is checked";
    C031 "C031" Should ANSWER, "a plugin that changes its name is at fault";
    C032 "C032" Must ANSWER, "instances of one version have the same capabilities";
    C033 "C033" Must Judged, "controller calls only with CONTROLLER_SERVICE";
    C034 "C034" Must Judged, "group calls only with GROUP_CONTROLLER_SERVICE";
    C035 "C035" Must METADATA, "metadata calls only with SNAPSHOT_METADATA_SERVICE";
    C036 "C036" Must InPart("judged for the node of the examiner, when it has a topology"), "volumes are used only on nodes from which they can be reached";
    C037 "C037" May CHOICE, "Probe may be called at any time";
    C038 "C038" Must ANSWER, "a Probe without the field ready means ready";
    C039 "C039" Must Judged, "while a plugin is not ready, no other service is called";
    C040 "C040" May CHOICE, "a Probe that fails may lead to a restart";
    C041 "C041" Must Judged, "a plugin whose Probe fails with FAILED_PRECONDITION is not used";
    C050 "C050" Must InPart("a retry under a new name looks like another volume"), "the name of a volume is made by the orchestrator, without control characters";
    C051 "C051" Must Judged, "a volume is created with at least one capability";
    C052 "C052" Must Judged, "capacities are not negative, at least one is set, and the least is not above the limit";
    C053 "C053" Must Judged, "accessibility requirements only with VOLUME_ACCESSIBILITY_CONSTRAINTS";
    C054 "C054" Must Judged, "a topology requirement is not empty, and preferred is a part of requisite";
    C055 "C055" Must Judged, "topology keys and values are well formed";
    C056 "C056" Must Judged, "mutable parameters only with MODIFY_VOLUME";
    C057 "C057" Must Judged, "clones only with CLONE_VOLUME, volumes from snapshots only with snapshots";
    C058 "C058" Must Judged, "a capability has one access type and an access mode";
    C059 "C059" Must Judged, "calls use the ids that the plugin gave";
    C060 "C060" Must Judged, "the context of a volume never changes";
    C061 "C061" May CHOICE, "a create that timed out and is not wanted any more is settled";
    C062 "C062" Must InPart("judged at the end of an exam with --expect-undone"), "volumes that are no longer needed are deleted";
    C063 "C063" Must InPart("ALREADY_EXISTS and OUT_OF_RANGE are not retried unchanged"), "each code of CreateVolume has its own reaction";
    C064 "C064" Must PLUGIN, "to delete a volume that is missing succeeds";
    C065 "C065" Should InPart("judged by the pause before a retry"), "a delete that fails with FAILED_PRECONDITION is retried with backoff";
    C070 "C070" Must Judged, "ControllerPublish and -Unpublish only with PUBLISH_UNPUBLISH_VOLUME";
    C071 "C071" Must Judged, "a node id is one that NodeGetInfo gave";
    C072 "C072" Must Judged, "readonly of ControllerPublish only with PUBLISH_READONLY";
    C073 "C073" Must Judged, "the volume context is that of the volume";
    C074 "C074" Must Judged, "the publish context goes to stage and publish unchanged";
    C075 "C075" Must Judged, "several nodes at once only with a MULTI_NODE mode";
    C076 "C076" May CHOICE, "an unclear ControllerPublish is repeated or undone";
    C077 "C077" Must InPart("ALREADY_EXISTS is not retried unchanged"), "each code of ControllerPublish has its own reaction";
    C078 "C078" Must InPart("judged when the examiner limits volumes of a node"), "after RESOURCE_EXHAUSTED no ControllerPublish until volumes of the node are fewer than its limit";
    C079 "C079" Must Judged, "ControllerUnpublish only after every NodeUnpublish of the volume on the node";
    C080 "C080" Should Judged, "ControllerUnpublish names its node";
    C081 "C081" Should Judged, "ControllerUnpublish has the secrets of ControllerPublish";
    C082 "C082" May CHOICE, "ControllerUnpublish is repeated until it has succeeded";
    C090 "C090" Must ANSWER, "what Validate confirms is compared with what was asked";
    C091 "C091" Must Judged, "max_entries of a list is not negative";
    C092 "C092" Must ANSWER, "doubles and gaps between pages are tolerated";
    C093 "C093" Should Judged, "a list is continued with a token of that list, and begun anew after ABORTED";
    C094 "C094" Must ANSWER, "nodes that are unknown are tolerated in a list";
    C095 "C095" Must ANSWER, "of two conditions of a volume the worse is assumed";
    C096 "C096" Should INSIDE, "a modification has the intended parameters only";
    C097 "C097" Must Judged, "GetCapacity has a topology only with VOLUME_ACCESSIBILITY_CONSTRAINTS";
    C098 "C098" May CHOICE, "sizes of a capacity guide placement";
    C100 "C100" Should InPart("seen as what is open at the end of an exam"), "a snapshot that is not ready is asked for again";
    C101 "C101" Should ANSWER, "a snapshot that failed after it was cut is deleted";
    C102 "C102" Must Judged, "a volume from a snapshot is not limited to less than its size";
    C103 "C103" Must Judged, "a snapshot of a group is not deleted alone";
    C104 "C104" Should InPart("seen as C017"), "a snapshot of a group that was to be deleted alone is deleted with its group";
    C105 "C105" Should ANSWER, "a snapshot without room fails";
    C106 "C106" Must Judged, "calls on a group have all ids of its snapshots";
    C107 "C107" Should CHOICE, "a group that is not ready is asked for again";
    C108 "C108" Should InPart("seen as C017"), "after a mismatch of ids no blind retry";
    C109 "C109" Must Judged, "a volume that can only grow offline is not in use when it grows";
    C110 "C110" May CHOICE, "a volume that can grow online may grow at any time";
    C111 "C111" Must InPart("judged at the end of an exam with --expect-undone"), "NodeExpand follows when the controller says so";
    C112 "C112" Should Judged, "the capability of an expansion is that of the publish";
    C113 "C113" Must InPart("OUT_OF_RANGE is not retried unchanged"), "each code of ControllerExpand has its own reaction";
    C120 "C120" Must Judged, "stage and unstage only with STAGE_UNSTAGE_VOLUME";
    C121 "C121" Must Judged, "stage only after ControllerPublish has succeeded";
    C122 "C122" Must Judged, "publish only after stage has succeeded";
    C123 "C123" Should Judged, "a volume is staged once on a node";
    C124 "C124" Must InPart("seen as C131"), "users of a volume on a node are counted";
    C125 "C125" Must Judged, "one staging path for each volume: absolute, a directory, made by the orchestrator";
    C126 "C126" Must InPart("seen as C125 and C136: the examiner looks at the path itself"), "paths are those that the plugin sees";
    C127 "C127" Must Judged, "no publish context without PUBLISH_UNPUBLISH_VOLUME";
    C128 "C128" May CHOICE, "an unclear stage is repeated or undone";
    C129 "C129" Must InPart("ALREADY_EXISTS is not retried unchanged"), "each code of stage has its own reaction";
    C130 "C130" Must Judged, "every path that was staged is unstaged";
    C131 "C131" Must Judged, "unstage only after every unpublish has succeeded";
    C132 "C132" Must Judged, "unstage before ControllerUnpublish";
    C133 "C133" Must INSIDE, "enough is stored to unstage without the record of the volume";
    C134 "C134" Must Judged, "publish only after ControllerPublish has succeeded";
    C135 "C135" Must Judged, "publish has the staging path if and only if the plugin stages";
    C136 "C136" Must Judged, "a target is absolute, of one volume, and its parent alone is made by the orchestrator";
    C137 "C137" May Judged, "several targets on a node only with a mode for several";
    C138 "C138" Should Judged, "never a second publish with another capability";
    C139 "C139" Should PLUGIN, "the answers of a second publish follow table C.5";
    C140 "C140" May CHOICE, "an unclear publish is repeated or undone";
    C141 "C141" Must Judged, "every target that was published is unpublished";
    C142 "C142" Must NotSeen("what is removed after an unpublish is not a call"), "after unpublish the orchestrator removes what it made, and nothing that is mounted";
    C143 "C143" May CHOICE, "unpublish is repeated until it has succeeded";
    C144 "C144" Should Judged, "statistics only with their capability, and with the staging path";
    C145 "C145" Must ANSWER, "figures may be missing from statistics";
    C146 "C146" Should Judged, "NodeGetInfo is called before volumes are published to the node";
    C147 "C147" Must ANSWER, "without a limit of volumes the orchestrator decides";
    C148 "C148" May CHOICE, "a node without topology may do for every volume";
    C149 "C149" Must Judged, "NodeExpand after stage, or after publish where nothing is staged";
    C150 "C150" Must InPart("seen as C109 and C149"), "a volume that grows offline is taken offline first, and expanded on its node last";
    C151 "C151" Should Judged, "NodeExpand has the staging path";
    C152 "C152" Must Judged, "NodeExpand that failed with FAILED_PRECONDITION is not retried";
    C153 "C153" Must Judged, "NodeExpand that failed with OUT_OF_RANGE is retried with another range only";
    C154 "C154" Should Judged, "with SINGLE_NODE_MULTI_WRITER the modes 6 and 7 replace mode 1";
    C155 "C155" Should Judged, "a mount group only with VOLUME_MOUNT_GROUP";
    C160 "C160" Must METADATA, "only the normal end of a stream proves that all was received";
    C161 "C161" May METADATA, "a stream that failed is continued behind the last byte";
    C162 "C162" Must METADATA, "blocks of a stream are in order";
    C163 "C163" Must METADATA, "batches of a stream have at most the wished length";
    C170 "C170" Must PROCESS, "only Unix sockets";
    C171 "C171" Must PROCESS, "the endpoint is in CSI_ENDPOINT, and ends in .sock";
    C172 "C172" Should PROCESS, "the order of a start";
    C173 "C173" Must PLUGIN, "all services are on one socket";
    C174 "C174" May PROCESS, "the directory of the socket belongs to the supervisor";
    C175 "C175" Must PROCESS, "the socket is protected by the rights of its file";
    C176 "C176" Must PROCESS, "the supervisor owns the logs of the plugin";
    C177 "C177" Must PROCESS, "node plugins have CAP_SYS_ADMIN";
    C178 "C178" Must PROCESS, "mounts propagate as documented";
    C179 "C179" May PROCESS, "limits may be set";
    C180 "C180" Must PROCESS, "variables named CSI_ are reserved";
    C181 "C181" Should PROCESS, "all kinds of deployment work";
    C182 "C182" Must PROCESS, "a plugin that exits has failed";
    C183 "C183" Must InPart("seen as C033"), "a plugin without a controller gets no controller calls";
    Gate "C.1" Must Judged, "calls only with their capability (table C.1)";
    Order "C.4" Must Judged, "a volume is deleted only when nothing of it is up";
}

impl Rule {
    /// The code with which a strict plugin refuses a request whose form breaks this rule. `None`: the rule is not about the form of one
    /// request, and the result of the call depends on the state of the volume.
    #[must_use]
    pub const fn refusal(self) -> Option<Code> {
        match self {
            Self::C004
            | Self::C005
            | Self::C006
            | Self::C007
            | Self::C009
            | Self::C023
            | Self::C050
            | Self::C051
            | Self::C052
            | Self::C053
            | Self::C054
            | Self::C055
            | Self::C056
            | Self::C057
            | Self::C058
            | Self::C091 => Some(Code::InvalidArgument),
            Self::C024 => Some(Code::Unauthenticated),
            _ => None,
        }
    }

    /// Whether the examiner judges it, at least in part by its own checks.
    #[must_use]
    pub const fn is_judged(self) -> bool {
        matches!(self.coverage(), Judged | InPart(_))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_for_orchestrators_has_an_id_a_text_and_a_coverage() {
        let ids: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!((ids.len(), Rule::ALL.len()), (147, 147));
        assert!(Rule::ALL.iter().all(|rule| !rule.text().is_empty()));
        assert!(Rule::ALL.iter().filter(|rule| rule.is_judged()).count() > 70);
    }
}
