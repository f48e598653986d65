//! P4: killed at any instant, the file opens again and holds everything that was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use callboard_actors::persister::{Operation, Persister};
use tokio::time::timeout;

use crate::common::{Author, Player, play, play_paused};
use crate::disk::{Cut, Disk, Fault, Random, Unsynced};

/// How long a write is waited for before the power is checked.
const A_TRY: Duration = Duration::from_millis(100);

type Table = BTreeMap<Vec<u8>, Player>;

/// A fixed sequence of writes, and the contents of the table after each.
struct Script {
    writes: Vec<Vec<Operation>>,
    states: Vec<Table>,
}

/// Each write changes several players: it puts two and removes one, so that half a write would show.
fn script(length: u64) -> Script {
    let mut random = Random(7);
    let mut states = vec![Table::new()];
    let mut writes = Vec::new();
    for number in 0..length {
        let mut table = states[states.len() - 1].clone();
        let mut operations = Vec::new();
        for player in [Player::numbered(number), Player::numbered(number + 1_000)] {
            let key = (random.next() % 40).to_be_bytes().to_vec();
            operations.push(Operation::put(key.clone(), &player));
            table.insert(key, player);
        }
        let gone = (random.next() % 40).to_be_bytes().to_vec();
        operations.push(Operation::delete::<Player>(gone.clone()));
        table.remove(&gone);
        writes.push(operations);
        states.push(table);
    }
    Script { writes, states }
}

/// The knowledge of an owner when the power is gone.
struct Known {
    run: u64,
    acknowledged: usize,
}

/// Runs the script, in bursts of one to four writes, until its end or the cut. A write that the disk does not take is retried.
async fn perform(script: &Script, disk: &Disk, fault: Option<Fault>, directory: &Path) -> Known {
    let mut known = Known { run: 0, acknowledged: 0 };
    let Ok(persister) = disk.open(directory).await else { return known };
    known.run = persister.run().get();
    if let Some(fault) = fault {
        disk.fail(fault);
    }
    let mut author = Author::new("common", &persister);
    for burst in (1..=4).cycle() {
        let first = author.sequence;
        let writes = script.writes.iter().skip(known.acknowledged).take(burst);
        let count = writes.map(|operations| author.write(operations.clone())).count();
        let begun = known.acknowledged;
        while known.acknowledged < begun + count {
            let Ok(settled) = timeout(A_TRY, author.settled()).await else {
                if disk.is_powerless() {
                    return known;
                }
                continue;
            };
            settled.outcome.expect("a write that is tried again");
            known.acknowledged = begun + usize::try_from(settled.through - first).expect("a short script");
        }
        if known.acknowledged == script.writes.len() {
            break;
        }
    }
    persister.close().await.unwrap();
    known
}

async fn table_of(persister: &Persister) -> Table {
    let loaded = persister.load::<Player>().await.unwrap();
    assert!(loaded.damaged.is_empty(), "{:?}", loaded.damaged);
    loaded.rows.into_iter().collect()
}

/// Runs the script until the cut and checks the result for each choice of unsynced pages. Returns whether there was a cut at all.
fn survives(script: &Script, fault: Option<Fault>, cut: Cut, unsynced: &[Unsynced]) -> bool {
    let disk = Disk::default();
    let directory = tempfile::tempdir().unwrap();
    disk.cut_at(cut);
    let known = play_paused(perform(script, &disk, fault, directory.path()));
    for reached in unsynced {
        let survived = disk.after_the_cut(*reached);
        play(async {
            let persister = survived.open(directory.path()).await;
            let persister = persister.unwrap_or_else(|error| panic!("{cut:?}, {reached:?}: {error}"));
            assert!(persister.run().get() > known.run, "{cut:?}, {reached:?}: the run number went back");
            let table = table_of(&persister).await;
            let whole = script.states[known.acknowledged..].contains(&table);
            assert!(
                whole,
                "{cut:?}, {reached:?}: {} writes were acknowledged, found {table:?}",
                known.acknowledged
            );
            let mut author = Author::new("common", &persister);
            author.put(1, &Player::numbered(1));
            author.all_written().await;
        });
    }
    disk.is_powerless()
}

#[test]
fn p4_cut_at_every_sync_nothing_acknowledged_is_lost_and_nothing_is_there_by_half() {
    let script = script(45);
    let reached = [
        Unsynced::Nothing,
        Unsynced::Everything,
        Unsynced::Some(1),
        Unsynced::Some(2),
        Unsynced::Some(3),
        Unsynced::Some(4),
    ];
    let cuts = (1..).take_while(|sync| survives(&script, None, Cut::AtSync(*sync), &reached)).count();
    assert!(cuts > 20, "only {cuts} syncs in the whole play");
}

#[test]
fn p4_killed_before_every_single_write_nothing_acknowledged_is_lost() {
    let script = script(45);
    let reached = [Unsynced::Everything, Unsynced::Some(5)];
    let cuts = (1..).take_while(|write| survives(&script, None, Cut::AtWrite(*write), &reached)).count();
    assert!(cuts > 60, "only {cuts} writes in the whole play");
}

#[test]
fn p3_p4_cut_at_every_sync_of_a_disk_whose_syncs_fail_now_and_then_nothing_acknowledged_is_lost() {
    let script = script(45);
    let reached = [Unsynced::Nothing, Unsynced::Some(6)];
    for seed in 1..=2 {
        let fault = Some(Fault::SyncNowAndThen { seed });
        let cuts = (1..).take_while(|sync| survives(&script, fault, Cut::AtSync(*sync), &reached)).count();
        assert!(cuts > 40, "only {cuts} syncs in the whole play");
    }
}
