//! Decodes arbitrary bytes as output and identity of a plugin.

use callboard_proto::base;
use prost::Message;

use super::is_meant_as_handshake;
use super::{
    API_VERSIONS_MAX, FIELDS_MAX, HandshakeScan, HandshakeTerms, LineReader, LineSplitter, PIECE_BYTES_MAX,
    PluginEndpoint, PluginInfo, PluginLine, ScanLimits, StrayLines, VERSION_BYTES_MAX, read_line,
};
use crate::fuzzing::{check_shown, check_told};

/// The growth limit of a text by escaping: `\u{0}` for one byte of JSON, and a number with many zeros.
const GROWTH_MAX: usize = 16;

/// The bytes as output of a plugin before and with its handshake line (D20 to D28, D35), and as its identity (D102).
///
/// # Panics
/// When one line is parsed in two ways, more is skipped than the limits permit, or an error message is empty.
pub(crate) fn handshakes(data: &[u8]) {
    info(data);
    let limits = ScanLimits { lines_max: 20, bytes_max: 2_000 };
    let terms = HandshakeTerms::nomad(None);
    let mut scan = HandshakeScan::new(terms.clone(), limits);
    for piece in LineSplitter::new(500).push(data) {
        let line = piece.text();
        one_line(&terms, &line);
        match scan.take(&line) {
            Ok(None) => {
                assert!(!is_meant_as_handshake(&line), "{line:?}");
                assert!(scan.stray().lines() <= limits.lines_max && scan.stray().bytes() <= limits.bytes_max);
                assert!(scan.stray().last().len() <= StrayLines::KEPT_MAX);
            }
            Ok(Some(handshake)) => {
                assert_eq!(read_line(&terms, &line), Ok(handshake));
                return;
            }
            Err(error) => {
                check_shown(&error.to_string());
                return;
            }
        }
    }
    check_shown(&scan.ended().to_string());
}

fn one_line(terms: &HandshakeTerms, line: &str) {
    match read_line(terms, line) {
        Ok(handshake) => {
            assert!(is_meant_as_handshake(line), "{line:?}");
            assert!(terms.versions.contains(&handshake.app_version));
            let (network, address) = match &handshake.endpoint {
                PluginEndpoint::Unix(path) => ("unix", path.display().to_string()),
                PluginEndpoint::Tcp(address) => ("tcp", address.to_string()),
            };
            let written = format!("1|{}|{network}|{address}|grpc|", handshake.app_version);
            assert_eq!(read_line(terms, &written), Ok(handshake), "{written:?}");
        }
        Err(error) => {
            check_told(&error);
            check_shown(&error.to_string());
            assert!(!error.is_transient(), "a plugin that said something wrong says it again");
        }
    }
}

fn info(data: &[u8]) {
    let Ok(answer) = base::PluginInfoResponse::decode(data) else { return };
    match PluginInfo::of_wire(answer) {
        Ok(info) => {
            assert!((1..=API_VERSIONS_MAX).contains(&info.api_versions.len()));
            for version in info.api_versions.iter().chain([&info.version]) {
                assert!((1..=VERSION_BYTES_MAX).contains(&version.len()));
                check_shown(version);
            }
        }
        Err(fault) => {
            check_told(&fault);
            check_shown(&fault.to_string());
        }
    }
}

/// The bytes as standard error of a plugin, in one piece and in many (D70 to D77, LOG-02).
///
/// # Panics
/// When the result depends on how the stream was split, a limit is exceeded, or a line could forge another one.
pub(crate) fn lines(data: &[u8]) {
    let step = data.first().map_or(1, |first| usize::from(*first) + 1);
    let (mut whole, mut parts) = (LineReader::new(), LineReader::new());
    let mut told = whole.push(data);
    let mut again = Vec::new();
    for chunk in data.chunks(step) {
        again.extend(parts.push(chunk));
        assert!(parts.held_bytes() <= PIECE_BYTES_MAX);
    }
    told.extend(whole.finish());
    again.extend(parts.finish());
    assert_eq!(told, again, "it matters where the stream was cut");
    assert_eq!((whole.held_bytes(), whole.has_panicked()), (0, parts.has_panicked()));
    told.iter().for_each(check_line);
    let bytes: usize = told.iter().map(line_bytes).sum();
    assert!(bytes <= data.len() * GROWTH_MAX, "{bytes} bytes told of {}", data.len());
    cut_short(data);
}

fn check_line(line: &PluginLine) {
    assert!(line.fields.len() <= FIELDS_MAX);
    assert!(line.fields_left_out == 0 || line.fields.len() == FIELDS_MAX);
    let values = line.fields.iter().map(|(_, value)| value.to_string());
    let texts = line.fields.iter().map(|(name, _)| name.clone()).chain(values).chain([line.message.clone()]);
    texts.for_each(|text| check_shown(&text.replace('\t', " ")));
}

fn line_bytes(line: &PluginLine) -> usize {
    line.message.len()
        + line.fields.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>()
}

/// Pieces of any length are within the limit, and no byte of them is lost or duplicated.
fn cut_short(data: &[u8]) {
    let limit = data.len() % 16 + 4;
    let mut splitter = LineSplitter::new(limit);
    let mut pieces = splitter.push(data);
    pieces.extend(splitter.finish());
    assert!(pieces.iter().all(|piece| piece.bytes.len() <= limit));
    let kept = |bytes: &mut dyn Iterator<Item = u8>| -> Vec<u8> {
        bytes.filter(|byte| !matches!(byte, b'\n' | b'\r')).collect()
    };
    let told = kept(&mut pieces.iter().flat_map(|piece| piece.bytes.iter().copied()));
    assert_eq!(told, kept(&mut data.iter().copied()));
}
