//! The launcher that uses the owner of the processes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::launcher::Launcher;
use super::{ProbeOrder, Refusal, Told};
use crate::goplugin::{CallError, Connection, Handshake, Limits, Listener};
use crate::hclspec::from_wire;
use crate::process::{EndedBy, Launched, ProcessName, ProcessSpec, prove_listener};
use crate::processes::{LaunchProcess, Processes, StopProcess};
use crate::shell::Address;
use crate::vocabulary::PluginKey;

/// Launches through the owner of the processes, and probes over go-plugin.
pub(super) struct ThroughProcesses {
    processes: Address<Processes>,
    /// The running processes, to verify their listeners.
    launched: Rc<RefCell<BTreeMap<ProcessName, Launched>>>,
}

impl ThroughProcesses {
    pub(super) fn new(processes: Address<Processes>) -> Self {
        Self { processes, launched: Rc::default() }
    }
}

impl Launcher for ThroughProcesses {
    fn launch(
        &self,
        name: ProcessName,
        spec: ProcessSpec,
    ) -> LocalBoxFuture<'static, Result<Handshake, Refusal>> {
        let launching = self.processes.ask(LaunchProcess { name: name.clone(), spec: Arc::new(spec) });
        let known = Rc::clone(&self.launched);
        Box::pin(async move {
            let launched = match launching.await {
                Ok(launched) => launched.map_err(Refusal::Launch)?,
                Err(error) => return Err(Refusal::Lost(error.to_string())),
            };
            known.borrow_mut().insert(name, launched.clone());
            let nothing_said = || Refusal::Lost("it was ready without a handshake".to_owned());
            launched.handshake.ok_or_else(nothing_said)
        })
    }

    fn ask(
        &self,
        handshake: Handshake,
        order: ProbeOrder,
    ) -> LocalBoxFuture<'static, Result<Box<Told>, Refusal>> {
        let launched = self.launched.borrow().get(&order.name).cloned();
        Box::pin(async move {
            let prove = async |listener: &Listener| match launched {
                Some(launched) => prove_listener(launched, listener.clone()).await,
                None => Err("its process has already ended, so its listener cannot be verified".to_owned()),
            };
            let limits = Limits { dial_deadline: order.call_deadline, ..Limits::default() };
            let asked = async {
                let connection = Connection::dial_proven(&handshake.endpoint, limits, prove).await?;
                let info = connection.plugin_info(order.call_deadline).await?;
                let schema = connection.config_schema(order.call_deadline).await?.as_ref().map(from_wire);
                Ok((connection, info, schema))
            };
            let (connection, info, schema) = asked.await.map_err(|error: CallError| Refusal::Silent {
                message: error.to_string(),
                ending: None,
                is_transient: error.is_transient(),
            })?;
            if let Err(error) = connection.shutdown(order.polite_deadline).await {
                tracing::debug!(process = %order.name, error = %error, "plugin does not stop on request");
            }
            let plugin = PluginKey::new(info.plugin_type, info.name);
            Ok(Box::new(Told { plugin, version: info.version, api_versions: info.api_versions, schema }))
        })
    }

    fn end(&self, name: ProcessName, grace: Duration) -> LocalBoxFuture<'static, Option<String>> {
        self.launched.borrow_mut().remove(&name);
        let stopping = self.processes.ask(StopProcess { name: name.clone(), tag: None, grace });
        Box::pin(async move {
            match stopping.await {
                Ok(Ok(ending)) => (ending.by == EndedBy::Itself).then(|| ending.to_string()),
                // It is gone, which is the goal.
                Ok(Err(gone)) => {
                    tracing::debug!(process = %name, error = %gone, "temporary instance has already ended");
                    None
                }
                // The owner of the processes ends its processes when it ends itself.
                Err(error) => {
                    tracing::warn!(process = %name, error = %error, "cannot end a temporary instance");
                    None
                }
            }
        })
    }
}
