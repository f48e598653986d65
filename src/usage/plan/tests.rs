//! Drivers that die, return, refuse, end their streams, or flood.

use callboard_actors::driver::client::{Asked, CpuUsage, DriverRpc, MemoryUsage, Usage};
use callboard_actors::vocabulary::Attempt;

use super::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_epoch(Duration::from_secs(seconds))
}

fn moment(seconds: u64) -> Moment {
    // The middle of the jitter.
    Moment { now: at(seconds), random: 0 }
}

fn name(name: &str) -> AllocationId {
    AllocationId::new(name).unwrap()
}

fn report(task: &str, run: &str, phase: TaskPhase) -> TaskReport {
    TaskReport {
        name: name(task),
        driver: DriverName::new("exec").unwrap(),
        phase,
        since: at(0),
        attempt: Attempt::default(),
        id: Some(TaskId::new(run).unwrap()),
        exit: None,
        restarts: 0,
        note: String::new(),
        events: vec![],
        events_told: 0,
        events_missed: 0,
        is_configured: true,
        due: None,
        stopping: None,
        ended: vec![],
    }
}

fn running(task: &str) -> TaskReport {
    report(task, &format!("a/{task}/1"), TaskPhase::Running)
}

fn stats(percent: f64) -> Heard {
    let total =
        Usage { cpu: CpuUsage { percent: Some(percent), ..Default::default() }, ..Default::default() };
    Heard::Told(Box::new(TaskStats { id: "a".to_owned(), at: None, total, by_pid: BTreeMap::new() }))
}

fn refused(code: Code, recoverable: Option<bool>) -> Heard {
    let asked = Asked { driver: DriverName::new("exec").unwrap(), rpc: DriverRpc::TaskStats };
    Heard::Broken(DriverError::Refused { asked, code, message: "no".to_owned(), recoverable })
}

fn gone() -> Heard {
    let asked = Asked { driver: DriverName::new("exec").unwrap(), rpc: DriverRpc::TaskStats };
    let reason = "signal 9".to_owned();
    Heard::Broken(DriverError::PluginGone { asked, is_worth_retrying: true, reason })
}

/// The opened streams: the number of each, and its pause.
fn opened(orders: &[Order]) -> Vec<(u64, Duration)> {
    let open = |order: &Order| match order {
        Order::Open { number, pause, .. } => Some((*number, *pause)),
        _ => None,
    };
    orders.iter().filter_map(open).collect()
}

fn shown(orders: &[Order]) -> Vec<Option<TaskUsage>> {
    let show = |order: &Order| match order {
        Order::Show(_, usage) => Some(usage.clone()),
        _ => None,
    };
    orders.iter().filter_map(show).collect()
}

fn logged(orders: &[Order]) -> Vec<(bool, u64)> {
    let log = |order: &Order| match order {
        Order::Log { left_out, .. } => Some((true, *left_out)),
        Order::LogLeftOut { left_out, .. } => Some((false, *left_out)),
        _ => None,
    };
    orders.iter().filter_map(log).collect()
}

#[test]
fn figures_are_read_while_a_task_runs_and_anew_after_its_recovery_th081_t209() {
    let mut plan = Plan::new();
    assert_eq!(plan.sees(&report("web", "a/web/1", TaskPhase::Starting)), []);
    let orders = plan.sees(&running("web"));
    assert_eq!(
        (opened(&orders), shown(&orders)),
        (vec![(1, Duration::ZERO)], vec![Some(TaskUsage::Awaited)])
    );
    assert_eq!(plan.sees(&running("web")), [], "it is read already");
    let told = shown(&plan.hears(moment(1), &name("web"), 1, stats(7.0)));
    assert!(matches!(&told[..], [Some(TaskUsage::Told(Figures { cpu_percent: Some(7.0), .. }))]), "{told:?}");
    // The driver is killed: the stream breaks, then the task is recovered.
    let broken = plan.hears(moment(2), &name("web"), 1, gone());
    assert_eq!((opened(&broken).len(), logged(&broken)), (1, vec![]), "that a driver died is told by others");
    let recovering = plan.sees(&report("web", "a/web/1", TaskPhase::Recovering));
    assert_eq!(recovering, [Order::Close(name("web")), Order::Show(name("web"), None)]);
    assert_eq!(
        plan.hears(moment(3), &name("web"), 2, stats(1.0)),
        [],
        "a reader that was closed is not heard"
    );
    let again = plan.sees(&running("web"));
    assert_eq!((opened(&again), shown(&again)), (vec![(3, Duration::ZERO)], vec![Some(TaskUsage::Awaited)]));
}

