//! Tests of a reader with a truncated file, and of a reader that is too slow.

use std::io::Write;
use std::time::Duration;

use super::super::watcher::Watcher;
use super::*;

fn tail(path: &std::path::Path) -> Tail {
    let known = Known {
        read: 0,
        progress: Arc::default(),
        words: Words::default(),
        dropped: Dropped::default(),
        is_closing: false,
        advanced: Arc::default(),
    };
    let purpose = Use::Log {
        plugin: ProcessName::new("a").unwrap(),
        reader: LineReader::default(),
        plugin_log: PluginLog::start().unwrap(),
    };
    let file = Arc::new(File::options().read(true).write(true).open(path).unwrap());
    let watch = Rc::new(Watcher::start().watch(path));
    Tail::new(path.to_owned(), file, watch, Rc::new(RefCell::new(known)), purpose, 0)
}

#[test]
fn a_reader_that_is_cut_off_a_hundred_times_takes_every_line_once_and_the_writer_hears_nothing_log_04() {
    actix::System::new().block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stderr.log");
        let mut writer = File::options().append(true).create(true).open(&path).unwrap();
        let mut tail = tail(&path);
        for round in 0..100_u32 {
            writeln!(writer, "line {round}").unwrap();
            write!(writer, "half of ").unwrap();
            let cut = Duration::from_micros(u64::from(round * 37 % 900));
            assert!(timeout(cut, tail.run()).await.is_err(), "it has no end of its own");
            tail.resume();
            writeln!(writer, "a line").unwrap();
        }
        tail.known.borrow_mut().is_closing = true;
        tail.run().await.unwrap();
        let known = tail.known.borrow();
        assert_eq!(known.read, path.metadata().unwrap().len());
        let expected: Vec<String> =
            (0..100).flat_map(|round| [format!("line {round}"), "half of a line".to_owned()]).collect();
        assert_eq!(known.words.lines(), expected[expected.len() - 64..]);
        assert_eq!(known.dropped, Dropped::default());
    });
}

#[test]
fn a_writer_that_outruns_its_reader_loses_what_is_more_than_may_wait_and_the_loss_is_counted() {
    actix::System::new().block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stderr.log");
        let mut writer = File::options().append(true).create(true).open(&path).unwrap();
        let mut tail = tail(&path);
        let line = [&[b'x'; 1_023][..], b"\n"].concat();
        for _ in 0..100 {
            writer.write_all(&line.repeat(1_024)).unwrap();
        }
        writeln!(writer, "the last line").unwrap();
        tail.known.borrow_mut().is_closing = true;
        tail.run().await.unwrap();
        let file = path.metadata().unwrap();
        let known = tail.known.borrow();
        assert_eq!(
            (known.read, known.words.lines().last().map(String::as_str)),
            (file.len(), Some("the last line"))
        );
        assert!(known.dropped.bytes > 98 << 20, "{:?}", known.dropped);
        let room = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        assert!(room < 4 << 20, "{room} bytes are kept");
    });
}

#[test]
fn what_was_given_back_while_there_was_no_reader_is_not_read_as_zeros() {
    actix::System::new().block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stderr.log");
        let mut writer = File::options().append(true).create(true).open(&path).unwrap();
        for number in 0..100_000 {
            writeln!(writer, "line {number:>10}").unwrap();
        }
        let length = path.metadata().unwrap().len();
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(File::options().write(true).open(&path).unwrap(), mode, 0, length / 2).unwrap();
        let mut tail = tail(&path);
        tail.known.borrow_mut().is_closing = true;
        tail.run().await.unwrap();
        let known = tail.known.borrow();
        assert!(known.dropped.bytes >= length / 2 / BLOCK_BYTES * BLOCK_BYTES, "{:?}", known.dropped);
        assert_eq!(known.words.lines().last().map(String::as_str), Some("line      99999"));
    });
}
