//! Model checks threads that wait for more work, and owners that give work and leave.

use shuttle::thread;

use crate::mounts::workers::Workers;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Mutex, mpsc};
use crate::{under_every_schedule, under_many_schedules};

/// Gives work, and waits until it is done.
fn work(workers: &Workers, done: &Arc<AtomicU32>) {
    let (tell, told) = mpsc::channel();
    let done = Arc::clone(done);
    let work = move || {
        done.fetch_add(1, Ordering::SeqCst);
        tell.send(()).expect("it is waited for");
    };
    workers.run(work).expect("a thread starts");
    told.recv().expect("it is done");
}

#[test]
fn each_work_is_done_once_and_an_owner_that_goes_leaves_no_thread() {
    // A thread that waits without end would be a deadlock of the model.
    let model = || {
        let (workers, done) = (Workers::default(), Arc::default());
        work(&workers, &done);
        work(&workers, &done);
        assert_eq!(done.load(Ordering::SeqCst), 2);
    };
    under_every_schedule(model);
    let model = || {
        let (workers, done) = (Arc::new(Workers::default()), Arc::default());
        let (other, done_too) = (Arc::clone(&workers), Arc::clone(&done));
        let thread = thread::spawn(move || (0..2).for_each(|_| work(&other, &done_too)));
        (0..2).for_each(|_| work(&workers, &done));
        thread.join().unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 4);
    };
    under_many_schedules(model);
}

#[test]
fn work_never_waits_for_a_thread_that_is_busy() {
    under_many_schedules(|| {
        let (workers, done) = (Workers::default(), Arc::default());
        // A thread that waits, and one that hangs until the other work is done.
        work(&workers, &done);
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let hang = move || released.lock().unwrap().recv().expect("it is released");
        workers.run(hang).expect("a thread starts");
        work(&workers, &done);
        release.send(()).expect("it hangs");
        assert_eq!(done.load(Ordering::SeqCst), 2);
    });
}
