//! The ledgers of volumes on the real database: what one life of a volume's actor writes, another life and the owner read (V1, V5, V14).

mod story;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::csi::{AccessMode, AccessType, CapacityRange, Context, VolumeCapability};
use callboard_actors::mounts::{BlockDevice, DeviceNumber};
use callboard_actors::persister::{Options, Persister};
use callboard_actors::shell::{
    Address, Database, EffectHandler, Notices, Running, Settings, Started, StopMode, Store, Ticket, Written,
    start,
};
use callboard_actors::vocabulary::{
    AllocationId, Attempt, Generation, PluginName, RunNumber, VolumeName, VolumeNamespace,
};
use callboard_actors::volume::{
    self, ABANDONED_TABLE, CLAIM_TABLE, Claim, ConfirmClaims, ControllerRoute, DescribeVolume, Expands,
    Failure, ForceRelease, ForceScope, Known, LOST_CLAIM_TABLE, Mark, NodeRoute, ObservedEnd, Order,
    OrderCall, OrderError, OrderResult, PlaceOrder, Release, Route, Seen, Usage, VOLUME_TABLE, Volume,
    VolumeCall, VolumeChange, VolumeConfig, VolumeImage, VolumeKey, VolumeLayout, VolumeNews, VolumeOptions,
    VolumeOutcome, VolumeSpec,
};
use callboard_actors::volumes::{self, KnownVolume, VolumesChange, VolumesImage};
use redb::{ReadableTable, TableDefinition};

use story::story;

const LONG: Duration = Duration::from_secs(60);

/// A plugin that stages and does what is requested, and the kernel below it; its calls by name.
#[derive(Clone, Default)]
struct Plugin {
    calls: Rc<RefCell<Vec<&'static str>>>,
    audits: Rc<RefCell<Vec<String>>>,
    /// Whether unpublishing hangs.
    is_stuck: bool,
    /// Whether unpublishing is refused.
    refuses: Rc<Cell<bool>>,
    /// Whether a look finds nothing.
    is_unmounted: Rc<Cell<bool>>,
}

impl EffectHandler<Volume> for Plugin {
    fn call(&mut self, call: VolumeCall) -> Started<VolumeOutcome> {
        let present = || {
            let device = BlockDevice { number: DeviceNumber { major: 7, minor: 3 }, sequence: None };
            Seen::Present(Mark::Device { mount: None, device })
        };
        self.calls.borrow_mut().extend(call.csi().map(|call| call.as_str()));
        let outcome = match call {
            VolumeCall::ReadRoute => {
                let node = NodeRoute {
                    generation: Generation::new(1),
                    node_id: None,
                    requires_controller: false,
                    stages: true,
                    knows_alpha_modes: false,
                    knows_mount_group: false,
                    expands: true,
                };
                let controller = ControllerRoute {
                    generation: Generation::new(1),
                    attaches: false,
                    expands: Expands::Online,
                    takes_snapshots: false,
                    modifies: false,
                    knows_alpha_modes: false,
                    takes_groups: false,
                };
                VolumeOutcome::Route(Route { node: Some(node), controller: Some(controller) })
            }
            VolumeCall::Look { .. } if self.is_unmounted.get() => VolumeOutcome::Looked(Seen::Nothing),
            VolumeCall::Look { .. } => VolumeOutcome::Looked(present()),
            VolumeCall::Stage(..) | VolumeCall::Publish(..) => VolumeOutcome::Node(Ok(()), present()),
            VolumeCall::Unpublish(..) if self.is_stuck => return Started::running(std::future::pending()),
            VolumeCall::Unpublish(..) if self.refuses.get() => {
                let failure = Failure { known: Known::Refused, reason: "not now".to_owned() };
                VolumeOutcome::Node(Err(failure), Seen::Unclear("it was not looked at".to_owned()))
            }
            VolumeCall::Unstage(..) | VolumeCall::Unpublish(..) => VolumeOutcome::Node(Ok(()), Seen::Nothing),
            VolumeCall::AwaitAudits(_) => VolumeOutcome::AuditsLeft,
            VolumeCall::Order(..) if self.is_stuck => return Started::running(std::future::pending()),
            VolumeCall::Order(_, _, call) => VolumeOutcome::Ordered(Ok(match call {
                OrderCall::Expand { range, .. } => {
                    OrderResult::Expanded { capacity_bytes: range.required_bytes, is_node_next: true }
                }
                OrderCall::TakeSnapshot { .. }
                | OrderCall::DeleteSnapshot { .. }
                | OrderCall::Modify { .. }
                | OrderCall::TakeGroup(_)
                | OrderCall::DescribeGroup { .. }
                | OrderCall::DeleteGroup { .. } => OrderResult::Nothing,
                OrderCall::Grow(args) => OrderResult::Grown { capacity_bytes: args.range.required_bytes },
            })),
            VolumeCall::Create(..)
            | VolumeCall::Delete(..)
            | VolumeCall::Attach(..)
            | VolumeCall::Detach(..) => VolumeOutcome::Controller(Ok(Context::new())),
        };
        Started::Done(outcome)
    }

