//! Many interleaved allocations: register, deregister and takeover, in memory and on disk, along three axes: messages in
//! flight, allocations held, and plugins.
//!
//! Callboard and the baseline are measured in turn, round by round, at every point of a curve. The baseline in memory is an
//! actix actor that only answers; on disk it is redb, committing equally long rows in batches as large as ours in the same
//! round.

mod support;

use std::time::Instant;

use actix::{Actor, Addr};
use actix_rt::Arbiter;
use callboard_actors::registry::Register;
use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::PluginKey;
use tempfile::TempDir;

use support::Pace;
use support::bare::Bare;
use support::clients::{RegistryClient, among, apart, departure, registration, timed_loop};
use support::curve::{Curve, Point, Rows, Stretch, nanos};
use support::disk::{BareRedb, directory};
use support::figures::{Goal, Samples, judge};
use support::rig::{Actives, Held, Rig, RigElsewhere, held_plugin, row_of_registry};
use support::sample_actor::SampleActor;

/// The first axis: messages in flight.
const IN_FLIGHT: [u64; 6] = [1, 8, 64, 256, 512, 1_000];
/// The second axis: allocations held, each the only one of its plugin.
const HELD: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
/// The third axis: plugins, with the held allocations distributed over them.
const PLUGINS: [u64; 5] = [1, 10, 100, 1_000, 10_000];
/// The allocations held on the other axes.
const HELD_ELSEWHERE: u64 = 1_000;
/// The allocations held on the axis of plugins.
const HELD_AMONG_PLUGINS: u64 = 10_000;
/// The messages in flight on the other axes, in memory and on disk.
const IN_FLIGHT_IN_MEMORY: u64 = 64;
const IN_FLIGHT_ON_DISK: u64 = 512;

fn main() {
    support::run("many interleaved allocations, beside bare actix and bare redb", measure);
}

async fn measure(pace: Pace) {
    let mut bench = Bench { pace, rows: Rows::begin(), bare: Bare.start(), row: row_of_registry().await };
    let mut verdicts = Vec::new();
    if is_wanted("memory") {
        verdicts.extend(bench.in_flight_in_memory().await);
        bench.shell_in_memory().await;
        verdicts.extend(bench.across_threads_in_memory().await);
        verdicts.extend(bench.held_in_memory().await);
        bench.plugins_in_memory().await;
    }
    if is_wanted("disk") {
        verdicts.extend(bench.in_flight_on_disk().await);
        verdicts.extend(bench.held_on_disk().await);
        bench.plugins_on_disk().await;
    }
    if is_wanted("takeover") {
        bench.takeovers_in_memory().await;
        bench.takeovers_on_disk().await;
    }
    for (what, ratio, goal) in verdicts {
        judge(pace, what, ratio, goal);
    }
}

/// Whether to measure a part: all by default, one with `--only PART`, for instance for a profile.
fn is_wanted(part: &str) -> bool {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--only");
    arguments.nth(1).is_none_or(|only| only == part)
}

