//! Where the agent's memory survives a crash of its machine. It ends with the process of the host, like everything it is about.

use std::collections::BTreeMap;

use actix::Recipient;
use callboard_actors::persister::Settled;
use callboard_actors::shell::{Store, Ticket, Written};
use callboard_actors::vocabulary::AllocationId;
use futures_util::future::LocalBoxFuture;

use super::state::{Agent, Memory};

/// Keeps what the agent remembers of its tasks.
#[derive(Debug, Default)]
pub(super) struct Remembered(BTreeMap<AllocationId, Memory>);

impl Store<Agent> for Remembered {
    fn open(&mut self, _settled: Recipient<Settled>) {}

    fn write(&mut self, _ticket: Ticket, (allocation, memory): (AllocationId, Memory)) -> Written {
        self.0.insert(allocation, memory);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<BTreeMap<AllocationId, Memory>, String>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}
