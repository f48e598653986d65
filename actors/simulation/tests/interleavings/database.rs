//! The queue and the store of the persister with two actors that write, on a disk in memory: every order of writes, commits, notifications,
//! failures of each kind at each change of the disk, power cuts at each of them, openings, successors and the end.

use callboard_actors::persister::DiskFault;
use callboard_simulation::{DatabaseBounds, DatabaseWorld, Trouble};

use crate::{is_full, try_all};

const NONE: DatabaseBounds = DatabaseBounds::NONE;
const WRITTEN: DatabaseBounds = DatabaseBounds { writes_each: 1, ..NONE };
const SHARED: DatabaseBounds = DatabaseBounds { owners: 2, ..WRITTEN };

/// Each kind of fault, which begins at once.
const AT_ONCE: &[Trouble] = &[
    Trouble { after: 0, fault: DiskFault::Full },
    Trouble { after: 0, fault: DiskFault::ReadOnly },
    Trouble { after: 0, fault: DiskFault::Broken },
    Trouble { after: 0, fault: DiskFault::Syncs },
];

/// The disk breaks before each of this number of changes: with a cut after it, the power is cut there.
const fn breaks<const CHANGES: usize>() -> [Trouble; CHANGES] {
    let mut troubles = [Trouble { after: 0, fault: DiskFault::Broken }; CHANGES];
    let mut at = 0;
    while at < CHANGES {
        troubles[at].after = at as u64;
        at += 1;
    }
    troubles
}

/// No commit of so small a database changes the disk more often.
const IN_A_COMMIT: &[Trouble] = &breaks::<8>();

/// And no opening or closing changes it more often than this.
const ANYWHERE: &[Trouble] = &breaks::<32>();

fn holds(what: &str, small: DatabaseBounds, full: DatabaseBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &DatabaseWorld::new(bounds, None));
}

#[test]
fn every_order_of_writes_of_two_actors_shares_commits_and_tells_each_of_its_own_p1() {
    let large = DatabaseBounds { large: 1, ..SHARED };
    holds("commits are shared", large, DatabaseBounds { writes_each: 2, ..large });
    let successors = DatabaseBounds { successors: 1, ..SHARED };
    holds(
        "another actor takes the place of one",
        successors,
        DatabaseBounds { writes_each: 2, ..successors },
    );
}

#[test]
fn every_order_of_a_failing_disk_tells_its_owners_once_and_goes_on_when_mended_p3() {
    let fails = DatabaseBounds { writes_each: 2, troubles: AT_ONCE, troubles_max: 1, ..NONE };
    holds("a disk fails", fails, DatabaseBounds { owners: 2, ..fails });
    let again = DatabaseBounds { writes_each: 2, troubles_max: 2, ..fails };
    if is_full() {
        holds("a disk fails twice", again, again);
    }
}

#[test]
fn every_point_at_which_the_power_is_cut_leaves_what_was_acknowledged_p4() {
    let cut = DatabaseBounds { troubles: IN_A_COMMIT, troubles_max: 1, cuts: 1, ..WRITTEN };
    let more = DatabaseBounds { troubles: ANYWHERE, writes_each: 2, cuts: 2, ..cut };
    holds("the power is cut", cut, more);
    if is_full() {
        let shared = DatabaseBounds { owners: 2, ..cut };
        holds("the power is cut below two actors", shared, shared);
    }
}

#[test]
fn every_order_of_writes_that_are_merged_brings_them_to_disk_at_once_shell_1a_p1_p4() {
    let merged = DatabaseBounds { merges: 1, writes_each: 2, ..SHARED };
    holds("writes are merged", merged, DatabaseBounds { merges: 2, successors: 1, ..merged });
    let fails = DatabaseBounds { troubles: AT_ONCE, troubles_max: 1, writes_each: 3, owners: 1, ..merged };
    holds("writes that are merged fail", fails, DatabaseBounds { owners: 2, writes_each: 2, ..fails });
    let cut = DatabaseBounds { troubles: IN_A_COMMIT, troubles_max: 1, cuts: 1, owners: 1, ..merged };
    holds("the power is cut below writes that are merged", cut, DatabaseBounds { writes_each: 3, ..cut });
}

#[test]
fn every_order_of_a_close_and_a_damaged_record_loads_the_rest_p2() {
    let closed = DatabaseBounds { writes_each: 2, closes: 1, damages: 1, ..NONE };
    holds("a closed database is damaged", closed, DatabaseBounds { owners: 2, successors: 1, ..closed });
    let closing = DatabaseBounds { writes_each: 2, closes: 1, successors: 1, ..NONE };
    holds("a closed database has successors", closing, closing);
}
