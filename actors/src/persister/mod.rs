//! The one owner of the database. What is here is what the shell must know of it.

/// Why writes did not reach the disk.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// No space is left where the database lies.
    #[error("cannot write {path}: no space is left")]
    NoSpace {
        /// The database file.
        path: std::path::PathBuf,
        /// What the system said.
        #[source]
        source: std::sync::Arc<std::io::Error>,
    },
}

/// How the writes of an owner ended.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The epoch of these writes.
    pub epoch: u64,
    /// The highest sequence among them.
    pub through: u64,
    /// Whether they are on disk.
    pub outcome: Result<(), WriteError>,
}

impl actix::Message for Settled {
    type Result = ();
}