#[test]
fn another_run_of_a_task_has_a_stream_of_its_own() {
    let mut plan = Plan::new();
    plan.sees(&running("web"));
    let orders = plan.sees(&report("web", "a/web/2", TaskPhase::Running));
    assert_eq!(orders[0], Order::Close(name("web")));
    assert_eq!(opened(&orders), [(2, Duration::ZERO)]);
}

#[test]
fn a_stream_that_breaks_is_opened_again_after_pauses_that_grow_up_to_a_limit_th081() {
    let mut plan = Plan::new();
    plan.sees(&running("web"));
    let (mut number, mut pauses, mut lines) = (1, vec![], 0);
    for second in 0..10 {
        let heard = if second % 2 == 0 { Heard::Ended } else { Heard::NotHad("not yet".to_owned()) };
        let orders = plan.hears(moment(second), &name("web"), number, heard);
        let &[(next, pause)] = &opened(&orders)[..] else { panic!("{orders:?}") };
        lines += logged(&orders).len();
        (number, pauses) = (next, [pauses, vec![pause]].concat());
    }
    assert!(pauses.is_sorted() && pauses[0] >= Duration::from_millis(900), "{pauses:?}");
    assert!(pauses[9] <= Duration::from_secs(66) && pauses[9] >= Duration::from_secs(54), "{pauses:?}");
    assert_eq!(lines, 1, "the first failure is logged, and the same again is not");
}

#[test]
fn a_driver_that_gives_no_figures_is_asked_no_more_and_another_recovery_asks_it_again_t146() {
    for no in [refused(Code::Unimplemented, None), refused(Code::Internal, Some(false))] {
        let mut plan = Plan::new();
        plan.sees(&running("web"));
        let orders = plan.hears(moment(0), &name("web"), 1, no);
        assert_eq!((opened(&orders), logged(&orders)), (vec![], vec![(true, 0)]));
        assert!(matches!(&shown(&orders)[..], [Some(TaskUsage::Missing(_))]));
        assert_eq!(plan.sees(&running("web")), []);
        plan.sees(&report("web", "a/web/1", TaskPhase::Recovering));
        assert_eq!(opened(&plan.sees(&running("web"))).len(), 1);
    }
    let mut plan = Plan::new();
    plan.sees(&running("web"));
    let orders = plan.hears(moment(0), &name("web"), 1, refused(Code::Internal, None));
    assert_eq!(opened(&orders).len(), 1, "a refusal that says nothing of its duration is tried again");
}

#[test]
fn a_driver_that_dies_of_being_asked_is_left_alone_longer_and_longer() {
    let mut plan = Plan::new();
    let mut pauses = vec![];
    for round in 0..12 {
        let orders = plan.sees_all(&[running("a"), running("b")]);
        let readers = opened(&orders);
        pauses.push(readers[0].1);
        assert_eq!(
            round >= 1,
            matches!(shown(&orders).last(), Some(Some(TaskUsage::Missing(_)))),
            "{orders:?}"
        );
        // Both report the same death.
        plan.hears(moment(round), &name("a"), readers[0].0, gone());
        plan.hears(moment(round), &name("b"), readers[1].0, gone());
        plan.sees_all(&[]);
    }
    assert_eq!(pauses[..4], [0, 600, 1_200, 2_400].map(Duration::from_secs));
    assert_eq!(pauses[11], Duration::from_secs(24 * 3_600), "not for ever");
    let number = opened(&plan.sees(&running("a")))[0].0;
    plan.hears(moment(20), &name("a"), number, stats(1.0));
    plan.hears(moment(21), &name("a"), number, gone());
    plan.sees_all(&[]);
    assert_eq!(opened(&plan.sees(&running("a")))[0].1, Duration::ZERO, "it told figures before it died");
}

