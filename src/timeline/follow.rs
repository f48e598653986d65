//! Follows the feeds of all actors and makes one stream of lines of them.

use std::collections::VecDeque;
use std::time::Duration;

use callboard_actors::allocations::Allocations;
use callboard_actors::drivers::Drivers;
use callboard_actors::instances::Instances;
use callboard_actors::inventory::Inventory;
use callboard_actors::registry::Registry;
use callboard_actors::shell::{Address, Clock, FeedItem, Machine, Notice, Subscription};
use callboard_proto::admin::v1::Said;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use super::agent::AgentTeller;
use super::allocations::AllocationsTeller;
use super::drivers::DriversTeller;
use super::gates::{WaitingGates, told};
use super::instances::InstancesTeller;
use super::inventory::InventoryTeller;
use super::line::{Line, Voice};
use super::merge::{Rank, merge};
use super::notices::NoticesTeller;
use super::registry::RegistryTeller;
use super::retell::{Retell, missing, retell};
use super::tasks::TasksTeller;
use crate::agent::Agent;
use crate::host::{Gate, Host};
use crate::tasks::Tasks;

/// How many items of one feed may wait.
const FEED_CAPACITY: usize = 1_024;
/// How many lines may wait for the one who reads.
const LINES_CAPACITY: usize = 1_024;
/// How soon to subscribe again to an actor that does not run just now.
const PAUSE: Duration = Duration::from_millis(100);

/// Begins a timeline of a host, of the agent that runs its processes and of its tasks, here and now, with the gates of its
/// actors or without. It ends with the host, or when nobody reads it any more.
///
/// # Panics
/// Outside of a tokio runtime.
#[must_use]
pub(crate) fn follow(
    host: Host,
    agent: &Address<Agent>,
    tasks: &Address<Tasks>,
    with_gates: bool,
) -> mpsc::Receiver<Said> {
    let (sender, receiver) = mpsc::channel(LINES_CAPACITY);
    let mut readers = Readers::new(&host, agent, tasks);
    readers.gates = with_gates.then(|| host.gates().follow());
    tokio::spawn(async move {
        let mut telling = Telling { sender, clock: Clock::system(), number: 0, missed: 0 };
        telling.tell(vec![Line::new(Voice::Timeline, Voice::You, "this is what is said from now on")]);
        loop {
            let goes_on = tokio::select! {
                biased;
                () = readers.heard() => true,
                () = telling.abandoned() => return,
                _ = host.ended() => false,
            };
            readers.take_all();
            telling.tell(readers.merged());
            if !goes_on {
                return;
            }
        }
    });
    receiver
}

/// The reading ends of all feeds.
struct Readers {
    agent: Reader<Agent, AgentTeller>,
    allocations: Reader<Allocations, AllocationsTeller>,
    registry: Reader<Registry, RegistryTeller>,
    instances: Reader<Instances, InstancesTeller>,
    inventory: Reader<Inventory, InventoryTeller>,
    tasks: Reader<Tasks, TasksTeller>,
    drivers: Reader<Drivers, DriversTeller>,
    notices: Subscription<Notice, Vec<Notice>>,
    noticed: VecDeque<(Rank, Line)>,
    gates: Option<broadcast::Receiver<Gate>>,
    /// The lines of gates whose actors tell nothing here.
    silent: VecDeque<(Rank, Line)>,
}

impl Readers {
    fn new(host: &Host, agent: &Address<Agent>, tasks: &Address<Tasks>) -> Self {
        Self {
            agent: Reader::new(agent),
            allocations: Reader::new(host.allocations()),
            registry: Reader::new(host.registry()),
            instances: Reader::new(host.instances()),
            inventory: Reader::new(host.inventory()),
            tasks: Reader::new(tasks),
            drivers: Reader::new(host.drivers()),
            notices: host.notices().subscribe(),
            noticed: VecDeque::new(),
            gates: None,
            silent: VecDeque::new(),
        }
    }

