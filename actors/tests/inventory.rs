//! Tests the inventory of a node, collected from real plugins on real sockets, under virtual time.

mod fixture;

use std::time::Duration;

use callboard_actors::instances::InstancesOptions;
use callboard_actors::inventory::{
    self, AwaitFirst, Besides, FirstSummary, Inventory, InventoryNews, InventoryOptions, InventoryView,
    TakeInventory,
};
use callboard_actors::registry::MemoryStore;
use callboard_actors::shell::{Address, FeedItem, Running, StopMode, Subscription};
use callboard_actors::vocabulary::Health;
use tokio::time::Instant;

use fixture::{Act, Fixture, LONG, Plugin, allocation, node, story};

const SECOND: Duration = Duration::from_secs(1);

/// The inventory of a fixture.
struct Books {
    address: Address<Inventory>,
    running: Running,
    feed: Subscription<InventoryNews, InventoryView>,
}

impl Books {
    fn open(fixture: &Fixture) -> Self {
        let address = Address::vacant("inventory", 64);
        let options = InventoryOptions::default();
        let running = inventory::start(
            &address,
            fixture.instances.clone(),
            Besides::default(),
            options,
            fixture.settings.clone(),
        );
        let feed = address.subscribe("test", 64).expect("it runs");
        Self { address, running, feed }
    }

    async fn next(&mut self) -> InventoryNews {
        loop {
            let item = tokio::time::timeout(LONG, self.feed.next()).await.expect("news come");
            if let FeedItem::Change { news, .. } = item.expect("the inventory lives") {
                return news;
            }
        }
    }

    fn rest(&mut self) -> Vec<InventoryNews> {
        let items = std::iter::from_fn(|| self.feed.try_next());
        items
            .filter_map(|item| match item {
                FeedItem::Change { news, .. } => Some(news),
                FeedItem::Snapshot { .. } | FeedItem::Lagged { .. } => None,
            })
            .collect()
    }

    async fn first(&self) -> FirstSummary {
        self.address.ask(AwaitFirst).await.expect("it runs").first.expect("the wait is over")
    }

    async fn take(&self) -> InventoryView {
        self.address.ask(TakeInventory).await.expect("it runs")
    }

    async fn close(self, fixture: Fixture) {
        self.running.request_stop(StopMode::Stop);
        self.running.ended().await;
        fixture.stop_instances().await;
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[test]
fn a_node_without_plugins_waits_for_nothing_hlt_06() {
    story(|| async {
        let fixture = Fixture::open();
        let mut books = Books::open(&fixture);
        let began = Instant::now();
        assert_eq!(books.next().await, InventoryNews::First(vec![], FirstSummary::default()));
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        assert_eq!(books.first().await, FirstSummary::default());
        books.close(fixture).await;
    });
}

#[test]
fn the_first_fingerprints_are_told_once_and_as_soon_as_all_are_known_n1() {
    story(|| async {
        let fixture = Fixture::open();
        let (good, bad) = (node("good"), node("bad"));
        let (a, b) = (fixture.socket("a.sock"), fixture.socket("b.sock"));
        let _good = Plugin::new("good.example").serve(&a);
        let plugin = Plugin::new("bad.example");
        plugin.on("Probe", Act::Fail(tonic::Code::FailedPrecondition));
        let _bad = plugin.serve(&b);
        fixture.register(&good, "a", &a).await;
        fixture.register(&bad, "b", &b).await;
        let mut books = Books::open(&fixture);
        let began = Instant::now();
        let InventoryNews::First(offers, summary) = books.next().await else {
            panic!("the first comes first")
        };
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        assert_eq!(offers.len(), 2);
        assert_eq!(summary.healthy, [good]);
        assert_eq!((summary.unhealthy.len(), &summary.unhealthy[0].0), (1, &bad));
        assert!(summary.unhealthy[0].1.contains("FAILED_PRECONDITION"), "{summary:?} (C041)");
        books.close(fixture).await;
    });
}

#[test]
fn after_fifty_seconds_the_first_fingerprints_are_told_without_those_who_have_not_answered_n1_n2() {
    story(|| async {
        let store = MemoryStore::default();
        let (late, lost) = (node("late"), node("lost"));
        let former = Fixture::open_with(InstancesOptions::default(), &store);
        let socket = former.socket("late.sock");
        former.register(&late, "a", &socket).await;
        former.register(&lost, "b", &former.socket("lost.sock")).await;
        former.stop_instances().await;
        former.registry_running.kill();
        former.registry_running.ended().await;

        let fixture = Fixture::open_with(InstancesOptions::default(), &store);
        let mut books = Books::open(&fixture);
        let began = Instant::now();
        let plugin = Plugin::new("late.example");
        plugin.on("Probe", Act::NotReady);
        let _late = plugin.serve(&socket);
        fixture.register(&late, "a", &socket).await;
        let summary = books.first().await;
        assert_eq!(began.elapsed().as_secs(), 50);
        assert_eq!(summary, FirstSummary { no_answer: vec![late, lost], ..FirstSummary::default() });
        assert!(matches!(books.next().await, InventoryNews::First(offers, _) if offers.len() == 1));
        books.close(fixture).await;
    });
}

#[test]
fn an_idle_node_tells_nothing_for_an_hour_scl_05() {
    story(|| async {
        let fixture = Fixture::open();
        let socket = fixture.socket("a.sock");
        let _serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&node("zfs"), "a", &socket).await;
        let mut books = Books::open(&fixture);
        books.first().await;
        books.rest();
        pass(3_600).await;
        assert_eq!(books.rest(), []);
        books.close(fixture).await;
    });
}

#[test]
fn a_restart_within_the_grace_is_no_news_and_beyond_it_exactly_one_removal_hlt_08() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let mut books = Books::open(&fixture);
        books.first().await;
        books.rest();

