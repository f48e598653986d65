//! Tests questions to a driver: answers, refusals, and the outcome of calls in flight when the driver ends.

use std::time::Duration;

use callboard_actors::driver::client::*;
use callboard_actors::drivers::*;
use callboard_actors::rpc::Code;
use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::{AllocationId, TaskName};
use callboard_proto::drivers as wire;
use tokio::time::Instant;
use tonic::Status;

use super::fixture::{Stage, name, spec, story};

const LONG: Duration = Duration::from_secs(600);

fn task() -> TaskId {
    TaskId::new("alloc/web").unwrap()
}

fn config() -> TaskConfig {
    TaskConfig::new(task(), AllocationId::new("alloc").unwrap(), TaskName::new("web").unwrap(), vec![0x80])
}

async fn dispensed(stage: &Stage) -> DriverClient {
    stage.drivers.ask(AddDriver { spec: spec() }).await.unwrap().unwrap();
    stage.leases.lease(&name(), Wanted::Healthy, LONG).await.expect("it comes")
}

#[test]
fn starting_a_task_has_three_outcomes_as_types_d107() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        let answer = |result, handle| wire::StartTaskResponse {
            result,
            driver_error_msg: "pull".to_owned(),
            handle,
            ..Default::default()
        };
        let own = wire::TaskConfig { id: "alloc/web".to_owned(), ..Default::default() };
        let handle = wire::TaskHandle { version: 1, config: Some(own), state: 1, driver_state: vec![1] };
        stage.fixture.plugin.book().start = Some(Ok(answer(0, Some(handle))));
        let started = client.start_task(&config(), LONG).await.unwrap();
        assert!(matches!(started, StartOutcome::Started { handle, .. } if handle.task_id() == "alloc/web"));
        stage.fixture.plugin.book().start = Some(Ok(answer(1, None)));
        let retry = client.start_task(&config(), LONG).await.unwrap();
        assert_eq!(retry, StartOutcome::Retry { reason: "pull".to_owned() });
        stage.fixture.plugin.book().start = Some(Ok(answer(2, None)));
        let fatal = client.start_task(&config(), LONG).await.unwrap();
        assert_eq!(fatal, StartOutcome::Fatal { reason: "pull".to_owned() });
        // Success without a handle is not a success.
        stage.fixture.plugin.book().start = Some(Ok(answer(0, None)));
        let error = client.start_task(&config(), LONG).await.unwrap_err();
        assert!(matches!(error, DriverError::Malformed { .. }), "{error}");
    });
}

#[test]
fn a_refusal_keeps_its_code_and_a_deadline_is_ours() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        stage.fixture.plugin.book().wait = Some(Err(Status::not_found("no such task")));
        let error = client.wait_task(&task(), LONG).await.unwrap_err();
        assert!(matches!(&error, DriverError::Refused { code: Code::NotFound, recoverable: None, .. }));
        assert!(!error.is_transient(), "{error}");
        stage.fixture.plugin.book().wait = None;
        let began = Instant::now();
        let error = client.wait_task(&task(), Duration::from_secs(7)).await.unwrap_err();
        assert!(matches!(error, DriverError::DeadlineExceeded { .. }) && began.elapsed().as_secs() == 7);
        // A call that the driver does not have.
        let error = client.signal_task(&task(), "SIGHUP", LONG).await.unwrap_err();
        assert!(matches!(error, DriverError::Refused { code: Code::Unimplemented, .. }), "{error}");
    });
}

#[test]
fn calls_in_flight_fail_as_the_plugin_is_gone_when_its_process_dies_prc_05_evt_05() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        let waiting = actix_rt::spawn({
            let client = client.clone();
            async move { client.wait_task(&task(), LONG).await }
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        stage.fixture.kill("signal 9");
        let error = waiting.await.unwrap().unwrap_err();
        assert!(matches!(&error, DriverError::PluginGone { is_worth_retrying: true, .. }), "{error}");
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        // Later callers get the same error.
        let error = client.inspect_task(&task(), LONG).await.unwrap_err();
        assert!(matches!(&error, DriverError::PluginGone { .. }) && client.is_gone(), "{error}");
    });
}

