//! Subscribers: waiting for a plugin until it is registered, notifications of a change, and a subscription with its snapshot. Each
//! beside an actix actor that does the same and decides nothing.

mod support;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler, Message};
use callboard_actors::registry::{Deregister, Entry, List, Register, Registry, WaitForPlugin};
use callboard_actors::shell::{Address, FeedItem};
use callboard_actors::vocabulary::PluginKey;
use futures_util::future::{LocalBoxFuture, join};
use tokio::sync::{Notify, oneshot};

use support::Pace;
use support::clients::{apart, departure};
use support::curve::{Curve, Rows, Stretch, nanos};
use support::figures::Samples;
use support::rig::{Held, Rig};

/// The numbers of waiting or subscribed clients.
const PEOPLE: [u64; 4] = [1, 10, 100, 1_000];
/// The numbers of allocations held at a subscription.
const HELD: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
/// A timeout longer than any wait.
const TIMEOUT: Duration = Duration::from_secs(600);

fn main() {
    support::run("wait and subscribe, beside bare actix", measure);
}

async fn measure(pace: Pace) {
    let mut rows = Rows::begin();
    waits(pace, &mut rows).await;
    news(pace, &mut rows).await;
    snapshots(pace, &mut rows).await;
}

fn axis<const N: usize>(pace: Pace, axis: [u64; N]) -> impl Iterator<Item = u64> {
    axis.into_iter().take(pace.choose(N, 2))
}

// === Wait ===

async fn waits(pace: Pace, rows: &mut Rows) {
    let rig = Rig::in_memory(1_000).await;
    let bare = BareHall::default().start();
    let pairs = |n: u64| (pace.choose(20_000, 200) / n).max(1);
    let mut stages: Vec<_> = axis(pace, PEOPLE).map(|n| (n, pairs(n))).collect();
    let curve = Curve { operation: "wait", store: "memory", along: "in flight" };
    rows.draw(curve, pace.choose(7, 1), &mut stages, async |people, pairs| {
        let clients = apart(people as usize);
        (all_wait(&rig.registry, &clients, *pairs).await, all_wait(&bare, &clients, *pairs).await)
    })
    .await;
    rig.end().await;
}

/// An actor that can wait for a plugin.
trait Hall: Clone + 'static {
    /// Sends the request at once; the answer comes later.
    fn wait(&self, plugin: PluginKey) -> LocalBoxFuture<'static, ()>;
    async fn come(&self, message: Register);
    async fn go(&self, message: Deregister);
}

impl Hall for Address<Registry> {
    fn wait(&self, plugin: PluginKey) -> LocalBoxFuture<'static, ()> {
        let answer = self.ask(WaitForPlugin { plugin, within: TIMEOUT });
        Box::pin(async move {
            answer.await.expect("the registry runs").expect("it comes");
        })
    }

    async fn come(&self, message: Register) {
        self.ask(message).await.expect("the registry runs").expect("it is well formed");
    }

    async fn go(&self, message: Deregister) {
        self.ask(message).await.expect("the registry runs");
    }
}