    fn published(&mut self, news: &VolumeNews) {
        if let VolumeNews::Forced(forced) = news {
            self.audits.borrow_mut().extend(forced.left.iter().cloned());
        }
    }
}

fn spec(name: &str) -> Arc<VolumeSpec> {
    Arc::new(VolumeSpec {
        key: VolumeKey {
            namespace: VolumeNamespace::new("default").unwrap(),
            name: VolumeName::new(name).unwrap(),
        },
        plugin: PluginName::new("zfs").unwrap(),
        volume_id: format!("pool/{name}"),
        volume_context: Context::new(),
    })
}

fn allocation(id: &str) -> AllocationId {
    AllocationId::new(id).unwrap()
}

fn usage() -> Usage {
    let access_mode = AccessMode::MultiNodeMultiWriter;
    Usage { capability: VolumeCapability { access_type: AccessType::Block, access_mode }, read_only: false }
}

/// One run of a host on a data directory.
struct Run {
    persister: Persister,
    database: Database,
    notices: Notices,
}

/// One life of the actor of a volume.
struct Life {
    address: Address<Volume>,
    running: Running,
}

impl Run {
    async fn begin(data_dir: &Path) -> Self {
        let persister = Persister::open(Options::new(data_dir)).await.expect("it opens");
        let notices = Notices::default();
        Self { database: Database::opened(persister.clone(), notices.clone()), persister, notices }
    }

    fn live(&self, name: &str, life: u64, plugin: &Plugin) -> Life {
        let spec = spec(name);
        let config = VolumeConfig {
            layout: VolumeLayout::new(Path::new("/d"), &spec.plugin),
            boot_id: "boot".into(),
            run: self.database.run(),
            options: VolumeOptions { stop_within: Duration::from_secs(1), ..VolumeOptions::default() },
            spec: spec.clone(),
        };
        let address = Address::vacant(format!("volume {}", spec.key), 64);
        let store = volume::DurableStore::new(&self.database, spec.key.clone(), Attempt::new(life));
        let running = start(&address, config, plugin.clone(), store, Settings::default());
        Life { address, running }
    }

    async fn image(&self) -> VolumesImage {
        let mut store = volumes::DurableStore::new(&self.database);
        Store::<volumes::Volumes>::load(&mut store).await.expect("it can be read")
    }

    async fn ledger(&self, name: &str) -> VolumeImage {
        let mut store = volume::DurableStore::new(&self.database, spec(name).key.clone(), Attempt::new(99));
        store.load().await.expect("it can be read")
    }

    /// Waits until a ledger is empty.
    async fn is_empty(&self, name: &str) {
        let mut ledger = self.ledger(name).await;
        for _ in 0..1_000 {
            if ledger == VolumeImage::default() {
                return;
            }
            ledger = self.ledger(name).await;
        }
        panic!("it still holds {ledger:?}");
    }

    async fn end(self) {
        self.persister.close().await.expect("it closes");
    }
}