#[test]
fn calls_in_flight_are_cancelled_within_an_instant_when_the_driver_stops_shd_03() {
    story(|| async {
        let stage = Stage::new();
        stage.fixture.plugin.book().is_polite = false;
        stage.fixture.is_stubborn.set(true);
        let client = dispensed(&stage).await;
        let waiting = actix_rt::spawn(async move {
            let error = client.wait_task(&task(), LONG).await.unwrap_err();
            (error, Instant::now())
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        stage.running.request_stop(StopMode::Stop);
        let (error, at) = waiting.await.unwrap();
        assert!(matches!(&error, DriverError::PluginGone { is_worth_retrying: false, .. }), "{error}");
        assert!(at - began < Duration::from_millis(100), "{:?}", at - began);
        stage.running.ended().await;
    });
}

#[test]
fn a_stop_waits_for_calls_in_flight_and_cuts_them_when_their_time_is_up_shd_04() {
    for (takes, is_answered) in [(3, true), (600, false)] {
        story(|| async move {
            let stage = Stage::new();
            let client = dispensed(&stage).await;
            let answer = wire::StartTaskResponse { result: 1, ..Default::default() };
            stage.fixture.plugin.book().start = Some(Ok(answer));
            stage.fixture.plugin.book().start_takes = Duration::from_secs(takes);
            let began = Instant::now();
            let starting = actix_rt::spawn({
                let client = client.clone();
                async move { client.start_task(&config(), LONG).await }
            });
            tokio::time::sleep(Duration::from_millis(10)).await;
            stage.running.request_stop(StopMode::Stop);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(
                stage.fixture.plugin.book().shutdown_requests,
                0,
                "it was asked to end over a call in flight"
            );
            let refused = client.inspect_task(&task(), LONG).await.unwrap_err();
            assert!(matches!(refused, DriverError::PluginGone { is_worth_retrying: false, .. }), "{refused}");
            let started = starting.await.unwrap();
            match started {
                Ok(_) => assert!(is_answered),
                Err(DriverError::PluginGone { is_worth_retrying: false, .. }) => assert!(!is_answered),
                Err(error) => panic!("{error}"),
            }
            stage.running.ended().await;
            assert_eq!(began.elapsed().as_secs(), if is_answered { 3 } else { 4 });
            assert_eq!(stage.fixture.plugin.book().shutdown_requests, 1);
        });
    }
}

#[test]
fn a_lease_ends_with_its_process_and_a_new_one_reaches_the_next_prc_05() {
    story(|| async {
        let stage = Stage::new();
        let first = dispensed(&stage).await;
        let other = first.clone();
        let calls =
            || async { stage.drivers.ask(DescribeDriver { name: name() }).await.unwrap().unwrap().calls };
        assert_eq!(calls().await.leases, 1, "clones share a lease");
        stage.fixture.kill("signal 9");
        let second = stage.leases.lease(&name(), Wanted::Healthy, LONG).await.expect("it comes again");
        assert!(second.generation() > first.generation());
        // A lease never reconnects, although a plugin answers again.
        for client in [&first, &other] {
            let error = client.task_config_schema(LONG).await.unwrap_err();
            assert!(matches!(error, DriverError::PluginGone { is_worth_retrying: true, .. }), "{error}");
        }
        let waiting = actix_rt::spawn({
            let second = second.clone();
            async move { second.wait_task(&task(), LONG).await }
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let counted = calls().await;
        // The eventor's stream of events is the second call in flight.
        assert_eq!((counted.leases, counted.in_flight), (1, 2));
        drop(second);
        waiting.abort();
        let _ = waiting.await;
        let counted = calls().await;
        assert_eq!((counted.leases, counted.in_flight), (0, 1));
    });
}

#[test]
fn a_plugin_that_is_out_of_service_and_lives_on_is_not_called_gone_d111() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        stage.fixture.plugin.book().wait = Some(Err(Status::unavailable("busy")));
        let began = Instant::now();
        let error = client.wait_task(&task(), LONG).await.unwrap_err();
        assert!(matches!(error, DriverError::Refused { code: Code::Unavailable, .. }), "{error}");
        assert_eq!(began.elapsed().as_secs(), 3, "it was waited whether it ends");
        // If the process ends meanwhile, its end is reported.
        let dying = stage.fixture.clone();
        actix_rt::spawn(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            dying.kill("exit code 1");
        });
        let error = client.wait_task(&task(), LONG).await.unwrap_err();
        assert!(matches!(error, DriverError::PluginGone { is_worth_retrying: true, .. }), "{error}");
    });
}

#[test]
fn figures_of_a_task_come_as_a_stream_that_ends() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        let mut stats = client.task_stats(&task(), Duration::from_secs(1));
        for _ in 0..2 {
            assert_eq!(stats.next().await.unwrap().unwrap().id, "alloc/web");
        }
        assert!(stats.next().await.is_none() && stats.next().await.is_none());
    });
}

#[test]
fn a_command_inside_a_task_has_its_streams_both_ways() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        let mut session = client.exec_task_streaming(&task(), &["cat".to_owned()], true);
        session.give(ExecInput::Resize { height: 24, width: 80 }).await.unwrap();
        session.give(ExecInput::Stdin(b"hello".to_vec())).await.unwrap();
        session.give(ExecInput::CloseStdin).await.unwrap();
        let mut heard = Vec::new();
        while let Some(output) = session.next().await {
            heard.push(output.unwrap());
        }
        let exit = TaskExit { end: TaskEnd::Exited(3), oom_killed: false };
        assert_eq!(
            heard,
            [
                ExecOutput::Stderr(b"24x80".to_vec()),
                ExecOutput::Stdout(b"hello".to_vec()),
                ExecOutput::Exited(exit)
            ]
        );
    });
}

#[test]
fn a_command_ends_with_an_error_and_not_with_success_when_the_plugin_dies_evt_05() {
    story(|| async {
        let stage = Stage::new();
        let client = dispensed(&stage).await;
        let mut session = client.exec_task_streaming(&task(), &["cat".to_owned()], false);
        session.give(ExecInput::Stdin(b"hello".to_vec())).await.unwrap();
        assert_eq!(session.next().await.unwrap().unwrap(), ExecOutput::Stdout(b"hello".to_vec()));
        stage.fixture.kill("signal 9");
        let error = session.next().await.unwrap().unwrap_err();
        assert!(matches!(error, DriverError::PluginGone { .. }), "{error}");
        assert!(session.next().await.is_none());
    });
}