/// Each client waits for its plugin, registers it, and measures the time until the wait is answered.
async fn all_wait(hall: &impl Hall, clients: &[Register], pairs: u64) -> Stretch {
    let begun = Instant::now();
    let running: Vec<_> = clients
        .iter()
        .map(|client| {
            let (hall, client) = (hall.clone(), client.clone());
            actix_rt::spawn(async move {
                let mut latencies = Vec::new();
                for _ in 0..pairs {
                    let waiting = hall.wait(client.plugins[0].clone());
                    let asked = Instant::now();
                    let coming = hall.come(client.clone());
                    let waited = async {
                        waiting.await;
                        latencies.push(nanos(asked.elapsed()));
                    };
                    join(waited, coming).await;
                    hall.go(departure(&client)).await;
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Samples::default();
    for client in running {
        latencies.extend(client.await.expect("no client fails"));
    }
    Stretch::new(3 * pairs * clients.len() as u64, begun.elapsed(), latencies)
}

/// An actor that only wakes waiting clients.
#[derive(Debug, Default)]
struct BareHall(HashMap<PluginKey, oneshot::Sender<()>>);

impl Actor for BareHall {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Wait(PluginKey, oneshot::Sender<()>);

#[derive(Message)]
#[rtype(result = "()")]
struct Come(Register);

#[derive(Message)]
#[rtype(result = "()")]
struct Go(Deregister);

impl Handler<Wait> for BareHall {
    type Result = ();

    fn handle(&mut self, Wait(plugin, waiter): Wait, _: &mut Context<Self>) {
        self.0.insert(plugin, waiter);
    }
}

impl Handler<Come> for BareHall {
    type Result = ();

    fn handle(&mut self, Come(register): Come, _: &mut Context<Self>) {
        let waiter = self.0.remove(&register.plugins[0]).expect("one waits");
        waiter.send(()).expect("it still waits");
    }
}

impl Handler<Go> for BareHall {
    type Result = ();

    fn handle(&mut self, Go(deregister): Go, _: &mut Context<Self>) {
        assert!(!self.0.contains_key(&deregister.plugins[0]));
    }
}

impl Hall for Addr<BareHall> {
    fn wait(&self, plugin: PluginKey) -> LocalBoxFuture<'static, ()> {
        let (waiter, answer) = oneshot::channel();
        self.do_send(Wait(plugin, waiter));
        Box::pin(async move { answer.await.expect("the actor runs") })
    }

    async fn come(&self, message: Register) {
        self.send(Come(message)).await.expect("the actor runs");
    }

    async fn go(&self, message: Deregister) {
        self.send(Go(message)).await.expect("the actor runs");
    }
}

// === News ===

/// The count of notifications received by all subscribers, and the waiter for it.
#[derive(Clone, Default)]
struct Heard(Rc<(Cell<u64>, Cell<u64>, Notify)>);

impl Heard {
    fn another(&self) {
        let (heard, due, all) = &*self.0;
        heard.set(heard.get() + 1);
        if heard.get() == due.get() {
            all.notify_one();
        }
    }

    /// Waits for the number of notifications given in the last call of `due`.
    async fn all(&self) {
        self.0.2.notified().await;
    }

    fn due(&self, more: u64) {
        self.0.1.set(self.0.0.get() + more);
    }
}

async fn news(pace: Pace, rows: &mut Rows) {
    let mut stages = Vec::new();
    for people in axis(pace, PEOPLE) {
        let (rig, heard) = (Rig::in_memory_with(Held::apart(1_000), false).await, Heard::default());
        for _ in 0..people {
            listen(&rig.registry, heard.clone());
        }
        let bare_heard = Heard::default();
        let listeners = (0..people).map(|_| BareListener(bare_heard.clone()).start()).collect();
        let bare = BarePublisher(listeners).start();
        stages.push((people, (rig, heard, bare, bare_heard)));
    }
    let client = &apart(1)[0];
    let curve = Curve { operation: "news", store: "memory", along: "subscribers" };
    rows.draw(curve, pace.choose(7, 1), &mut stages, async |people, (rig, heard, bare, bare_heard)| {
        let times = pace.choose((20_000 / people).min(4_000), 20);
        let ours = Stretch::of(times, async || {
            // Each change causes two notifications: registered and active, or deregistered and none active.
            heard.due(2 * people);
            rig.registry.tell(client.clone()).expect("the registry runs");
            heard.all().await;
            heard.due(2 * people);
            rig.registry.tell(departure(client)).expect("the registry runs");
            heard.all().await;
        });
        let ours = ours.await;
        let bare = Stretch::of(times, async || {
            for _ in 0..2 {
                bare_heard.due(2 * people);
                bare.do_send(Come(client.clone()));
                bare_heard.all().await;
            }
        });
        (ours, bare.await)
    })
    .await;
    for (_, (rig, ..)) in stages {
        rig.end().await;
    }
}

fn listen(registry: &Address<Registry>, heard: Heard) {
    let mut subscription = registry.subscribe("bench", 64).expect("the registry runs");
    actix_rt::spawn(async move {
        while let Some(item) = subscription.next().await {
            match item {
                FeedItem::Change { .. } => heard.another(),
                FeedItem::Snapshot { .. } => {}
                FeedItem::Lagged { missed } => panic!("{missed} news were missed"),
            }
        }
    });
}

/// An actor that sends two notifications to each subscriber per message.
struct BarePublisher(Vec<Addr<BareListener>>);

impl Actor for BarePublisher {
    type Context = Context<Self>;
}

impl Handler<Come> for BarePublisher {
    type Result = ();

    fn handle(&mut self, Come(register): Come, _: &mut Context<Self>) {
        for _ in 0..2 {
            self.0.iter().for_each(|listener| listener.do_send(Come(register.clone())));
        }
    }
}

struct BareListener(Heard);

impl Actor for BareListener {
    type Context = Context<Self>;
}

impl Handler<Come> for BareListener {
    type Result = ();

    fn handle(&mut self, _: Come, _: &mut Context<Self>) {
        self.0.another();
    }
}

// === Snapshots ===

async fn snapshots(pace: Pace, rows: &mut Rows) {
    let mut stages = Vec::new();
    for held in axis(pace, HELD) {
        let rig = Rig::in_memory_with(Held::apart(held), false).await;
        let entries = rig.registry.ask(List).await.expect("the registry runs");
        let bare = BareKeeper(entries).start();
        stages.push((held, (rig, bare)));
    }
    let curve = Curve { operation: "subscribe", store: "memory", along: "allocations" };
    rows.draw(curve, pace.choose(7, 1), &mut stages, async |held, (rig, bare)| {
        let times = pace.choose((400_000 / held).clamp(10, 4_000), 5);
        let ours = Stretch::of(times, async || {
            let mut subscription = rig.registry.subscribe("bench", 64).expect("the registry runs");
            let Some(FeedItem::Snapshot { view, .. }) = subscription.next().await else {
                panic!("a snapshot comes first")
            };
            assert_eq!(view.entries.len() as u64, held);
        });
        let ours = ours.await;
        let bare = Stretch::of(times, async || {
            let entries = bare.send(Everything).await.expect("the actor runs");
            assert_eq!(entries.len() as u64, held);
        });
        (ours, bare.await)
    })
    .await;
    for (_, (rig, _)) in stages {
        rig.end().await;
    }
}

#[derive(Message)]
#[rtype(result = "Vec<Entry>")]
struct Everything;

/// An actor that returns its list.
struct BareKeeper(Vec<Entry>);

impl Actor for BareKeeper {
    type Context = Context<Self>;
}

impl Handler<Everything> for BareKeeper {
    type Result = Vec<Entry>;

    fn handle(&mut self, _: Everything, _: &mut Context<Self>) -> Vec<Entry> {
        self.0.clone()
    }
}
