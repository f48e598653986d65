//! Spawning a process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::bound::{Binder, until_not_busy};
use super::control_group::ControlGroup;
use super::descriptors::close_on_exec;
use super::executable::Opened;
use super::look;
use super::owned::Owned;
use super::{
    LaunchError, Lifetime, OWNER_VARIABLE, PROGRAM_VARIABLE, ProcessName, ProcessSpec, ProcessTag,
    TAG_VARIABLE,
};
use crate::goplugin::{HandshakeTerms, SOCKET_DIR_VARIABLE};

#[derive(Debug)]
pub(super) struct Spawn<'a> {
    pub(super) name: &'a ProcessName,
    pub(super) tag: ProcessTag,
    pub(super) owner: &'a str,
    pub(super) spec: &'a ProcessSpec,
    pub(super) binder: Option<&'a Binder>,
    pub(super) group: Option<&'a ControlGroup>,
    /// The directory for its sockets, if the terms of its handshake name none.
    pub(super) sockets: Option<&'a Path>,
    /// Standard output and standard error, open for appending.
    pub(super) output: (File, File),
}

impl Spawn<'_> {
    /// Spawns the process. It is owned from this instant: whenever it is dropped, it is killed and reaped (PRC-02).
    ///
    /// Call it on the thread that lives as long as the host: when that thread ends, the kernel kills a bound process.
    pub(super) fn spawn(self, opened: &Opened) -> Result<Owned, LaunchError> {
        let failed = |attempted: &str, source: &io::Error| LaunchError::System {
            name: self.name.clone(),
            attempted: attempted.to_owned(),
            message: source.to_string(),
        };
        let mut command = self.command(opened)?;
        let (stdout, stderr) = &self.output;
        let stdout = if self.spec.joins_output { stderr } else { stdout };
        let clone = |file: &File| file.try_clone().map_err(|error| failed("hand its output over", &error));
        command
            .args(&self.spec.arguments)
            .env_clear()
            .envs(self.environment(opened))
            .current_dir(&self.spec.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(clone(stdout)?)
            .stderr(clone(stderr)?);
        let child =
            until_not_busy(|| command.spawn()).map_err(|error| failed("start the program", &error))?;
        let pid = look::number(child.id()).expect("a child has a process id");
        let owned = Owned::child(pid, self.tag, self.spec.reach);
        let owned = owned.map_err(|error| failed("watch the process", &error))?;
        if let Some(Err(error)) = self.group.map(|group| group.add(owned.pid())) {
            // Its process group and its tag still identify it.
            tracing::warn!(process = %self.name, error = %error, "cannot move a process into its control group");
        }
        Ok(owned)
    }

    /// The command that execs the program. `argv[0]` is the path that the operator chose, also if a copy is run.
    fn command(&self, opened: &Opened) -> Result<Command, LaunchError> {
        let name = self.spec.executable.place();
        match (self.spec.lifetime, self.binder) {
            (Lifetime::Bound, None) => Err(LaunchError::NotBindable { name: self.name.clone() }),
            (Lifetime::Bound, Some(binder)) => Ok(binder.command(opened.path(), Some(&name))),
            (Lifetime::Surviving, Some(binder)) => Ok(binder.command_of_its_own(opened.path(), Some(&name))),
            (Lifetime::Surviving, None) => {
                close_on_exec();
                let mut command = Command::new(opened.path());
                command.arg0(name);
                Ok(command)
            }
        }
    }

    /// Starts empty; then the inherited variables, those of the spec, those of the handshake, and our tags (SEC-06). Later
    /// ones override earlier ones.
    fn environment(&self, opened: &Opened) -> BTreeMap<OsString, OsString> {
        let shaking = self.spec.handshake.iter().flat_map(HandshakeTerms::environment);
        let shaking = shaking.map(|(name, value)| (name.into(), value.into()));
        let sockets = self.sockets.map(|place| (SOCKET_DIR_VARIABLE.into(), place.into()));
        let inherited =
            self.spec.inherit.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let own = self.spec.environment.iter().map(|(name, value)| (name.into(), value.into()));
        let marks = [(TAG_VARIABLE, self.tag.to_string()), (OWNER_VARIABLE, self.owner.to_owned())];
        let marks = marks.map(|(name, value)| (name.into(), value.into()));
        let origin = opened.origin().map(|place| (PROGRAM_VARIABLE.into(), place.into()));
        inherited.chain(own).chain(shaking).chain(sockets).chain(origin).chain(marks).collect()
    }
}
