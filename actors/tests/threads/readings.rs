//! Model checks threads that request one reading at once.

use shuttle::thread;

use crate::mounts::reading::Reading;
use crate::sync::{Arc, Mutex};
use crate::under_many_schedules;

/// The table that is read, and how often it was read.
#[derive(Default)]
struct Table {
    mounts: Vec<u32>,
    readings: u32,
}

/// Mounts something, and requests the table.
fn mount_and_read(number: u32, table: &Mutex<Table>, reading: &Reading<Vec<u32>>) {
    table.lock().unwrap().mounts.push(number);
    let seen = reading.get(|| {
        let mut table = table.lock().unwrap();
        table.readings += 1;
        table.mounts.clone()
    });
    assert!(seen.contains(&number), "{seen:?} was read before {number} was mounted");
}

fn model(threads: u32) {
    let (table, reading) = (Arc::new(Mutex::new(Table::default())), Arc::new(Reading::default()));
    let all: Vec<_> = (0..threads)
        .map(|number| {
            let (table, reading) = (Arc::clone(&table), Arc::clone(&reading));
            thread::spawn(move || mount_and_read(number, &table, &reading))
        })
        .collect();
    all.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(table.lock().unwrap().readings <= threads);
}

#[test]
fn a_table_that_is_shared_has_what_was_mounted_before_it_was_asked_for_v7() {
    under_many_schedules(|| model(2));
    under_many_schedules(|| model(4));
}
