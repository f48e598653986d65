//! Tests the registry on the real database.

use std::path::Path;
use std::time::Duration;

use callboard_actors::persister::{DiskHealth, Options, Persister};
use callboard_actors::registry::{DurableStore, REGISTRATION_TABLE, Registered};
use callboard_actors::shell::{self, AskError, Drill, Notice, StopMode};
use callboard_actors::vocabulary::Generation;
use futures_util::FutureExt;
use redb::{Database, ReadableTable, TableDefinition};
use rustix::io::Errno;

use crate::disk::{Cut, Disk, Fault, Unsynced};
use crate::stage::{Fixture, register, settle_down, story, told};

const ZFS: &str = "csi-node/zfs";

/// One run of a host on a data directory.
struct Run {
    fixture: Fixture,
    store: DurableStore,
    persister: Persister,
    notices: shell::Notices,
}

impl Run {
    async fn begin(data_dir: &Path) -> Self {
        Self::on(Persister::open(Options::new(data_dir)).await.expect("it opens"))
    }

    fn on(persister: Persister) -> Self {
        let notices = shell::Notices::default();
        let store = DurableStore::new(&shell::Database::opened(persister.clone(), notices.clone()));
        Self { fixture: Fixture::on(store.clone()), store, persister, notices }
    }

    /// The actor ends and is started again by its supervisor, in the same run of the host.
    async fn start_again(&mut self) {
        self.fixture.running.kill();
        self.fixture.running.ended().await;
        self.fixture = Fixture::on(self.store.clone());
    }

    async fn end(self) {
        self.fixture.running.request_stop(StopMode::Detach);
        self.fixture.running.ended().await;
        self.persister.close().await.expect("it closes");
    }

    async fn generation(&self, key: &str) -> Generation {
        self.fixture.describe(key).await.active.expect("a plugin serves it").generation
    }
}

/// Changes the bytes of every record of a table behind the persister's back.
fn tamper(data_dir: &Path, table: &str, mut change: impl FnMut(&[u8], &mut Vec<u8>)) {
    let database = Database::open(data_dir.join("callboard.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table);
        let mut table = transaction.open_table(definition).unwrap();
        let rows: Vec<(Vec<u8>, Vec<u8>)> = table
            .iter()
            .unwrap()
            .map(|row| row.map(|(key, bytes)| (key.value().to_vec(), bytes.value().to_vec())).unwrap())
            .collect();
        assert!(!rows.is_empty(), "there is something to damage");
        for (key, mut bytes) in rows {
            change(&key, &mut bytes);
            table.insert(key.as_slice(), bytes.as_slice()).unwrap();
        }
    }
    transaction.commit().unwrap();
}

#[test]
fn reg_01_the_order_of_registrations_is_that_of_the_database_whichever_comes_back_first() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let run = Run::begin(directory.path()).await;
        for id in ["a", "b", "c"] {
            run.fixture.register(id, &[ZFS]).await;
        }
        let before = run.generation(ZFS).await;
        run.end().await;

        let run = Run::begin(directory.path()).await;
        for id in ["c", "a", "b"] {
            assert_eq!(run.fixture.register(id, &[ZFS]).await, Registered::Unchanged);
            assert_eq!(run.fixture.active(ZFS).await.as_deref(), Some("c"));
        }
        assert_eq!(run.fixture.listed().await, ["a", "b", "c"]);
        assert!(run.generation(ZFS).await > before, "a new instance has a new generation");
        run.fixture.deregister("c", &[ZFS]).await;
        assert_eq!(run.fixture.active(ZFS).await.as_deref(), Some("b"));
        run.end().await;
    });
}

/// Waits until the disk is sound.
async fn sound(persister: &Persister) {
    let mut health = persister.disk().watch();
    health.wait_for(|health| *health == DiskHealth::Sound).await.expect("it is there");
}

#[test]
fn p3_a_full_disk_refuses_promises_and_when_it_has_room_again_all_works() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let disk = Disk::default();
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        run.fixture.register("a", &[ZFS]).await;
        let mut feed = run.fixture.subscribe().await;
        disk.fail(Fault::Writes(Errno::NOSPC));
        let refused = run.fixture.registry.ask(register("b", &[ZFS])).await;
        assert!(matches!(&refused, Err(AskError::NotDurable { .. })), "{refused:?}");
        // That registration came before the fault was known, and is kept for the disk. From now on no registration is accepted.
        assert_eq!(told(&mut feed), ["b came", "csi-node/zfs: a -> b"]);
        for _ in 0..20 {
            let refused = run.fixture.registry.ask(register("c", &[ZFS])).await;
            assert!(matches!(&refused, Err(AskError::NotDurable { .. })), "{refused:?}");
            assert_eq!(run.fixture.active(ZFS).await.as_deref(), Some("b"));
            assert_eq!(run.fixture.listed().await, ["a", "b"]);
        }
        assert!(told(&mut feed).is_empty());
        disk.mend();
        sound(&run.persister).await;
        assert_eq!(run.fixture.register("b", &[ZFS]).await, Registered::Unchanged);
        assert_eq!(run.fixture.register("c", &[ZFS]).await, Registered::New);
        run.end().await;
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        assert_eq!(run.fixture.listed().await, ["a", "b", "c"]);
    });
}

