//! Assigns ports to owners: each has one, no two have the same, and every answer is on disk.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use actix::Recipient;
use callboard::actors::conversation;
use callboard::actors::persister::{Disk, Operation, Owner, Record, Settled, Table};
use callboard::actors::shell::{
    Database, Input, Ledger, Machine, Never, StepContext, Store, Ticket, Written,
};
use callboard::actors::vocabulary::Moment;
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

/// Requests a port. An owner that has one keeps it.
#[derive(Debug)]
pub(crate) struct Reserve {
    pub(crate) owner: String,
}

/// Releases a port; returns whether there was one.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) owner: String,
}

/// Lists the owners and their ports.
#[derive(Debug)]
pub(crate) struct ListPorts;

/// The error if no port is free.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("all ports from {first} to {last} are taken; release one")]
pub(crate) struct AllTaken {
    first: u16,
    last: u16,
}

conversation! {
    /// The messages to the ports.
    pub(crate) enum PortsAsk -> PortsAnswer {
        Reserve => Result<u16, AllTaken>,
        Release => bool,
        ListPorts => Vec<(String, u16)>,
    }
}

/// The news for subscribers, and the change that is written: an owner, and the port that it has from now on, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortChanged {
    owner: String,
    port: Option<u16>,
}

/// The machine: it decides and does nothing.
#[derive(Debug)]
pub(crate) struct Ports {
    range: RangeInclusive<u16>,
    taken: BTreeMap<String, u16>,
}

impl Machine for Ports {
    const KIND: &'static str = "ports";
    type Config = RangeInclusive<u16>;
    type Image = BTreeMap<String, u16>;
    type Ask = PortsAsk;
    type Answer = PortsAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = PortChanged;
    type News = PortChanged;
    type View = Vec<(String, u16)>;

    fn restore(range: &RangeInclusive<u16>, taken: BTreeMap<String, u16>, _moment: Moment) -> Self {
        Self { range: range.clone(), taken }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { id, ask: PortsAsk::Reserve(Reserve { owner }), .. } => {
                let port = self.reserve(owner, cx);
                cx.reply(*id, PortsAnswer::Reserve(port));
            }
            Input::Asked { id, ask: PortsAsk::Release(Release { owner }), .. } => {
                let had_one = self.taken.remove(owner).is_some();
                if had_one {
                    Self::tell(owner, None, cx);
                }
                cx.reply(*id, PortsAnswer::Release(had_one));
            }
            Input::Asked { id, ask: PortsAsk::ListPorts(ListPorts), .. } => {
                cx.reply(*id, PortsAnswer::ListPorts(self.view()));
            }
            Input::StopRequested(_) => cx.stop(),
            Input::Resumed => {}
            Input::Returned { call, .. } => match *call {},
            Input::Elapsed(timer) => match *timer {},
        }
    }

    fn view(&self) -> Vec<(String, u16)> {
        self.taken.iter().map(|(owner, port)| (owner.clone(), *port)).collect()
    }
}

impl Ports {
    fn reserve(&mut self, owner: &str, cx: &mut StepContext<Self>) -> Result<u16, AllTaken> {
        if let Some(port) = self.taken.get(owner) {
            return Ok(*port);
        }
        let is_free = |port: &u16| self.taken.values().all(|taken| taken != port);
        let (first, last) = (*self.range.start(), *self.range.end());
        let port = self.range.clone().find(is_free).ok_or(AllTaken { first, last })?;
        self.taken.insert(owner.to_owned(), port);
        Self::tell(owner, Some(port), cx);
        Ok(port)
    }

    /// Subscribers and askers receive it when it is on disk: effects after a write wait for that write.
    fn tell(owner: &str, port: Option<u16>, cx: &mut StepContext<Self>) {
        let changed = PortChanged { owner: owner.to_owned(), port };
        cx.persist(changed.clone());
        cx.publish(changed);
    }
}

/// One row: the port of the owner whose name is the key.
#[derive(Serialize, Deserialize)]
struct PortRow(u16);

impl Record for PortRow {
    const TABLE: Table = Table("ports");
    const SCHEMA: u16 = 1;
}

/// Keeps ports in the host's database, in a table of their own.
pub(crate) struct PortsStore(Ledger);

impl PortsStore {
    pub(crate) fn new(database: &Database) -> Self {
        Self(database.ledger(Owner::new("ports")))
    }
}

impl Store<Ports> for PortsStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.0.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.0.disk())
    }

    fn write(&mut self, ticket: Ticket, PortChanged { owner, port }: PortChanged) -> Written {
        let operation = match port {
            Some(port) => Operation::put(owner, &PortRow(port)),
            None => Operation::delete::<PortRow>(owner),
        };
        self.0.write(ticket, vec![operation])
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<BTreeMap<String, u16>, String>> {
        let ledger = self.0.clone();
        Box::pin(async move {
            ledger.reopen().await?;
            let rows = ledger.rows::<PortRow>().await?.into_iter();
            rows.map(|(owner, PortRow(port))| {
                Ok((String::from_utf8(owner).map_err(|error| error.to_string())?, port))
            })
            .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use callboard::actors::shell::{AskId, Effect};

    use super::*;

    /// All messages of three owners, in every order, with a crash after any of them: no two have the same port, and
    /// every answer names a port that is on disk.
    #[test]
    fn law_no_two_owners_have_the_same_port_and_what_is_told_is_on_disk() {
        let words: Vec<(bool, &str)> =
            [true, false].into_iter().flat_map(|takes| ["a", "b", "c"].map(|owner| (takes, owner))).collect();
        let mut runs = vec![vec![]];
        for _ in 0..4 {
            runs = runs
                .iter()
                .flat_map(|run: &Vec<(bool, &str)>| {
                    words.iter().map(move |word| [run.as_slice(), &[*word]].concat())
                })
                .collect();
        }
        runs.iter().for_each(|run| holds(run));
    }

    fn holds(run: &[(bool, &str)]) {
        let mut disk = BTreeMap::new();
        for (number, (takes, owner)) in run.iter().enumerate() {
            let mut ports = Ports::restore(&(1..=2), disk.clone(), Moment::default());
            let (owner, mut cx) = ((*owner).to_owned(), StepContext::new(Moment::default()));
            let ask = match takes {
                true => PortsAsk::Reserve(Reserve { owner: owner.clone() }),
                false => PortsAsk::Release(Release { owner: owner.clone() }),
            };
            let (id, asked_at) = (AskId::new(number as u64), cx.now());
            ports.step(&Input::Asked { id, asked_at, ask }, &mut cx);
            for effect in cx.drain() {
                match effect {
                    Effect::Persist(_, PortChanged { owner, port: Some(port) }) => {
                        assert!(disk.values().all(|taken| *taken != port), "{run:?}: {port} belongs to two");
                        disk.insert(owner, port);
                    }
                    Effect::Persist(_, PortChanged { owner, port: None }) => drop(disk.remove(&owner)),
                    Effect::Reply(_, PortsAnswer::Reserve(Ok(port))) => {
                        assert_eq!(disk.get(&owner), Some(&port))
                    }
                    Effect::Reply(_, PortsAnswer::Release(_)) => assert_eq!(disk.get(&owner), None),
                    Effect::Reply(..) | Effect::Publish(_) => {}
                    other => panic!("{run:?}: {other:?}"),
                }
            }
            assert_eq!(ports.taken, disk, "{run:?}");
        }
    }
}