impl Life {
    async fn claim(&self, id: &str) {
        let claim = Claim { allocation: allocation(id), usage: usage(), within: LONG };
        self.address.ask(claim).await.expect("it is answered").expect("it can be claimed");
    }

    async fn release(&self, id: &str, within: Duration) -> Result<volume::Released, volume::ReleaseError> {
        let observed = ObservedEnd::Exited;
        let release = Release { allocation: allocation(id), observed, within };
        self.address.ask(release).await.expect("it is answered")
    }

    async fn end(self) {
        self.running.request_stop(StopMode::Detach);
        self.running.ended().await;
    }

    async fn kill(self) {
        self.running.kill();
        self.running.ended().await;
    }
}

/// Loses every row of a table behind the persister's back.
fn lose(data_dir: &Path, table: &str) {
    let database = redb::Database::open(data_dir.join("callboard.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table);
        let mut table = transaction.open_table(definition).unwrap();
        let damaged: Vec<_> = table.iter().unwrap().map(|row| row.unwrap().0.value().to_vec()).collect();
        assert!(!damaged.is_empty(), "there is something to damage");
        for key in damaged {
            table.insert(key.as_slice(), b"damaged".as_slice()).unwrap();
        }
    }
    transaction.commit().unwrap();
}

#[test]
fn v5_v14_what_one_life_has_set_up_another_one_finds_and_undoes() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let plugin = Plugin::default();
        let run = Run::begin(directory.path()).await;
        let (data, neighbour) = (run.live("data", 1, &plugin), run.live("data2", 2, &plugin));
        data.claim("a1").await;
        data.claim("a2").await;
        neighbour.claim("a1").await;
        // The same run starts another actor after a crash.
        data.kill().await;
        let data = run.live("data", 3, &plugin);
        data.claim("a1").await;
        assert_eq!(data.release("a2", LONG).await.unwrap().others, [allocation("a1")]);
        data.end().await;
        neighbour.end().await;
        run.end().await;

        let run = Run::begin(directory.path()).await;
        let in_ledger = run.image().await.in_ledger;
        assert_eq!(in_ledger, [spec("data"), spec("data2")]);
        assert_eq!(run.ledger("data").await.claims.len(), 1, "a neighbour has rows of its own");
        plugin.calls.borrow_mut().clear();
        let data = run.live("data", 1, &plugin);
        let settled = data
            .address
            .ask(ConfirmClaims { living: Arc::default(), unclear: Arc::default() })
            .await
            .unwrap();
        assert_eq!(settled.released, [allocation("a1")]);
        assert!(data.release("a1", LONG).await.unwrap().others.is_empty());
        assert_eq!(*plugin.calls.borrow(), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
        assert_eq!(run.ledger("data").await, VolumeImage::default());
        assert_eq!(run.image().await.in_ledger, [spec("data2")]);
        data.end().await;
        run.end().await;
    });
}

#[test]
fn res_08_v5_a_volume_whose_row_is_damaged_is_found_and_undone_by_the_rows_of_its_claims() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let plugin = Plugin::default();
        let run = Run::begin(directory.path()).await;
        let data = run.live("data", 1, &plugin);
        data.claim("a1").await;
        data.end().await;
        run.end().await;
        lose(directory.path(), VOLUME_TABLE.0);

        let run = Run::begin(directory.path()).await;
        // The host does not know the volume, and the row that names it is lost.
        let image = run.image().await;
        assert_eq!((image.known, image.in_ledger), (Vec::new(), vec![spec("data")]));
        let told: Vec<_> = run.notices.recent().iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|notice| notice.contains(VOLUME_TABLE.0)), "{told:?}");
        plugin.calls.borrow_mut().clear();
        let data = run.live("data", 1, &plugin);
        assert!(data.release("a1", LONG).await.unwrap().was_held);
        assert_eq!(*plugin.calls.borrow(), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
        data.end().await;
        run.end().await;
    });
}

