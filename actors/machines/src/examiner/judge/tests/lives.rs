//! Property tests: random lives of a volume.

use proptest::prelude::*;

use super::*;

/// The fate of a call.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Succeeds,
    Fails(Code),
    /// Its caller leaves.
    IsLeft,
    /// The plugin dies, and is started again.
    IsLost,
}

fn fate() -> impl Strategy<Value = Fate> {
    let unclear = [Code::Unavailable, Code::Internal, Code::Unknown, Code::DataLoss, Code::Aborted];
    prop_oneof![
        3 => Just(Fate::Succeeds),
        2 => proptest::sample::select(unclear.to_vec()).prop_map(Fate::Fails),
        1 => Just(Fate::Fails(Code::ResourceExhausted)),
        1 => Just(Fate::IsLeft),
        1 => Just(Fate::IsLost),
    ]
}

/// An orchestrator that follows the rules. When the fates are used up, every call succeeds.
struct Careful {
    it: Orchestrator,
    fates: Vec<Fate>,
}

impl Careful {
    /// Makes a call once. Returns whether it succeeded.
    fn try_once(&mut self, call: Call, request: Request, answer: Answer) -> bool {
        match self.fates.pop().unwrap_or(Fate::Succeeds) {
            Fate::Succeeds => {
                self.it.call(call, request, answer);
                return true;
            }
            Fate::Fails(code) => drop(self.it.fails(call, request, code)),
            Fate::IsLeft => drop(self.it.leaves(call, request)),
            Fate::IsLost => {
                let _lost = self.it.begin(call, request);
                self.it.judge.observe(&Event::Starts { at: self.it.at });
            }
        }
        // Pauses that grow.
        self.it.at += 200 * self.it.number;
        false
    }

    fn until_it_succeeds(&mut self, call: Call, request: &Request, answer: &Answer) {
        while !self.try_once(call, request.clone(), answer.clone()) {}
    }

    /// Takes the steps up, each with at most two attempts, and undoes the steps that may be up.
    fn live(&mut self, target: &str) {
        let attached = Answer { publish_context: context("device"), ..Answer::default() };
        let steps = [
            (Call::ControllerPublishVolume, attach(), attached, Call::ControllerUnpublishVolume, detach()),
            (Call::NodeStageVolume, stage(), Answer::default(), Call::NodeUnstageVolume, unstage()),
            (
                Call::NodePublishVolume,
                publish(target),
                Answer::default(),
                Call::NodeUnpublishVolume,
                unpublish(target),
            ),
        ];
        let mut undos = Vec::new();
        for (call, request, answer, undo, undone) in steps {
            undos.push((undo, undone));
            let is_up = (0..2).any(|_| self.try_once(call, request.clone(), answer.clone()));
            if !is_up {
                break;
            }
        }
        for (undo, request) in undos.into_iter().rev() {
            self.until_it_succeeds(undo, &request, &Answer::default());
        }
    }
}

fn anything() -> impl Strategy<Value = Event> {
    let text =
        || proptest::sample::select(&["", "a", "vol-data", "/staging", "\u{7}"]).prop_map(str::to_owned);
    let request = (text(), text(), text(), text(), any::<i32>(), any::<i64>());
    let request = request.prop_map(|(name, id, path, token, mode, size)| Request {
        name: name.clone(),
        volume_id: id.clone(),
        node_id: name.clone(),
        snapshot_id: id.clone(),
        group_snapshot_id: id.clone(),
        snapshot_ids: vec![name.clone()],
        staging_target_path: path.clone(),
        target_path: path.clone(),
        volume_path: path,
        volume_capability: Some(Capability { mode, ..capability() }),
        capacity_range: Some(CapacityRange { required_bytes: size, limit_bytes: size }),
        volume_context: context(&name),
        volume_content_source: Some(Source::Snapshot(id)),
        max_entries: mode,
        starting_token: token,
        ..Request::default()
    });
    let answer = (text(), any::<Option<bool>>(), any::<i64>()).prop_map(|(id, ready, size_bytes)| Answer {
        volume_id: id.clone(),
        snapshot_id: id.clone(),
        group_snapshot_id: id.clone(),
        snapshot_ids: vec![id.clone()],
        next_token: id,
        ready,
        size_bytes,
        ..Answer::default()
    });
    let (at, number) = (any::<u64>, 0..6_u64);
    let call = proptest::sample::select(Call::ALL.to_vec());
    let begins = (at(), number.clone(), call, request).prop_map(|(at, number, call, request)| {
        Event::Begins { at, number, call, request: Box::new(request) }
    });
    let outcome = prop_oneof![
        answer.prop_map(|answer| Outcome::Answered(Box::new(answer))),
        any::<i32>().prop_map(Outcome::Failed),
        (0..17).prop_map(Outcome::Failed),
    ];
    prop_oneof![
        4 => begins,
        4 => (at(), number.clone(), outcome).prop_map(|(at, number, outcome)| Event::Ends { at, number, outcome }),
        1 => (at(), number).prop_map(|(at, number)| Event::Leaves { at, number }),
        1 => at().prop_map(|at| Event::Starts { at }),
    ]
}

proptest! {
    #[test]
    fn an_orchestrator_that_heeds_the_rules_is_never_blamed_whatever_happens_c_4(
        fates in proptest::collection::vec(fate(), 0..60),
        lives in 1..4_usize,
    ) {
        let mut it = Orchestrator::new();
        it.created();
        let mut careful = Careful { it, fates };
        for life in 0..lives {
            careful.live(&format!("/targets/{life}"));
        }
        careful.until_it_succeeds(Call::DeleteVolume, &volume(), &Answer::default());
        let report = careful.it.report();
        prop_assert!(report.is_clean() && report.open.is_empty(), "{}", report.text());
    }

    #[test]
    fn whatever_is_observed_is_judged_by_rules_that_calls_can_show(
        events in proptest::collection::vec(anything(), 0..60),
    ) {
        let mut judge = Judge::new(surface());
        for event in &events {
            judge.observe(event);
        }
        let report = judge.report(true);
        for found in &report.rules {
            let is_untouched = found.tried == 0 && found.broken == 0;
            prop_assert!(is_untouched || found.rule.is_judged(), "{}", found.rule);
        }
        prop_assert_eq!(report.json()["clean"].as_bool(), Some(report.is_clean()));
    }
}