    /// Waits until one of them has something to say.
    async fn heard(&mut self) {
        tokio::select! {
            biased;
            () = self.agent.heard() => {}
            () = self.allocations.heard() => {}
            () = self.registry.heard() => {}
            () = self.instances.heard() => {}
            () = self.inventory.heard() => {}
            () = self.tasks.heard() => {}
            () = self.drivers.heard() => {}
            Some(item) = self.notices.next() => self.noticed.extend(retell(&mut NoticesTeller, &item)),
            Some(gate) = next_gate(&mut self.gates) => self.take_gate(gate),
        }
    }

    /// Those that read the news of an actor, in the order in which they speak where nothing else decides.
    fn all(&mut self) -> [&mut dyn Reads; 7] {
        [
            &mut self.agent,
            &mut self.allocations,
            &mut self.registry,
            &mut self.instances,
            &mut self.inventory,
            &mut self.tasks,
            &mut self.drivers,
        ]
    }

    fn take_all(&mut self) {
        self.all().into_iter().for_each(Reads::take);
        while let Some(item) = self.notices.try_next() {
            self.noticed.extend(retell(&mut NoticesTeller, &item));
        }
        // What became of a gate is told before the news that follow, so these are all there for what was taken above.
        while let Some(gate) = gate_now(&mut self.gates) {
            self.take_gate(gate);
        }
        self.all().into_iter().for_each(Reads::retell);
    }

    /// Gives a gate to whoever reads the news of its actor. What was missed of gates is told in their place.
    fn take_gate(&mut self, gate: Result<Gate, u64>) {
        let gate = match gate {
            Ok(gate) => gate,
            Err(missed) => return self.silent.push_back((Rank::First, missing(missed))),
        };
        if let Some(reader) = self.all().into_iter().find(|reader| reader.name() == gate.actor) {
            reader.gates().push(gate);
        } else {
            self.silent.push_back(told(&gate));
        }
    }

    fn merged(&mut self) -> Vec<Line> {
        let mut queues = vec![std::mem::take(&mut self.noticed), std::mem::take(&mut self.silent)];
        queues.extend(self.all().into_iter().map(Reads::lines));
        merge(queues)
    }
}

/// The next of what becomes of gates, or how much of it was missed; never anything if nobody asked for gates.
async fn next_gate(gates: &mut Option<broadcast::Receiver<Gate>>) -> Option<Result<Gate, u64>> {
    match gates.as_mut()?.recv().await {
        Ok(gate) => Some(Ok(gate)),
        Err(RecvError::Lagged(missed)) => Some(Err(missed)),
        Err(RecvError::Closed) => {
            *gates = None;
            None
        }
    }
}

/// The same, if there is one now.
fn gate_now(gates: &mut Option<broadcast::Receiver<Gate>>) -> Option<Result<Gate, u64>> {
    match gates.as_mut()?.try_recv() {
        Ok(gate) => Some(Ok(gate)),
        Err(TryRecvError::Lagged(missed)) => Some(Err(missed)),
        Err(TryRecvError::Empty | TryRecvError::Closed) => None,
    }
}

/// The reading end of one feed.
struct Reader<M: Machine, R> {
    address: Address<M>,
    subscription: Option<Subscription<M::News, M::View>>,
    /// When to subscribe again, if that is due.
    again_at: Option<Instant>,
    /// What was read and not retold yet.
    items: VecDeque<FeedItem<M::News, M::View>>,
    /// The number of the last news that was retold.
    last: u64,
    gates: WaitingGates,
    teller: R,
    lines: VecDeque<(Rank, Line)>,
}