#[test]
fn v8_v14_res_08_a_volume_with_a_damaged_claim_stays_set_up_until_that_claim_is_released() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let plugin = Plugin::default();
        let run = Run::begin(directory.path()).await;
        let data = run.live("data", 1, &plugin);
        data.claim("a1").await;
        data.end().await;
        run.end().await;
        lose(directory.path(), CLAIM_TABLE.0);
        plugin.calls.borrow_mut().clear();

        // The owner reads the row first and sets it aside; then the volume reads, then another run; then the set-aside row is damaged too.
        let run = Run::begin(directory.path()).await;
        assert_eq!(run.image().await.in_ledger, [spec("data")]);
        let lost = run.ledger("data").await.lost;
        assert_eq!(lost, [allocation("a1")].into());
        run.end().await;
        lose(directory.path(), LOST_CLAIM_TABLE.0);
        let run = Run::begin(directory.path()).await;
        assert_eq!(run.image().await.in_ledger, [spec("data")]);
        run.end().await;
        let run = Run::begin(directory.path()).await;
        let data = run.live("data", 1, &plugin);
        data.address.ask(ConfirmClaims { living: Arc::default(), unclear: Arc::default() }).await.unwrap();
        let status = data.address.ask(DescribeVolume).await.unwrap();
        assert_eq!((status.stage, status.claims[0].publish), ("up", "lost"), "{status}");
        let claim = Claim { allocation: allocation("a2"), usage: usage(), within: LONG };
        let refused = data.address.ask(claim).await.unwrap().unwrap_err().to_string();
        assert!(refused.contains("a1") && refused.contains("damaged"), "{refused}");
        assert!(plugin.calls.borrow().is_empty(), "{:?}", plugin.calls);

        // Where it was published is known but for whether it reads: both are undone, and what is below stays while that fails (C131).
        plugin.refuses.set(true);
        let pending = data.release("a1", Duration::from_secs(1)).await.unwrap_err().to_string();
        assert!(pending.contains("from the claim of a1; NodeUnpublishVolume"), "{pending}");
        assert!(
            plugin.calls.borrow().iter().all(|call| *call == "NodeUnpublishVolume"),
            "{:?}",
            plugin.calls
        );
        data.end().await;
        run.end().await;
        lose(directory.path(), ABANDONED_TABLE.0);

        // Damaged rows do not say whether the claim was released: its targets are looked at before anything is called (V8).
        plugin.calls.borrow_mut().clear();
        let run = Run::begin(directory.path()).await;
        let data = run.live("data", 1, &plugin);
        let error = data.address.ask(DescribeVolume).await.unwrap().error.clone();
        assert!(error.as_ref().is_some_and(|error| error.contains("which was not released")), "{error:?}");
        assert!(plugin.calls.borrow().is_empty(), "{:?}", plugin.calls);

        // A release settles that, in whichever run it arrives. Each target is undone once more when nothing is mounted there.
        plugin.is_unmounted.set(true);
        let released = data.release("a1", LONG).await.unwrap();
        assert!(released.others.is_empty(), "{released:?}");
        let calls = [["NodeUnpublishVolume"; 4].as_slice(), &["NodeUnstageVolume"]].concat();
        assert_eq!(*plugin.calls.borrow(), calls);
        assert!(plugin.audits.borrow()[0].contains("per-alloc/a1/default/data"), "{:?}", plugin.audits);
        run.is_empty("data").await;
        data.end().await;
        run.end().await;
    });
}

#[test]
fn res_08_a_damaged_claim_of_a_volume_whose_row_is_damaged_too_is_found_by_what_the_host_knows() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let plugin = Plugin::default();
        let run = Run::begin(directory.path()).await;
        let mut store = volumes::DurableStore::new(&run.database);
        Store::<volumes::Volumes>::load(&mut store).await.unwrap();
        let known = VolumesChange::Keep(Arc::new(KnownVolume::new(spec("data"))));
        assert!(matches!(store.write(Ticket { epoch: 1, sequence: 1 }, known), Written::Later));
        let data = run.live("data", 1, &plugin);
        data.claim("a1").await;
        data.end().await;
        run.end().await;
        lose(directory.path(), VOLUME_TABLE.0);
        lose(directory.path(), CLAIM_TABLE.0);

        for _ in 0..2 {
            let run = Run::begin(directory.path()).await;
            assert_eq!(run.image().await.in_ledger, [spec("data")]);
            run.end().await;
        }
    });
}