#[test]
fn reg_02_on_a_full_disk_a_monolith_has_both_roles_or_none_and_leaves_at_once() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        const MONOLITH: [&str; 2] = ["csi-controller/zfs", "csi-node/zfs"];
        let disk = Disk::default();
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        assert!(run.fixture.listed().await.is_empty());
        disk.fail(Fault::Writes(Errno::NOSPC));
        assert!(run.fixture.registry.ask(register("m", &MONOLITH)).await.is_err());
        assert_eq!(run.fixture.listed().await, ["m", "m"], "both wait for the disk");
        assert!(run.fixture.registry.ask(register("n", &MONOLITH)).await.is_err());
        assert_eq!(run.fixture.listed().await, ["m", "m"]);
        disk.mend();
        sound(&run.persister).await;
        disk.fail(Fault::Writes(Errno::NOSPC));
        run.fixture.deregister("m", &MONOLITH).await;
        assert!(run.fixture.listed().await.is_empty(), "a deregistration waits for no disk");
        disk.mend();
        sound(&run.persister).await;
        run.end().await;
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        assert!(run.fixture.listed().await.is_empty());
    });
}

#[test]
fn p3_a_commit_that_fails_at_its_sync_is_refused_and_what_the_disk_holds_is_told() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let disk = Disk::default();
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        run.fixture.register("a", &[ZFS]).await;
        disk.fail(Fault::Syncs(Errno::IO));
        assert!(run.fixture.registry.ask(register("b", &[ZFS])).await.is_err());
        disk.mend();
        let listed = run.fixture.listed().await;
        assert_eq!(listed, ["a", "b"], "it is kept for the disk");
        sound(&run.persister).await;
        run.fixture.register("c", &[ZFS]).await;
        let listed = run.fixture.listed().await;
        run.end().await;
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        assert_eq!(run.fixture.listed().await, listed);
    });
}

#[test]
fn p4_wherever_the_power_is_cut_what_was_acknowledged_is_there_afterwards_in_order() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        for sync in 3..24 {
            let disk = Disk::default();
            let run = Run::on(disk.open(directory.path()).await.unwrap());
            disk.cut_at(Cut::AtSync(sync));
            let mut acknowledged = Vec::new();
            for number in 0..12 {
                let id = format!("a{number:02}");
                let asked = run.fixture.registry.ask(register(&id, &[ZFS]));
                match tokio::time::timeout(Duration::from_secs(5), asked).await {
                    Ok(Ok(Ok(_))) => acknowledged.push(id),
                    Ok(_) | Err(_) => break,
                }
            }
            run.fixture.running.kill();
            // It cannot be closed in order, since its disk has no power.
            let _ = run.persister.close().await;
            drop(run);
            for unsynced in [Unsynced::Nothing, Unsynced::Everything, Unsynced::Some(sync)] {
                let after = Run::on(disk.after_the_cut(unsynced).open(directory.path()).await.unwrap());
                let listed = after.fixture.listed().await;
                assert!(listed.starts_with(&acknowledged), "{acknowledged:?} of {listed:?}");
                assert!(listed.len() <= acknowledged.len() + 1, "{listed:?} after {acknowledged:?}");
                after.end().await;
            }
        }
    });
}

#[test]
fn res_08_a_damaged_registration_is_set_aside_with_a_notice_and_all_others_are_there() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let run = Run::begin(directory.path()).await;
        for id in ["a", "b", "c"] {
            run.fixture.register(id, &[ZFS]).await;
        }
        run.end().await;
        let mut place = 0;
        tamper(directory.path(), REGISTRATION_TABLE.0, |_, bytes| {
            place += 1;
            if place == 2 {
                bytes[9] ^= 1;
            }
        });

        let run = Run::begin(directory.path()).await;
        assert_eq!(run.fixture.listed().await, ["a", "c"]);
        let notices = run.notices.recent();
        assert!(
            matches!(&notices[..], [Notice::Quarantined { table, .. }] if table == REGISTRATION_TABLE.0),
            "{notices:?}"
        );
        assert_eq!(run.fixture.register("b", &[ZFS]).await, Registered::New, "its owner registers again");
        run.fixture.register("c", &[ZFS]).await;
        assert_eq!(run.fixture.active(ZFS).await.as_deref(), Some("b"), "and is the newest now");
        run.end().await;
        let run = Run::begin(directory.path()).await;
        assert_eq!(run.notices.recent(), [], "it is not reported again");
    });
}