        fixture.deregister(&zfs, "a").await;
        serving.kill();
        pass(10).await;
        let held = books.take().await;
        assert!(held.offers[0].restarting && held.offers[0].health == Health::Healthy, "{held:?}");
        let serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        pass(60).await;
        assert_eq!(books.rest(), [], "a short restart is not published");
        assert!(!books.take().await.offers[0].restarting);

        fixture.deregister(&zfs, "a").await;
        serving.kill();
        pass(120).await;
        let news = books.rest();
        assert!(
            matches!(&news[..], [InventoryNews::Removed(offer)] if offer.health == Health::Gone),
            "{news:?}"
        );
        assert_eq!(books.take().await.offers, []);
        books.close(fixture).await;
    });
}

#[test]
fn a_successor_that_offers_something_else_is_told_of_when_it_is_healthy_hlt_08() {
    story(|| async {
        let fixture = Fixture::open();
        let zfs = node("zfs");
        let (a, b) = (fixture.socket("a.sock"), fixture.socket("b.sock"));
        let _older = Plugin::new("zfs.example").serve(&a);
        let newer = Plugin::new("zfs.example");
        newer.calls_itself("zfs.example", "2.0.0");
        newer.on("Probe", Act::NotReady);
        let _newer = newer.serve(&b);
        fixture.register(&zfs, "a", &a).await;
        let mut books = Books::open(&fixture);
        books.first().await;
        books.rest();
        fixture.register(&zfs, "b", &b).await;
        pass(5).await;
        assert_eq!(books.rest(), [], "it is only starting");
        newer.on("Probe", Act::Answer);
        let InventoryNews::Changed(offer) = books.next().await else { panic!("it is another offer") };
        assert_eq!((offer.allocation, offer.health), (Some(allocation("b")), Health::Healthy));
        pass(60).await;
        assert_eq!(books.rest(), []);
        books.close(fixture).await;
    });
}

#[test]
fn a_change_of_health_is_told_once_each_way_hlt_07() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let mut books = Books::open(&fixture);
        books.first().await;
        books.rest();
        plugin.on("Probe", Act::Fail(tonic::Code::Internal));
        pass(300).await;
        plugin.on("Probe", Act::Answer);
        pass(300).await;
        let news = books.rest();
        let words: Vec<_> = news
            .iter()
            .map(|news| match news {
                InventoryNews::Changed(offer) => offer.health.as_str(),
                InventoryNews::First(..) => "first",
                InventoryNews::Removed(_) => "removed",
                InventoryNews::VolumesUsed { .. } => "volumes",
            })
            .collect();
        assert_eq!(words, ["unhealthy", "healthy"]);
        books.close(fixture).await;
    });
}
