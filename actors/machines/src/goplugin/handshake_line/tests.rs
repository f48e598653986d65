//! One row for each fact of the handshake line.

use proptest::prelude::*;

use super::super::scan::{HandshakeScan, ScanLimits};
use super::*;

fn terms(versions: &[u32]) -> HandshakeTerms {
    HandshakeTerms { versions: versions.to_vec(), ..HandshakeTerms::nomad(None) }
}

fn read(line: &str) -> Result<Handshake, HandshakeError> {
    read_line(&terms(&[2, 3]), line)
}

/// Parses lines that are refused, and asserts that each error contains its words: what was read, what was expected, the
/// remedy. None of them is transient.
fn refused(rows: &[(&str, &[&str])]) {
    for (line, words) in rows {
        let error = read(line).expect_err(line);
        let told = error.to_string();
        for word in *words {
            assert!(told.contains(word), "{line}: {told} does not say {word}");
        }
        assert!(!error.is_transient(), "{line}");
    }
}

fn socket(path: &str) -> PluginEndpoint {
    PluginEndpoint::Unix(path.into())
}

#[test]
fn every_form_of_a_good_line_is_read_d20_to_d28() {
    let rows = [
        ("1|2|unix|/tmp/plugin1|grpc", 2, socket("/tmp/plugin1")),
        ("1|2|unix|/tmp/plugin1|grpc|", 2, socket("/tmp/plugin1")),
        ("1|3|unix|/tmp/plugin1|grpc||false", 3, socket("/tmp/plugin1")),
        ("1|2|unix|/tmp/plugin1|grpc|older data|0", 2, socket("/tmp/plugin1")),
        ("  1|2|unix|/tmp/plugin1|grpc||F \r\n", 2, socket("/tmp/plugin1")),
        ("1|2|unix|/tmp/plugin1|grpc||false|later|fields|too|and|more", 2, socket("/tmp/plugin1")),
        ("1|2|tcp|127.0.0.1:10000|grpc", 2, PluginEndpoint::Tcp(([127, 0, 0, 1], 10000).into())),
        ("1|2|tcp|[::1]:10000|grpc", 2, PluginEndpoint::Tcp("[::1]:10000".parse().expect("an address"))),
    ];
    for (line, app_version, endpoint) in rows {
        assert_eq!(read(line), Ok(Handshake { app_version, endpoint }), "{line}");
    }
}

#[test]
fn a_line_with_too_few_fields_is_refused_with_its_text_d20_d35() {
    refused(&[
        ("", &["\"\"", "1 of at least 4 fields", "check that the executable is a plugin"]),
        ("Listening on port 80", &["\"Listening on port 80\"", "1 of at least 4"]),
        ("1|2|unix", &["\"1|2|unix\"", "3 of at least 4"]),
    ]);
}

#[test]
fn a_core_version_that_is_no_number_or_not_one_is_refused_d21() {
    refused(&[
        ("x|2|unix|/p|grpc", &["core protocol version \"x\" is not a number", "expected 1", "check"]),
        ("|2|unix|/p|grpc", &["core protocol version \"\" is not a number"]),
        ("1.0|2|unix|/p|grpc", &["\"1.0\" is not a number"]),
        ("2|2|unix|/p|grpc", &["core protocol version 2", "expected 1", "build it again"]),
        ("-1|2|unix|/p|grpc", &["core protocol version -1"]),
    ]);
}

#[test]
fn an_application_version_that_is_no_number_or_was_not_offered_is_refused_d22() {
    refused(&[
        ("1|two|unix|/p|grpc", &["protocol version \"two\" is not a number", "one of [2, 3]", "report"]),
        ("1|4|unix|/p|grpc", &["protocol version 4", "one of [2, 3]", "install"]),
        ("1|-2|unix|/p|grpc", &["protocol version -2", "one of [2, 3]"]),
        ("1|4294967298|unix|/p|grpc", &["protocol version 4294967298"]),
    ]);
}

#[test]
fn a_plugin_without_a_common_version_answers_with_its_lowest_and_is_still_refused_d23() {
    let error = read_line(&terms(&[5, 6]), "1|1|unix|/p|grpc").expect_err("1 was not offered");
    assert_eq!(error, HandshakeError::VersionNotOffered { version: 1, offered: Versions(vec![5, 6]) });
}

#[test]
fn an_unknown_network_is_refused_and_told_by_its_type_d24() {
    refused(&[
        ("1|2|udp|1.2.3.4:5|grpc", &["network \"udp\" at \"1.2.3.4:5\"", "expected unix or tcp"]),
        ("1|2||/p|grpc", &["network \"\""]),
        ("1|2|UNIX|/p|grpc", &["network \"UNIX\""]),
    ]);
}