#[test]
fn the_first_life_of_a_volume_begins_with_what_its_owner_read_and_no_later_one_does_v5() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let plugin = Plugin::default();
        let run = Run::begin(directory.path()).await;
        for (name, life) in [("data", 1), ("more", 2)] {
            let volume = run.live(name, life, &plugin);
            volume.claim("a1").await;
            volume.claim("a2").await;
            volume.end().await;
        }
        run.end().await;

        let run = Run::begin(directory.path()).await;
        let mut owner = volumes::DurableStore::new(&run.database);
        Store::<volumes::Volumes>::load(&mut owner).await.unwrap();
        let mut data = owner.ledger(&spec("data").key, Attempt::new(1));
        let before = data.load().await.unwrap();
        assert_eq!((&before, before.claims.len()), (&run.ledger("data").await, 2));
        let forget = || VolumeChange::ForgetClaim(allocation("a1"));
        data.write(Ticket { epoch: 1, sequence: 1 }, forget());
        assert_eq!(data.load().await.unwrap().claims.len(), 1, "its actor was rebuilt");
        let mut next = owner.ledger(&spec("data").key, Attempt::new(2));
        assert_eq!(next.load().await.unwrap().claims.len(), 1, "its actor was started again");

        // An owner that is rebuilt while actors write to the ledgers keeps no ledger that the next life could take.
        let mut more = volume::DurableStore::new(&run.database, spec("more").key.clone(), Attempt::new(3));
        more.load().await.unwrap();
        more.write(Ticket { epoch: 1, sequence: 1 }, forget());
        Store::<volumes::Volumes>::load(&mut owner).await.unwrap();
        let mut more = owner.ledger(&spec("more").key, Attempt::new(4));
        assert_eq!(more.load().await.unwrap().claims.len(), 1);
        run.end().await;
    });
}

#[test]
fn v9_the_audit_of_a_forced_release_is_kept_until_it_is_published() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let plugin = Plugin { is_stuck: true, ..Plugin::default() };
        let run = Run::begin(directory.path()).await;
        let data = run.live("data", 1, &plugin);
        data.claim("a1").await;
        assert!(data.release("a1", Duration::from_secs(1)).await.is_err(), "unpublishing hangs");
        let force = ForceRelease { scope: ForceScope::Everything, reason: "kim".to_owned() };
        let forced = data.address.ask(force).await.unwrap().expect("it can be forced");
        assert_eq!(*plugin.audits.borrow(), forced.left);
        run.is_empty("data").await;
        data.kill().await;

        // Another host is killed before it can publish its audit.
        let audit = volume::Audit { number: 1, spec: spec("data"), forced: forced.clone() };
        let mut store = volume::DurableStore::new(&run.database, spec("data").key.clone(), Attempt::new(2));
        store.load().await.unwrap();
        let force =
            VolumeChange::Force { claims: vec![], volume: None, orders: vec![], abandoned: vec![], audit };
        assert!(matches!(store.write(Ticket { epoch: 1, sequence: 1 }, force), Written::Later));
        assert_eq!(run.ledger("data").await.audits.len(), 1);
        run.end().await;

        let run = Run::begin(directory.path()).await;
        assert_eq!(run.image().await.in_ledger, [spec("data")], "it needs an actor, to publish its audit");
        plugin.audits.borrow_mut().clear();
        let data = run.live("data", 1, &plugin);
        run.is_empty("data").await;
        assert_eq!(*plugin.audits.borrow(), forced.left);
        data.end().await;
        run.end().await;
    });
}

