//! What the catalog is made of, and what it remembers.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callboard_proto::hclspec as wire;

use super::files::FileKnown;
use super::messages::{BlockedPlugin, Listing, PluginSource, RefusedPlugin, ResolveFile};
use super::options::CatalogOptions;
use super::refusal::{DirectoryError, Refusal};
use crate::hclspec::Schema;
use crate::process::{ProcessName, ProcessSpec};
use crate::shell::AskId;
use crate::vocabulary::{Attempt, PluginKey};

/// What the catalog has done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogCall {
    /// End every temporary instance there is, and say so when the last one is gone.
    Sweep,
    /// Read the names and kinds of what lies in a directory.
    ReadDirectory {
        /// Which directory.
        directory: PathBuf,
        /// With more entries than this it is not looked at.
        files_max: usize,
    },
    /// Launch a temporary instance, ask it who it is and what its configuration looks like, and end it.
    Probe(Box<ProbeOrder>),
}

/// How a plugin is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOrder {
    /// The name of the temporary instance; no two share one.
    pub name: ProcessName,
    /// What is launched. It ends with the host.
    pub spec: ProcessSpec,
    /// How long it may take to connect, and for each answer.
    pub call_deadline: Duration,
    /// How long the polite request to end may take.
    pub polite_deadline: Duration,
    /// How long it may take to end after that.
    pub stop_grace: Duration,
}

/// What came of a [`CatalogCall`].
#[derive(Debug, Clone, PartialEq)]
pub enum CatalogOutcome {
    /// No temporary instance is left.
    Swept,
    /// What lies in the directory.
    Directory(Result<Vec<DirectoryEntry>, DirectoryError>),
    /// What a plugin told. Whatever was launched for it has ended.
    Probed(Result<Box<Told>, Refusal>),
}

/// One thing in the plugin directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name; what is not UTF-8 in it is replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What lies under a name of the plugin directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file that may be executed.
    Program,
    /// A file that may not.
    Inert,
    /// A link, wherever it leads.
    Link,
    /// Anything else.
    Other,
}

/// What a plugin told of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Its type and its own name.
    pub plugin: PluginKey,
    /// Its version, as it writes it.
    pub version: String,
    /// Every version of its interface that it speaks.
    pub api_versions: Vec<String>,
    /// What its configuration must look like; `None` for a plugin that takes none.
    pub schema: Option<wire::Spec>,
}

/// Where the catalog stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// Temporary instances of a former life are being ended.
    Sweeping,
    /// The directory is being read.
    Reading,
    /// Plugins are being asked.
    Probing(Box<Scan>),
    /// All is known that there was at the last scan.
    Resting,
    /// Temporary instances are being ended, and then it is over.
    Stopping,
}

/// One scan under way.
#[derive(Debug)]
pub(super) struct Scan {
    /// Who is still to be asked.
    pub(super) queue: VecDeque<String>,
    /// Who is being asked, by file name.
    pub(super) running: BTreeMap<Attempt, String>,
    /// What is known so far.
    pub(super) draft: Draft,
}

/// What a scan has found so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) candidates: Vec<Candidate>,
    pub(super) refused: Vec<RefusedPlugin>,
    pub(super) blocked: Vec<BlockedPlugin>,
    pub(super) directory_error: Option<DirectoryError>,
}

/// A plugin that has told who it is, and is still to be compared with others.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) source: PluginSource,
    pub(super) plugin: PluginKey,
    pub(super) version: String,
    pub(super) api_versions: Vec<String>,
    pub(super) schema: CandidateSchema,
}

/// The schema of a candidate, which may be yet to be checked.
#[derive(Debug)]
pub(super) enum CandidateSchema {
    /// As a plugin told it.
    Told(Box<wire::Spec>),
    /// As the host program gave it.
    Given(Schema),
    /// It takes no configuration.
    Nothing,
}

/// The machine: see the [module](super).
#[derive(Debug)]
pub struct Catalog {
    pub(super) options: Arc<CatalogOptions>,
    pub(super) phase: Phase,
    /// The number of the latest call.
    pub(super) attempt: Attempt,
    /// The number of the call that the phase waits for, where it is only one.
    pub(super) awaited: Attempt,
    pub(super) listing: Listing,
    /// Who waits for the end of this scan.
    pub(super) scanning: Vec<AskId>,
    /// Who waits for the end of the next one.
    pub(super) scanning_next: Vec<AskId>,
    /// Who waits for a plugin until the first scan has ended.
    pub(super) resolving: Vec<(AskId, PluginKey)>,
    /// Who waits for a file.
    pub(super) resolving_files: Vec<(AskId, ResolveFile)>,
    /// What is known of files, as far as they were asked.
    pub(super) files: BTreeMap<String, FileKnown>,
    /// Files that are asked beside any scan.
    pub(super) looks: BTreeMap<Attempt, String>,
}
