//! Leases of CSI plugins, as a host program uses them: taken, called over, and released.

use std::time::Duration;

use callboard_actors::csi::Code;
use callboard_actors::instances::LeaseRefused;
use callboard_actors::lease::{Lease, LeaseError};
use callboard_actors::vocabulary::text::quoted;
use callboard_proto::csi::v1 as wire;
use tonic::Status;

use super::{Entry, Mistake, Stage, Words};

pub(super) const VERBS: &[Entry] = &[
    ("lease NAME PLUGIN [within=DURATION]", lease),
    ("call NAME GetPluginInfo|Probe|NodeGetInfo", call),
    ("give-back NAME", give_back),
];

fn lease(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (name, plugin) = (words.next("name of the lease")?.to_owned(), words.plugin()?);
    let within = words.duration("within")?.unwrap_or(Duration::ZERO);
    let (leases, held) = (stage.host()?.leases(), stage.leases.clone());
    let leased = async move {
        match leases.lease(&plugin, within).await {
            Err(LeaseRefused::NotAnswered(error)) => Err(error),
            answer => Ok(answer),
        }
    };
    stage.ask("instances", leased, move |answer| match answer {
        Ok(lease) => {
            let of = format!("leased {} of {} @{}", lease.plugin(), lease.allocation(), lease.generation());
            held.borrow_mut().insert(name, lease);
            of
        }
        Err(error) => format!("no: {error}"),
    });
    Ok(())
}

fn call(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the lease")?;
    let rpc = words.next("name of the call")?;
    if !["GetPluginInfo", "Probe", "NodeGetInfo"].contains(&rpc) {
        return Err(Mistake::new(format!("{rpc:?} is no call over a lease of a script")));
    }
    let leases = stage.leases.borrow();
    let lease = leases.get(name).ok_or_else(|| Mistake::new(format!("the script has no lease {name}")))?;
    // During the call, the channel counts as the lease itself.
    let (of, called) = (format!("plugin {}", lease.allocation()), called(lease, rpc));
    drop(leases);
    stage.ask(&of, async move { Ok(called.await) }, |answer| match answer {
        Ok(()) => "answered".to_owned(),
        Err(status) => match LeaseError::of(&status) {
            Some(error) => format!("no: {error}"),
            None => format!("no: {} {}", Code::from_number(status.code().into()), quoted(status.message())),
        },
    });
    Ok(())
}

/// Makes a call over a lease.
fn called(lease: &Lease, rpc: &str) -> impl Future<Output = Result<(), Status>> + use<> {
    let (mut identity, mut node) = (lease.identity(), lease.node());
    let rpc = rpc.to_owned();
    async move {
        match &*rpc {
            "GetPluginInfo" => identity.get_plugin_info(wire::GetPluginInfoRequest {}).await.map(drop),
            "Probe" => identity.probe(wire::ProbeRequest {}).await.map(drop),
            _ => node.node_get_info(wire::NodeGetInfoRequest {}).await.map(drop),
        }
    }
}

fn give_back(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the lease")?;
    let given = stage.leases.borrow_mut().remove(name);
    given.map(drop).ok_or_else(|| Mistake::new(format!("the script has no lease {name}")))
}