#[test]
fn the_death_of_a_driver_that_was_asked_counts_if_its_task_reports_it_before_its_reader_th081() {
    let mut plan = Plan::new();
    let recovering = || report("a", "a/a/1", TaskPhase::Recovering);
    plan.sees(&recovering());
    let readers = opened(&plan.sees(&running("a")));
    assert_eq!(readers[0].1, Duration::ZERO, "a host that has just started has asked nothing");
    plan.sees(&recovering());
    // Later messages of its reader are stale, and so is a second report of the task.
    plan.hears(moment(1), &name("a"), readers[0].0, gone());
    plan.sees(&recovering());
    assert_eq!(opened(&plan.sees(&running("a")))[0].1, Duration::from_secs(600), "one death");
}

#[test]
fn of_too_many_tasks_the_rest_is_told_so_and_read_when_there_is_room() {
    let mut plan = Plan { readers_max: 2, ..Plan::new() };
    let orders = plan.sees_all(&[running("a"), running("b"), running("c")]);
    assert_eq!(opened(&orders).len(), 2);
    assert!(
        matches!(shown(&orders).last(), Some(Some(TaskUsage::Missing(reason))) if reason.contains("2 other"))
    );
    let orders = plan.sees_all(&[running("b"), running("c")]);
    assert_eq!(opened(&orders), [(3, Duration::ZERO)]);
    assert_eq!(plan.forgets(&name("a")), [], "it is forgotten");
    assert!(opened(&plan.sees(&report("b", "a/b/1", TaskPhase::Ended))).is_empty());
}

#[test]
fn what_a_thousand_tasks_lack_is_some_lines_and_a_count_log_03() {
    let mut plan = Plan::new();
    let tasks: Vec<_> = (0..1_000).map(|number| running(&format!("t{number}"))).collect();
    let orders = plan.sees_all(&tasks);
    let readers: Vec<_> = orders
        .iter()
        .filter_map(|order| match order {
            Order::Open { name, number, .. } => Some((name.clone(), *number)),
            _ => None,
        })
        .collect();
    let lines = |second: u64, plan: &mut Plan, heard: &Heard, readers: &[(AllocationId, u64)]| -> Vec<_> {
        let hear = |(name, number): &(AllocationId, u64)| {
            logged(&plan.hears(moment(second), name, *number, heard.clone()))
        };
        readers.iter().flat_map(hear).collect()
    };
    let told = lines(0, &mut plan, &refused(Code::Unimplemented, None), &readers);
    assert_eq!(told, vec![(true, 0); 8]);
    let recovered = plan.sees(&report("t0", "a/t0/2", TaskPhase::Running));
    let again = [(name("t0"), opened(&recovered)[0].0)];
    assert_eq!(lines(9, &mut plan, &stats(1.0), &again), [], "not yet");
    assert_eq!(lines(10, &mut plan, &stats(1.0), &again), [(false, 992)]);
    assert_eq!(lines(60, &mut plan, &stats(1.0), &again), []);
}

#[test]
fn what_a_driver_measures_is_shown_and_what_it_does_not_is_unknown() {
    let cpu = CpuUsage { user_percent: Some(2.0), system_percent: Some(3.0), ..Default::default() };
    let memory = MemoryUsage { rss: Some(5), max_usage: Some(9), ..Default::default() };
    let mut told =
        TaskStats { id: "a".to_owned(), at: None, total: Usage { cpu, memory }, by_pid: BTreeMap::new() };
    let shown = figures(&told, at(4));
    assert_eq!((shown.at, shown.cpu_percent, shown.cpu_mhz), (at(4), Some(5.0), None));
    assert_eq!((shown.memory_bytes, shown.memory_max_bytes), (Some(5), Some(9)));
    told.total.cpu = CpuUsage { percent: Some(6.0), total_ticks: Some(60.0), ..told.total.cpu };
    told.total.memory.usage = Some(7);
    let shown = figures(&told, at(4));
    assert_eq!((shown.cpu_percent, shown.cpu_mhz, shown.memory_bytes), (Some(6.0), Some(60.0), Some(7)));
    told.total =
        Usage { cpu: CpuUsage { system_percent: Some(3.0), ..Default::default() }, ..Default::default() };
    let shown = figures(&told, at(4));
    assert_eq!((shown.cpu_percent, shown.memory_bytes), (Some(3.0), None));
}
