//! Asking a plugin whether it lives, who it is and what it takes (D50, D102).

use std::time::Duration;

use callboard_actors::goplugin::{API_VERSIONS_MAX, Connection, Limits, PluginConfig, PluginInfo};
use callboard_actors::rpc::{Cause, Class, Code, Problem};
use callboard_actors::vocabulary::PluginType;
use callboard_proto::{base, hclspec};
use tonic::Status;
use tonic::transport::Server;
use tonic_health::pb::HealthCheckResponse;
use tonic_health::pb::health_server::HealthServer;

use crate::plugin::{LONG, Place, Plugin, Reply, SHORT, connected, info, serve_on_port};

#[tokio::test]
async fn health_is_asked_under_the_name_plugin_and_any_answer_will_do_d50() {
    for status in [0, 1, 2, 77] {
        let plugin = Plugin { health: Reply::Answer(HealthCheckResponse { status }), ..Plugin::default() };
        let (_place, connection) = connected(&plugin).await;
        assert_eq!(connection.ping(LONG).await, Ok(()));
        assert_eq!(*plugin.heard.lock().expect("free"), ["health of plugin"]);
    }
}

#[tokio::test]
async fn a_health_check_that_fails_or_hangs_is_an_error_with_its_class_d50() {
    for (health, deadline, class) in [
        (Reply::Fail(Status::not_found("unknown service")), LONG, Class::Final),
        (Reply::Fail(Status::unavailable("starting")), LONG, Class::Unclear),
        (Reply::Hang, SHORT, Class::DeadlineExceeded),
    ] {
        let (_place, connection) = connected(&Plugin { health, ..Plugin::default() }).await;
        let error = connection.ping(deadline).await.expect_err("it is not well");
        assert_eq!(error.class(), class, "{error}");
        assert!(error.to_string().starts_with("Check on unix:/"), "{error}");
    }
}

#[tokio::test]
async fn right_line_and_another_service_is_unimplemented_d102() {
    let place = Place::new();
    place.serve(Server::builder().add_service(HealthServer::new(Plugin::default())));
    let connection = place.dial().await;
    connection.ping(LONG).await.expect("it lives");
    let errors = [
        connection.plugin_info(LONG).await.expect_err("there is no such service"),
        connection.config_schema(LONG).await.expect_err("there is no such service"),
        connection.set_config(config(), LONG).await.expect_err("there is no such service"),
        connection.shutdown(LONG).await.expect_err("there is no such service"),
    ];
    for error in errors {
        assert_eq!((error.class(), error.is_transient()), (Class::Unimplemented, false), "{error}");
    }
}

#[tokio::test]
async fn who_a_plugin_is_comes_checked_and_the_plugin_is_told_the_deadline_d102() {
    let plugin = Plugin::default();
    let endpoint = serve_on_port(plugin.router()).await;
    let connection = Connection::dial(&endpoint, Limits::default()).await.expect("it listens");
    let PluginInfo { plugin_type, name, version, api_versions } =
        connection.plugin_info(Duration::from_secs(9)).await.expect("it answers");
    assert_eq!((plugin_type, name.as_str(), version.as_str()), (PluginType::Driver, "exec", "1.2.3"));
    assert_eq!(api_versions, ["v0.1.0"]);
    assert_eq!(*plugin.heard.lock().expect("free"), ["info within \"10000000u\""]);
}

/// Alters a good answer.
type Alter = fn(&mut base::PluginInfoResponse);