#[test]
fn an_order_is_in_the_ledger_until_it_is_done_and_a_killed_host_goes_on_with_it_v5() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let order = Order::Expand { range: CapacityRange { required_bytes: 20, limit_bytes: 0 } };
        let run = Run::begin(directory.path()).await;
        let mut store = volumes::DurableStore::new(&run.database);
        Store::<volumes::Volumes>::load(&mut store).await.unwrap();
        let known = VolumesChange::Keep(Arc::new(KnownVolume::new(spec("data"))));
        assert!(matches!(store.write(Ticket { epoch: 1, sequence: 1 }, known), Written::Later));
        let data = run.live("data", 1, &Plugin { is_stuck: true, ..Plugin::default() });
        let placed = PlaceOrder { order: order.clone(), within: Duration::from_millis(10) };
        let pending = data.address.ask(placed.clone()).await.unwrap().expect_err("the plugin hangs");
        assert!(matches!(pending, OrderError::Pending { .. }), "{pending}");
        assert_eq!(run.ledger("data").await.orders.len(), 1);
        data.kill().await;
        run.end().await;

        let run = Run::begin(directory.path()).await;
        assert_eq!(run.image().await.in_ledger, [spec("data")], "it needs an actor, to go on");
        let plugin = Plugin::default();
        let data = run.live("data", 1, &plugin);
        let placed = PlaceOrder { within: LONG, ..placed };
        data.address.ask(placed).await.unwrap().expect("it is expanded");
        let [order] = &run.ledger("data").await.orders[..] else { panic!("it waits for a claim") };
        assert_eq!(order.as_str(), "up-at-controller");
        data.claim("a1").await;
        data.release("a1", LONG).await.expect("it is released");
        run.is_empty("data").await;
        assert_eq!(plugin.calls.borrow()[..2], ["ControllerExpandVolume", "NodeStageVolume"]);
        assert!(plugin.calls.borrow().contains(&"NodeExpandVolume"));
        data.end().await;
        run.end().await;
    });
}

#[test]
fn what_is_known_is_there_in_the_next_run_and_what_is_forgotten_is_not() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async move {
        let run = Run::begin(directory.path()).await;
        let mut store = volumes::DurableStore::new(&run.database);
        Store::<volumes::Volumes>::load(&mut store).await.unwrap();
        let known = |name| Arc::new(KnownVolume::new(spec(name)));
        let changes = [
            VolumesChange::Keep(known("a")),
            VolumesChange::Keep(known("b")),
            VolumesChange::Delete(spec("a").key.clone()),
            VolumesChange::Delete(spec("b").key.clone()),
            VolumesChange::Keep(known("c")),
            VolumesChange::Delete(spec("c").key.clone()),
            VolumesChange::Stay(spec("c").key.clone()),
            VolumesChange::Forget(spec("a").key.clone()),
        ];
        for (sequence, change) in (1..).zip(changes) {
            assert!(matches!(store.write(Ticket { epoch: 1, sequence }, change), Written::Later));
        }
        run.end().await;
        let run = Run::begin(directory.path()).await;
        let (known, deleting) = (vec![known("b"), known("c")], [spec("b").key.clone()].into());
        assert_eq!(run.image().await, VolumesImage { known, deleting, ..VolumesImage::default() });
        run.end().await;
    });
}

#[test]
fn stores_in_memory_outlive_their_actors_as_a_database_does() {
    story(|| async {
        let ledgers = volume::MemoryLedgers::default();
        let owner = volumes::MemoryStore::new(ledgers.clone());
        let plugin = Plugin::default();
        for life in 1..=2_u64 {
            let spec = spec("data");
            let config = VolumeConfig {
                layout: VolumeLayout::new(Path::new("/d"), &spec.plugin),
                boot_id: "boot".into(),
                run: RunNumber::new(life),
                options: VolumeOptions::default(),
                spec: spec.clone(),
            };
            let address = Address::vacant("volume", 64);
            let store = ledgers.store(spec.key.clone());
            let running = start(&address, config, plugin.clone(), store, Settings::default());
            let life_of = Life { address, running };
            if life == 1 {
                life_of.claim("a1").await;
                let image = Store::<volumes::Volumes>::load(&mut owner.clone()).await.unwrap();
                assert_eq!(image.in_ledger, [spec]);
            } else {
                assert!(life_of.release("a1", LONG).await.unwrap().was_held);
                assert!(ledgers.images().is_empty(), "{:?}", ledgers.images());
            }
            life_of.end().await;
        }
    });
}
