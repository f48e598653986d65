//! Steps that are open at the end of an exam.

use super::*;

/// The rules that are broken when the exam is over.
fn broken(it: &Orchestrator) -> Vec<&'static str> {
    it.breaks(&[]);
    it.report().broken().map(|rule| rule.rule.id()).collect()
}

#[test]
fn c062_c130_c141_what_was_done_is_undone_at_least_once() {
    let mut it = Orchestrator::new();
    it.published();
    assert_eq!(broken(&it), ["C062", "C130", "C141"]);
    let open: Vec<_> = it.report().open.into_iter().map(|open| open.what).collect();
    assert_eq!(
        open,
        [
            "published to node node-1: up since call 3",
            "staged at /staging: up since call 4",
            "published at /targets/a: up since call 5",
            "not deleted",
        ]
    );
    it.down();
    assert_eq!((broken(&it), it.report().open), (vec![], vec![]));
}

#[test]
fn c014_a_create_that_its_caller_left_is_repeated_or_reported_as_a_leak() {
    let mut it = Orchestrator::new();
    it.leaves(Call::CreateVolume, create());
    assert_eq!(broken(&it), ["C014"]);
    it.created().ok(Call::DeleteVolume, volume());
    assert_eq!(broken(&it), Vec::<&str>::new());
}

#[test]
fn c014_an_unclear_publish_that_is_never_settled_breaks_it_and_one_whose_undo_failed_does_not() {
    let mut it = Orchestrator::new();
    it.staged().fails(Call::NodePublishVolume, publish("/targets/a"), Code::Internal);
    assert_eq!(broken(&it), ["C014", "C062", "C130", "C141"]);
    it.fails(Call::NodeUnpublishVolume, unpublish("/targets/a"), Code::Internal);
    assert_eq!(broken(&it), ["C062", "C130", "C141"]);
}

#[test]
fn c111_the_node_expands_what_the_controller_says() {
    let grow = Request { capacity_range: create().capacity_range, ..volume() };
    let mut it = Orchestrator::new();
    it.staged();
    it.call(
        Call::ControllerExpandVolume,
        grow,
        Answer { node_expansion_required: true, ..Answer::default() },
    );
    assert!(broken(&it).contains(&"C111"));
    it.ok(Call::NodeExpandVolume, Request { volume_path: "/staging".to_owned(), ..unstage() });
    assert!(!broken(&it).contains(&"C111"));
}