/// A goal's name, the measured ratio, and the goal.
type Verdict = (&'static str, f64, Goal);

struct Bench {
    pace: Pace,
    rows: Rows,
    bare: Addr<Bare>,
    /// A row as the registry writes it.
    row: Vec<u8>,
}

impl Bench {
    async fn draw<S>(
        &mut self,
        (operation, store, along): (&'static str, &'static str, &'static str),
        stages: &mut [(u64, S)],
        round: impl AsyncFnMut(u64, &mut S) -> (Stretch, Stretch),
    ) -> Vec<Point> {
        self.rows.draw(Curve { operation, store, along }, self.pace.choose(7, 1), stages, round).await
    }

    /// The points of an axis; in a quick run only the first ones.
    fn axis<const N: usize>(&self, axis: [u64; N]) -> Vec<u64> {
        axis.into_iter().take(self.pace.choose(N, 2)).collect()
    }

    /// The pairs per client, so that all clients together send about as many messages as take a fifth of a second.
    fn pairs_in_memory(&self, in_flight: u64) -> u64 {
        (self.pace.choose(60_000, 600) / in_flight).max(1)
    }

    fn pairs_on_disk(&self, in_flight: u64) -> u64 {
        self.pace.choose((12_000 / in_flight).clamp(20, 250), 2)
    }

    // === In memory ===

    async fn in_flight_in_memory(&mut self) -> Vec<Verdict> {
        let bare = self.bare.clone();
        let mut verdicts = Vec::new();
        for (operation, is_read) in [("register", true), ("register-unread", false)] {
            let rig = Rig::in_memory_with(Held::apart(HELD_ELSEWHERE), is_read).await;
            let mut stages: Vec<_> =
                self.axis(IN_FLIGHT).into_iter().map(|n| (n, self.pairs_in_memory(n))).collect();
            let points = self
                .draw((operation, "memory", "in flight"), &mut stages, async |in_flight, pairs| {
                    let clients = apart(in_flight as usize);
                    (
                        timed_loop(&rig.registry, &clients, *pairs).await,
                        timed_loop(&bare, &clients, *pairs).await,
                    )
                })
                .await;
            rig.end().await;
            let median = if is_read {
                "median round trip in memory with one subscriber, over a bare one"
            } else {
                "median round trip in memory with no subscriber, over a bare one"
            };
            verdicts.push((median, points[0].median(), Goal::AtMost(1.5)));
            verdicts.push(("p99.9 of the same", points[0].p999(), Goal::AtMost(20.0)));
        }
        verdicts
    }

    /// The same with an actor on our shell that only answers: the part of a round trip that every actor has.
    async fn shell_in_memory(&mut self) {
        let bare = self.bare.clone();
        let (sample, running) = SampleActor::begin();
        let mut stages: Vec<_> =
            self.axis(IN_FLIGHT).into_iter().map(|n| (n, self.pairs_in_memory(n))).collect();
        self.draw(("answer", "memory", "in flight"), &mut stages, async |in_flight, pairs| {
            let clients = apart(in_flight as usize);
            (timed_loop(&sample, &clients, *pairs).await, timed_loop(&bare, &clients, *pairs).await)
        })
        .await;
        running.request_stop(StopMode::Stop);
        running.ended().await;
    }

    /// The same with clients on another thread, like a host program with a host on its own thread.
    async fn across_threads_in_memory(&mut self) -> Vec<Verdict> {
        let arbiter = Arbiter::new();
        let rig = RigElsewhere::on(&arbiter, Held::apart(HELD_ELSEWHERE)).await;
        let bare = Bare::start_in_arbiter(&arbiter.handle(), |_| Bare);
        let mut stages: Vec<_> =
            self.axis(IN_FLIGHT).into_iter().map(|n| (n, self.pairs_in_memory(n).div_ceil(4))).collect();
        let points = self
            .draw(("register-across", "memory", "in flight"), &mut stages, async |in_flight, pairs| {
                let clients = apart(in_flight as usize);
                (timed_loop(&rig.registry, &clients, *pairs).await, timed_loop(&bare, &clients, *pairs).await)
            })
            .await;
        rig.end().await;
        arbiter.stop();
        let what = "median round trip in memory from another thread, over a bare one";
        vec![(what, points[0].median(), Goal::AtMost(1.5))]
    }

    async fn held_in_memory(&mut self) -> Vec<Verdict> {
        let (bare, pairs) = (self.bare.clone(), self.pairs_in_memory(IN_FLIGHT_IN_MEMORY));
        let mut stages = Vec::new();
        for held in self.axis(HELD) {
            stages.push((held, Rig::in_memory(held).await));
        }
        let clients = apart(IN_FLIGHT_IN_MEMORY as usize);
        let points = self
            .draw(("register", "memory", "allocations"), &mut stages, async |_, rig| {
                (timed_loop(&rig.registry, &clients, pairs).await, timed_loop(&bare, &clients, pairs).await)
            })
            .await;
        end_all(stages).await;
        flatness("cost per message in memory, 100,000 held over 100", &points, 1.2)
    }

    async fn plugins_in_memory(&mut self) {
        let (bare, pairs) = (self.bare.clone(), self.pairs_in_memory(IN_FLIGHT_IN_MEMORY));
        let mut stages = Vec::new();
        for plugins in self.axis(PLUGINS) {
            let held = Held { registrations: HELD_AMONG_PLUGINS.max(plugins), plugins };
            stages.push((plugins, Rig::in_memory_with(held, true).await));
        }
        self.draw(("register", "memory", "plugins"), &mut stages, async |plugins, rig| {
            let clients = among(&held_plugins(plugins), IN_FLIGHT_IN_MEMORY as usize);
            (timed_loop(&rig.registry, &clients, pairs).await, timed_loop(&bare, &clients, pairs).await)
        })
        .await;
        end_all(stages).await;
    }

    async fn takeovers_in_memory(&mut self) {
        let (bare, times) = (self.bare.clone(), self.pace.choose(8_000, 50));
        let mut stages = Vec::new();
        for held in self.axis(HELD) {
            let rig = Rig::in_memory(held).await;
            let takeovers = Takeovers::among(held, &rig).await;
            stages.push((held, (rig, takeovers)));
        }
        self.draw(("takeover", "memory", "allocations"), &mut stages, async |_, (rig, takeovers)| {
            let ours = takeovers.run(rig, times).await;
            let newcomer = &takeovers.newcomers[0];
            (ours, Stretch::of(times, async || bare.deregister(departure(newcomer)).await).await)
        })
        .await;
        for (_, (rig, _)) in stages {
            rig.end().await;
        }
    }

    // === On disk ===

    async fn in_flight_on_disk(&mut self) -> Vec<Verdict> {
        let place = directory();
        let rig = Rig::on_disk(place.path(), HELD_ELSEWHERE).await;
        let mut redb = BareRedb::holding(HELD_ELSEWHERE, self.row.clone(), place.path());
        let mut stages: Vec<_> =
            self.axis(IN_FLIGHT).into_iter().map(|n| (n, self.pairs_on_disk(n))).collect();
        let points = self
            .draw(("register", "disk", "in flight"), &mut stages, async |in_flight, pairs| {
                side_by_side(&rig, &mut redb, &apart(in_flight as usize), *pairs).await
            })
            .await;
        rig.end().await;
        let point = IN_FLIGHT.iter().zip(&points).find(|(n, _)| **n == IN_FLIGHT_ON_DISK);
        let what = "messages on disk with 512 in flight, over redb alone in the same batches";
        point.map(|(_, point)| (what, point.rate(), Goal::AtLeast(0.7))).into_iter().collect()
    }

    async fn held_on_disk(&mut self) -> Vec<Verdict> {
        let pairs = self.pairs_on_disk(IN_FLIGHT_ON_DISK);
        let mut stages = Vec::new();
        for held in self.axis(HELD) {
            stages.push((held, OnDisk::holding(Held::apart(held), &self.row).await));
        }
        let clients = apart(IN_FLIGHT_ON_DISK as usize);
        let points = self
            .draw(("register", "disk", "allocations"), &mut stages, async |_, disk| {
                side_by_side(&disk.rig, &mut disk.redb, &clients, pairs).await
            })
            .await;
        for (_, disk) in stages {
            disk.rig.end().await;
        }
        flatness("cost per message on disk, 100,000 held over 100", &points, 1.3)
    }

    async fn plugins_on_disk(&mut self) {
        let pairs = self.pairs_on_disk(IN_FLIGHT_ON_DISK);
        let mut stages = Vec::new();
        for plugins in self.axis(PLUGINS) {
            let held = Held { registrations: HELD_AMONG_PLUGINS.max(plugins), plugins };
            stages.push((plugins, OnDisk::holding(held, &self.row).await));
        }
        self.draw(("register", "disk", "plugins"), &mut stages, async |plugins, disk| {
            let clients = among(&held_plugins(plugins), IN_FLIGHT_ON_DISK as usize);
            side_by_side(&disk.rig, &mut disk.redb, &clients, pairs).await
        })
        .await;
        for (_, disk) in stages {
            disk.rig.end().await;
        }
    }

    async fn takeovers_on_disk(&mut self) {
        let times = self.pace.choose(150, 4);
        let mut stages = Vec::new();
        for held in self.axis(HELD) {
            let disk = OnDisk::holding(Held::apart(held), &self.row).await;
            let takeovers = Takeovers::among(held, &disk.rig).await;
            stages.push((held, (disk, takeovers)));
        }
        self.draw(("takeover", "disk", "allocations"), &mut stages, async |_, (disk, takeovers)| {
            (takeovers.run(&disk.rig, times).await, disk.redb.batches(1, times))
        })
        .await;
        for (_, (disk, _)) in stages {
            disk.rig.end().await;
        }
    }
}

async fn end_all(stages: Vec<(u64, Rig)>) {
    for (_, rig) in stages {
        rig.end().await;
    }
}

/// The cost of a message with most allocations held, relative to the cost with a hundred.
fn flatness(what: &'static str, points: &[Point], bound: f64) -> Vec<Verdict> {
    let at = |held: u64| HELD.iter().zip(points).find(|(x, _)| **x == held).map(|(_, point)| point);
    let (Some(few), Some(many)) = (at(100), at(100_000)) else { return Vec::new() };
    let cost = few.ours_per_second().median() / many.ours_per_second().median();
    vec![(what, cost, Goal::AtMost(bound))]
}

fn held_plugins(plugins: u64) -> Vec<PluginKey> {
    (0..plugins).map(held_plugin).collect()
}

/// A registry on disk, and a redb with as many rows, on the same file system.
struct OnDisk {
    rig: Rig,
    redb: BareRedb,
    _place: TempDir,
}

impl OnDisk {
    async fn holding(held: Held, row: &[u8]) -> Self {
        let place = directory();
        let rig = Rig::on_disk_with(place.path(), held).await;
        let redb = BareRedb::holding(held.registrations, row.to_vec(), place.path());
        Self { rig, redb, _place: place }
    }
}

/// Measures clients with a registry on disk, and redb alone with as many messages in batches as large as ours.
async fn side_by_side(
    rig: &Rig,
    redb: &mut BareRedb,
    clients: &[Register],
    pairs_each: u64,
) -> (Stretch, Stretch) {
    let (messages, before) = (2 * pairs_each * clients.len() as u64, rig.commits());
    let ours = timed_loop(&rig.registry, clients, pairs_each).await;
    let batch = (messages / (rig.commits() - before)).max(1);
    (ours, redb.batches(batch, (messages / batch / 2).max(1)))
}

// === Takeover ===

/// New allocations of plugins that are already served, and a subscriber to the active allocations.
struct Takeovers {
    actives: Actives,
    newcomers: Vec<Register>,
}

impl Takeovers {
    async fn among(plugins: u64, rig: &Rig) -> Self {
        let actives = Actives::of(&rig.registry).await;
        let newcomers = (0..plugins.min(1_000)).map(|n| registration(held_plugin(n), "newcomer")).collect();
        Self { actives, newcomers }
    }

    /// Registers new allocations, which become active, and measures from their departure to the notification of the takeover.
    async fn run(&mut self, rig: &Rig, times: u64) -> Stretch {
        let Self { actives, newcomers } = self;
        let mut newcomers = newcomers.iter().cycle();
        let mut latencies = Samples::default();
        let begun = Instant::now();
        for newcomer in newcomers.by_ref().take(times as usize) {
            rig.registry.register(newcomer.clone()).await;
            actives.changed().await;
            let message = departure(newcomer);
            let asked = Instant::now();
            let answer = rig.registry.ask(message);
            let successor = actives.changed().await;
            latencies.push(nanos(asked.elapsed()));
            assert!(successor.as_str().starts_with("held-"), "the one that stood by takes over");
            answer.await.expect("the registry runs");
        }
        Stretch::new(2 * times, begun.elapsed(), latencies)
    }
}
