//! The calls and the state of the catalog.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::files::FileKnown;
use super::messages::{BlockedPlugin, Listing, PluginSource, RefusedPlugin, ResolveFile};
use super::options::CatalogOptions;
use super::refusal::{DirectoryError, Refusal};
use crate::hclspec::{Schema, SentSpec};
use crate::kernel::AskId;
use crate::process::{ProcessName, ProcessSpec};
use crate::vocabulary::{Attempt, PluginKey};

/// The calls of the catalog.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogCall {
    /// End every temporary instance, and answer when the last one is gone.
    Sweep,
    /// Read names and file types of a directory.
    ReadDirectory {
        /// The directory.
        directory: PathBuf,
        /// The limit of entries; above it the call fails.
        files_max: usize,
    },
    /// Launch a temporary instance, query its identity and configuration schema, and end it.
    Probe(Box<ProbeOrder>),
}

/// The order for a probe.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOrder {
    /// The unique name of the temporary instance.
    pub name: ProcessName,
    /// Its process. It ends with the host.
    pub spec: ProcessSpec,
    /// The timeout for connecting, and for each answer.
    pub call_deadline: Duration,
    /// The timeout of the shutdown call.
    pub polite_deadline: Duration,
    /// The grace to end after that.
    pub stop_grace: Duration,
}

/// The outcome of a [`CatalogCall`].
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum CatalogOutcome {
    /// No temporary instance is left.
    Swept,
    /// The content of the directory.
    Directory(Result<Vec<DirectoryEntry>, DirectoryError>),
    /// The answer of the plugin. Its process has ended.
    Probed(Result<Box<Told>, Refusal>),
}

/// An entry of the plugin directory.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name; invalid UTF-8 is replaced.
    pub name: String,
    /// Its file type.
    pub kind: EntryKind,
}

/// The file type of an entry.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file with execute permission.
    Program,
    /// A regular file without execute permission.
    Inert,
    /// A symlink.
    Link,
    /// Anything else.
    Other,
}

/// The answers of a plugin.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Its type and its own name.
    pub plugin: PluginKey,
    /// Its version, as it writes it.
    pub version: String,
    /// The interface versions that it supports.
    pub api_versions: Vec<String>,
    /// Its configuration schema; `None` for a plugin that takes no configuration.
    pub schema: Option<SentSpec>,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Temporary instances of an earlier life are being ended.
    Sweeping,
    Reading,
    Probing(Box<Scan>),
    Resting,
    Stopping,
}

#[derive(Debug)]
pub(super) struct Scan {
    /// The files that are still to be probed.
    pub(super) queue: VecDeque<String>,
    pub(super) running: BTreeMap<Attempt, String>,
    pub(super) draft: Draft,
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) candidates: Vec<Candidate>,
    pub(super) refused: Vec<RefusedPlugin>,
    pub(super) blocked: Vec<BlockedPlugin>,
    pub(super) directory_error: Option<DirectoryError>,
}

/// A plugin with a known identity, before it is compared with others.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) source: PluginSource,
    pub(super) plugin: PluginKey,
    pub(super) version: String,
    pub(super) api_versions: Vec<String>,
    pub(super) schema: CandidateSchema,
}

/// The schema of a candidate, which may not be checked yet.
#[derive(Debug)]
pub(super) enum CandidateSchema {
    /// As the plugin sent it.
    Told(Box<SentSpec>),
    Given(Schema),
    /// It takes no configuration.
    Nothing,
}

/// The machine: see the [module](super).
#[derive(Debug)]
pub struct Catalog {
    pub(super) options: Arc<CatalogOptions>,
    pub(super) phase: Phase,
    pub(super) attempt: Attempt,
    /// The number of the call that the phase waits for, if there is only one.
    pub(super) awaited: Attempt,
    pub(super) listing: Listing,
    pub(super) scanning: Vec<AskId>,
    /// Callers that wait for the end of the next scan.
    pub(super) scanning_next: Vec<AskId>,
    /// Callers that wait for a plugin until the first scan has ended.
    pub(super) resolving: Vec<(AskId, PluginKey)>,
    pub(super) resolving_files: Vec<(AskId, ResolveFile)>,
    pub(super) files: BTreeMap<String, FileKnown>,
    /// Files that are probed independent of a scan.
    pub(super) looks: BTreeMap<Attempt, String>,
}