#[test]
fn an_address_that_cannot_be_dialled_is_refused_d25() {
    let long = format!("1|2|unix|/{}|grpc", "x".repeat(200));
    refused(&[
        ("1|2|unix||grpc", &["unix at \"\"", "empty", "check the socket directory"]),
        ("1|2|unix|plugin1|grpc", &["unix at \"plugin1\"", "relative"]),
        ("1|2|unix|@abstract|grpc", &["\"@abstract\"", "relative"]),
        ("1|2|unix|/a/../b|grpc", &["\"/a/../b\"", ".."]),
        (&long, &["201 bytes", "107"]),
        ("1|2|tcp|localhost:80|grpc", &["tcp at \"localhost:80\"", "no IP address with a port"]),
        ("1|2|tcp|127.0.0.1|grpc", &["no IP address with a port"]),
        ("1|2|tcp|127.0.0.1:0|grpc", &["port is 0"]),
        ("1|2|tcp|192.0.2.1:80|grpc", &["not an address of this machine alone"]),
    ]);
}

#[test]
fn another_protocol_than_grpc_is_refused_and_a_missing_one_is_net_rpc_d26() {
    refused(&[
        ("1|2|unix|/p", &["speaks net/rpc", "expected grpc", "gRPC server"]),
        ("1|2|unix|/p|netrpc", &["speaks net/rpc"]),
        ("1|2|unix|/p|thrift", &["protocol \"thrift\"", "expected grpc"]),
        ("1|2|unix|/p|", &["protocol \"\""]),
        ("1|2|unix|/p|GRPC|", &["protocol \"GRPC\""]),
    ]);
}

#[test]
fn a_plugin_that_insists_on_tls_is_told_so_and_a_broken_certificate_is_another_matter_d27() {
    let certificate = "MIIB".repeat(100);
    let line = |field: &str| format!("1|2|unix|/p|grpc|{field}");
    refused(&[
        (&line(&certificate), &["insists on automatic mutual TLS", "400 bytes", "switch it off"]),
        (&line(&"=".repeat(51)), &["is no certificate", "51 bytes", "base64 without padding"]),
        (&line(&"A".repeat(53)), &["is no certificate", "53 bytes"]),
        (&line(&format!("{}==", "A".repeat(52))), &["is no certificate"]),
    ]);
    assert!(read(&line(&"=".repeat(50))).is_ok(), "old plugins put other data there");
}

#[test]
fn a_plugin_that_insists_on_multiplexing_is_told_so_and_a_broken_boolean_is_another_matter_d28() {
    for text in ["1", "t", "T", "TRUE", "true", "True"] {
        let error = read(&format!("1|2|unix|/p|grpc||{text}")).expect_err(text);
        assert_eq!(error, HandshakeError::InsistsOnMultiplexing, "{text}");
        assert!(error.to_string().contains("switch multiplexing off"), "{error}");
    }
    for text in ["0", "f", "F", "FALSE", "false", "False"] {
        assert!(read(&format!("1|2|unix|/p|grpc||{text}")).is_ok(), "{text}");
    }
    refused(&[
        ("1|2|unix|/p|grpc||yes", &["\"yes\" is no boolean", "expected true or false"]),
        ("1|2|unix|/p|grpc||", &["\"\" is no boolean"]),
        ("1|2|unix|/p|grpc||tRUE", &["\"tRUE\" is no boolean"]),
    ]);
}

#[test]
fn what_is_listened_on_is_kept_as_it_is_written_down_d25_d32() {
    let handshake = read("1|2|unix|/tmp/plugin 1|grpc").expect("a space is no reason");
    assert_eq!(handshake.endpoint.socket_path(), Some(std::path::Path::new("/tmp/plugin 1")));
    let written = serde_json::to_string(&handshake).expect("it can be written");
    assert_eq!(serde_json::from_str::<Handshake>(&written).expect("and read"), handshake);
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic_and_no_error_grows_with_it(line in any::<Vec<u8>>(), times in 1_usize..2000) {
        let line = String::from_utf8_lossy(&line).repeat(times);
        if let Err(error) = read(&line) {
            prop_assert!(error.to_string().len() < 8000);
        }
    }

    #[test]
    fn no_fields_make_the_reader_panic(
        fields in prop::collection::vec("(1|2|-1|99999999999999999999|unix|tcp|/a|127.0.0.1:1|grpc|true|[A-Za-z+/=]{0,60}|\\PC{0,8})", 0..10),
    ) {
        let line = fields.join("|");
        if let Ok(handshake) = read(&line) {
            prop_assert!([2, 3].contains(&handshake.app_version));
        }
    }

    #[test]
    fn no_lines_make_the_scan_panic_or_keep_more_than_it_may(lines in prop::collection::vec("(\\PC{0,40}|1\\|2\\|\\PC{0,20})", 0..40)) {
        let limits = ScanLimits { lines_max: 20, bytes_max: 500 };
        let mut scan = HandshakeScan::new(terms(&[2]), limits);
        for line in lines {
            if scan.take(&line).is_err() {
                break;
            }
            prop_assert!(scan.stray().lines() <= 20 && scan.stray().bytes() <= 500);
        }
        prop_assert!(scan.ended().to_string().len() < 8000);
    }
}