#[test]
fn r1_no_generation_is_given_again_whatever_is_rebuilt_restarted_or_opened_anew() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let mut last = Generation::default();
        for _ in 0..2 {
            let mut run = Run::begin(directory.path()).await;
            for _ in 0..2 {
                // It leaves no trace on disk.
                run.fixture.register("a", &[ZFS]).await;
                let generation = run.generation(ZFS).await;
                assert!(generation > last, "{generation} was given after {last}");
                last = generation;
                run.fixture.deregister("a", &[ZFS]).await;
                run.fixture.registry.drill(Drill::Crash).expect("it runs");
                run.fixture.register("a", &[ZFS]).await;
                let rebuilt = run.generation(ZFS).await;
                assert!(rebuilt > last, "{rebuilt} was given after {last}");
                last = rebuilt;
                run.fixture.deregister("a", &[ZFS]).await;
                run.start_again().await;
            }
            run.end().await;
        }
    });
}

// === Two lives of one actor on one database ===

#[test]
fn what_a_killed_registry_handed_over_is_on_disk_before_the_next_one_reads() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let mut run = Run::begin(directory.path()).await;
        for round in 0..20 {
            run.fixture.listed().await;
            let steps = run.fixture.registry.vitals().steps;
            let mut asked = run.fixture.registry.ask(register(&format!("a{round:02}"), &[ZFS]));
            // The step is taken and its write handed over, but no caller has been answered.
            while run.fixture.registry.vitals().steps == steps {
                tokio::task::yield_now().await;
            }
            assert!((&mut asked).now_or_never().is_none());
            run.fixture.running.kill();
            run.fixture.running.ended().await;
            run = Run::on(run.persister);
            assert_eq!(run.fixture.listed().await.len(), round + 1);
            assert_eq!(run.fixture.active(ZFS).await, Some(format!("a{round:02}")), "in the same run");
        }
        run.end().await;
    });
}

#[test]
fn a_write_of_the_last_life_that_a_sick_disk_holds_is_read_by_the_next_life() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let disk = Disk::default();
        let mut run = Run::on(disk.open(directory.path()).await.unwrap());
        run.fixture.register("a", &[ZFS]).await;
        for round in 0..10 {
            disk.fail(Fault::Writes(Errno::NOSPC));
            let steps = run.fixture.registry.vitals().steps;
            let held = format!("a{round}");
            let mut asked = run.fixture.registry.ask(register(&held, &[ZFS]));
            while run.fixture.registry.vitals().steps == steps {
                tokio::task::yield_now().await;
            }
            assert!((&mut asked).now_or_never().is_none(), "its write is on its way");
            run.fixture.running.kill();
            // The next life requests its records behind that write, and its writes have the same numbers.
            run = Run::on(run.persister);
            let id = format!("b{round}");
            let asked = run.fixture.registry.ask(register(&id, &[ZFS]));
            settle_down().await;
            disk.mend();
            if asked.await.is_err() {
                sound(&run.persister).await;
                run.fixture.register(&id, &[ZFS]).await;
            }
            assert_eq!(run.fixture.active(ZFS).await, Some(id));
            assert!(run.fixture.listed().await.contains(&held));
        }
        let listed = run.fixture.listed().await;
        run.end().await;
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        assert_eq!(run.fixture.listed().await, listed);
    });
}

#[test]
fn a_registry_that_crashes_on_a_full_disk_answers_at_once_with_all_that_it_knew_shell_1a() {
    let directory = tempfile::tempdir().unwrap();
    story(|| async {
        let disk = Disk::default();
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        for id in ["a", "b", "c"] {
            run.fixture.register(id, &[ZFS]).await;
        }
        disk.fail(Fault::Writes(Errno::NOSPC));
        for id in ["c", "b"] {
            run.fixture.deregister(id, &[ZFS]).await;
            run.fixture.registry.drill(Drill::Crash).expect("it runs");
            let listed = tokio::time::timeout(Duration::from_secs(60), run.fixture.listed());
            let listed = listed.await.expect("it waits for no disk");
            assert!(!listed.contains(&id.to_owned()), "{id} has left: {listed:?}");
        }
        assert_eq!(run.persister.depth(), 2, "nothing of it is on disk");
        disk.mend();
        sound(&run.persister).await;
        run.fixture.register("d", &[ZFS]).await;
        assert_eq!(run.persister.depth(), 0, "who listens has heard of all writes");
        run.end().await;
        let run = Run::on(disk.open(directory.path()).await.unwrap());
        assert_eq!(run.fixture.listed().await, ["a", "d"]);
    });
}