impl<M, R> Reader<M, R>
where
    M: Machine,
    R: Retell<News = M::News, View = M::View> + Default,
{
    /// Subscribes at once, so that nothing is missed from here on.
    fn new(address: &Address<M>) -> Self {
        let subscription = address.subscribe("timeline", FEED_CAPACITY).ok();
        Self {
            address: address.clone(),
            subscription,
            again_at: None,
            items: VecDeque::new(),
            last: 0,
            gates: WaitingGates::default(),
            teller: R::default(),
            lines: VecDeque::new(),
        }
    }

    /// Waits for an item. Giving up this future loses nothing.
    async fn heard(&mut self) {
        loop {
            if let Some(subscription) = &mut self.subscription {
                if let Some(item) = subscription.next().await {
                    self.items.push_back(item);
                    return;
                }
                // Whoever comes next counts its news from the beginning.
                self.subscription = None;
                self.last = 0;
            }
            // However often others are heard meanwhile.
            let again_at = *self.again_at.get_or_insert_with(|| Instant::now() + PAUSE);
            tokio::time::sleep_until(again_at).await;
            self.again_at = None;
            self.subscription = self.address.subscribe("timeline", FEED_CAPACITY).ok();
        }
    }
}

/// A reading end, whoever speaks at the other.
trait Reads {
    /// The name of the actor.
    fn name(&self) -> &str;

    /// What became of its gates and is not retold yet.
    fn gates(&mut self) -> &mut WaitingGates;

    /// Takes what is there now.
    fn take(&mut self);

    /// Retells what was taken, with each gate in its place.
    fn retell(&mut self);

    /// Gives away what was retold.
    fn lines(&mut self) -> VecDeque<(Rank, Line)>;
}

impl<M, R> Reads for Reader<M, R>
where
    M: Machine,
    R: Retell<News = M::News, View = M::View> + Default,
{
    fn name(&self) -> &str {
        self.address.name()
    }

    fn gates(&mut self) -> &mut WaitingGates {
        &mut self.gates
    }

    fn take(&mut self) {
        let Some(subscription) = &mut self.subscription else { return };
        self.items.extend(std::iter::from_fn(|| subscription.try_next()));
    }

    fn retell(&mut self) {
        for item in self.items.drain(..) {
            if let FeedItem::Snapshot { number, .. } | FeedItem::Change { number, .. } = &item {
                self.lines.extend(self.gates.before(*number));
                self.last = *number;
            }
            self.lines.extend(retell(&mut self.teller, &item));
        }
        self.lines.extend(match &self.subscription {
            Some(_) => self.gates.before(self.last + 1),
            // No news will tell where they stand.
            None => self.gates.all(),
        });
    }

    fn lines(&mut self) -> VecDeque<(Rank, Line)> {
        std::mem::take(&mut self.lines)
    }
}

/// The writing end of the timeline.
struct Telling {
    sender: mpsc::Sender<Said>,
    clock: Clock,
    number: u64,
    missed: u64,
}

impl Telling {
    async fn abandoned(&self) {
        self.sender.closed().await;
    }

    /// Hands lines over, and counts those for which there is no room.
    fn tell(&mut self, lines: Vec<Line>) {
        for line in lines {
            if self.missed > 0 && self.hand_over(missing(self.missed)) {
                self.missed = 0;
            }
            if self.missed > 0 || !self.hand_over(line) {
                self.missed += 1;
            }
        }
    }

    fn hand_over(&mut self, line: Line) -> bool {
        let is_taken = self.sender.try_send(line.said(self.number + 1, self.clock.now())).is_ok();
        self.number += u64::from(is_taken);
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        (0..count).map(|number| Line::new(Voice::Agent, Voice::Everyone, format!("line {number}"))).collect()
    }

    #[test]
    fn one_who_reads_too_slowly_is_told_how_much_was_missed_and_nobody_waits_for_him_scl_01() {
        let (sender, mut receiver) = mpsc::channel(3);
        let mut telling = Telling { sender, clock: Clock::system(), number: 0, missed: 0 };
        telling.tell(lines(5));
        let mut read = || receiver.try_recv().map(|said| (said.number, said.message)).ok();
        assert_eq!(read(), Some((1, "line 0".to_owned())));
        assert_eq!((read(), read()).1, Some((3, "line 2".to_owned())));
        assert_eq!(read(), None);
        telling.tell(lines(1));
        let missed = "2 lines are missing here: too much was said at once".to_owned();
        assert_eq!(read(), Some((4, missed)));
        assert_eq!(read(), Some((5, "line 0".to_owned())));
    }
}