#[tokio::test]
async fn what_a_plugin_says_of_itself_is_within_limits_or_a_fault_d102() {
    let rows: [(Alter, &str); 11] = [
        (|info| info.r#type = 0, "type is \"0\", expected 2 (driver) or 3 (device)"),
        (|info| info.r#type = 1, "type is \"1\""),
        (|info| info.name.clear(), "name is"),
        (|info| info.name = "../exec".into(), "would leave its directory"),
        (|info| info.name = "e\nxec".into(), "name is"),
        (|info| info.name = "x".repeat(300), "at most 255"),
        (|info| info.plugin_version.clear(), "plugin_version is empty"),
        (|info| info.plugin_version = "v".repeat(129), "plugin_version has 129 bytes, at most 128"),
        (|info| info.plugin_api_versions.clear(), "plugin_api_versions is empty"),
        (|info| info.plugin_api_versions = vec!["v 1".into()], "without blanks"),
        (|info| info.plugin_api_versions = vec!["v1".into(); API_VERSIONS_MAX + 1], "33 versions"),
    ];
    for (alter, words) in rows {
        let mut answer = info();
        alter(&mut answer);
        let plugin = Plugin { info: Reply::Answer(answer), ..Plugin::default() };
        let (_place, connection) = connected(&plugin).await;
        let error = connection.plugin_info(LONG).await.expect_err(words);
        let told = error.to_string();
        assert!(told.contains(words) && told.len() < 1000, "{told}");
        let Cause::Fault(fault) = error.cause() else { panic!("a fault, not {error}") };
        assert_eq!(fault.rule, "D102");
        assert_eq!((error.class(), error.is_transient()), (Class::Fault, false));
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_or_too_deep_is_a_fault_and_the_connection_serves_on_d41() {
    let large = base::PluginInfoResponse { name: "x".repeat(5 << 20), ..info() };
    let deep = (0..200).fold(hclspec::Spec::default(), |inner, _| {
        let block = hclspec::Block { name: "b".into(), required: false, nested: Some(Box::new(inner)) };
        hclspec::Spec { block: Some(hclspec::spec::Block::BlockValue(Box::new(block))) }
    });
    let plugin = Plugin {
        info: Reply::Answer(large),
        schema: Reply::Answer(base::ConfigSchemaResponse { spec: Some(deep) }),
        ..Plugin::default()
    };
    let (_place, connection) = connected(&plugin).await;
    let errors = [
        connection.plugin_info(LONG).await.expect_err("it is too large"),
        connection.config_schema(LONG).await.map(drop).expect_err("it is too deep"),
    ];
    for error in errors {
        let Cause::Fault(fault) = error.cause() else { panic!("{error}") };
        assert!(matches!(fault.problem, Problem::Unreadable { .. }) && fault.rule == "D41", "{error}");
        assert!(error.to_string().len() < 1000);
    }
    connection.ping(LONG).await.expect("it serves on");
}

#[tokio::test]
async fn a_schema_comes_as_it_is_and_a_plugin_without_one_takes_nothing_d102() {
    let attr = hclspec::Attr { name: "enabled".into(), r#type: "bool".into(), required: true };
    let spec = hclspec::Spec { block: Some(hclspec::spec::Block::Attr(attr)) };
    for spec in [None, Some(spec)] {
        let answer = base::ConfigSchemaResponse { spec: spec.clone() };
        let plugin = Plugin { schema: Reply::Answer(answer), ..Plugin::default() };
        let (_place, connection) = connected(&plugin).await;
        assert_eq!(connection.config_schema(LONG).await, Ok(spec));
    }
}

fn config() -> PluginConfig {
    PluginConfig {
        msgpack: vec![0x81, 0xa1, 0x61, 0x01],
        nomad: Some(base::NomadConfig::default()),
        api_version: "v0.1.0".to_owned(),
    }
}

#[tokio::test]
async fn configuration_reaches_the_plugin_and_no_log_sec_06_d102() {
    let plugin = Plugin::default();
    let (_place, connection) = connected(&plugin).await;
    connection.set_config(config(), LONG).await.expect("it takes it");
    assert_eq!(*plugin.heard.lock().expect("free"), ["config [129, 161, 97, 1] true v0.1.0"]);
    let shown = format!("{:?}", config());
    assert!(shown.contains("msgpack_config: <4 withheld>") && !shown.contains("129"), "{shown}");
}

#[tokio::test]
async fn a_plugin_that_refuses_its_configuration_is_told_with_its_words_d102() {
    let refusal = Status::invalid_argument("no such volume\nERROR forged");
    let (_place, connection) = connected(&Plugin { config: Reply::Fail(refusal), ..Plugin::default() }).await;
    let error = connection.set_config(config(), LONG).await.expect_err("it refuses");
    assert_eq!((error.code(), error.is_transient()), (Some(Code::InvalidArgument), false));
    assert!(error.to_string().contains("\"no such volume\\nERROR forged\""), "{error}");
}
