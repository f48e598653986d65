//! Persisters with deliberate faults: the search finds each under the law that forbids its fault.

use callboard_actors::persister::DiskFault;
use callboard_simulation::{DatabaseBounds, DatabaseWorld, Law, PersisterFault, Trouble};

use crate::is_found_out;

const NONE: DatabaseBounds = DatabaseBounds::NONE;
const WRITTEN: DatabaseBounds = DatabaseBounds { writes_each: 1, ..NONE };
const SHARED: DatabaseBounds = DatabaseBounds { owners: 2, ..WRITTEN };
const FULL: &[Trouble] = &[Trouble { after: 0, fault: DiskFault::Full }];
const FAILING: DatabaseBounds = DatabaseBounds { writes_each: 2, troubles: FULL, troubles_max: 1, ..NONE };

fn faulty(law: Law, bounds: DatabaseBounds, fault: PersisterFault) {
    is_found_out(law, &DatabaseWorld::new(bounds, Some(fault)), &DatabaseWorld::new(bounds, None));
}

#[test]
fn a_persister_that_answers_before_the_sync_breaks_p1() {
    faulty(Law::P1, WRITTEN, PersisterFault::AnswersBeforeTheSync);
}

#[test]
fn a_persister_that_drops_a_row_of_a_shared_commit_breaks_p1() {
    faulty(Law::P1, SHARED, PersisterFault::DropsARow);
}

#[test]
fn a_persister_that_carries_out_a_commit_in_another_order_breaks_p1() {
    faulty(Law::P1, SHARED, PersisterFault::ReversesACommit);
}

#[test]
fn a_persister_that_tells_one_of_two_who_share_a_commit_breaks_p1() {
    faulty(Law::P1, SHARED, PersisterFault::ForgetsAnOwner);
}

#[test]
fn a_persister_that_loads_a_table_without_its_first_record_breaks_p2() {
    faulty(Law::P2, DatabaseBounds { successors: 1, ..WRITTEN }, PersisterFault::LosesARecord);
}

#[test]
fn a_persister_that_says_nothing_of_a_damaged_record_breaks_p2() {
    faulty(Law::P2, DatabaseBounds { closes: 1, damages: 1, ..WRITTEN }, PersisterFault::OverlooksDamage);
}

#[test]
fn a_persister_that_goes_on_with_an_epoch_after_a_failure_breaks_p3() {
    faulty(Law::P3, FAILING, PersisterFault::GoesOnAfterAFailure);
}

#[test]
fn a_persister_that_tells_a_failure_twice_breaks_p3() {
    faulty(Law::P3, FAILING, PersisterFault::TellsTwice);
}

#[test]
fn a_persister_that_fails_for_good_breaks_p3() {
    faulty(Law::P3, FAILING, PersisterFault::StaysBroken);
}

#[test]
fn a_persister_that_takes_half_a_commit_breaks_p4() {
    const BROKEN: &[Trouble] =
        &[Trouble { after: 16, fault: DiskFault::Broken }, Trouble { after: 12, fault: DiskFault::Broken }];
    let cut = DatabaseBounds { troubles: BROKEN, troubles_max: 1, cuts: 1, ..WRITTEN };
    faulty(Law::P4, cut, PersisterFault::TakesHalves);
}

#[test]
fn a_persister_that_takes_half_of_what_was_merged_breaks_p4() {
    const fn after(changes: u64) -> Trouble {
        Trouble { after: changes, fault: DiskFault::Broken }
    }
    const BROKEN: &[Trouble] = &[after(8), after(10), after(12), after(14), after(16), after(18)];
    let cut =
        DatabaseBounds { troubles: BROKEN, troubles_max: 1, cuts: 1, merges: 1, writes_each: 2, ..NONE };
    faulty(Law::P4, cut, PersisterFault::TakesHalvesOfAMerge);
}

#[test]
fn a_persister_that_begins_the_same_run_again_breaks_p4() {
    faulty(Law::P4, DatabaseBounds { cuts: 1, ..WRITTEN }, PersisterFault::KeepsItsRun);
}
