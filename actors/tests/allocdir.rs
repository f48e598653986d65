//! Tests the directories of tasks on real file systems, with everything that a hostile task may put into them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callboard_actors::allocdir::{AllocDirError, AllocDirs, Secrets, TaskNames, TaskTree};
use callboard_actors::driver::FsIsolation;
use callboard_actors::mounts::mounts_of_this_process;
use callboard_actors::users::{Account, accounts};
use callboard_actors::vocabulary::{AllocationId, TaskName};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

fn mounts_below(place: &Path) -> Vec<PathBuf> {
    let table = mounts_of_this_process().unwrap();
    table.at_or_below(place).into_iter().map(|mount| mount.mount_point.clone()).collect()
}

/// A directory for a test. It is removed only when nothing is mounted below it, so that no mistake reaches mounted data.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let path = tempfile::tempdir().unwrap().keep().canonicalize().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        Self(path)
    }

    fn dirs(&self) -> AllocDirs {
        AllocDirs::open(self.0.join("alloc"), self.0.join("mounts")).unwrap()
    }

    /// A directory with a file that must survive everything.
    fn canary(&self) -> Canary {
        let path = self.0.join("canary");
        fs::create_dir(&path).unwrap();
        fs::create_dir(path.join("inner")).unwrap();
        fs::write(path.join("inner/file"), "sings").unwrap();
        Canary(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for place in mounts_below(&self.0) {
            let _ = unmount(&place, UnmountFlags::DETACH);
        }
        if mounts_below(&self.0).is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

struct Canary(PathBuf);

impl Canary {
    fn sings(&self) {
        assert_eq!(
            fs::read_to_string(self.0.join("inner/file")).unwrap(),
            "sings",
            "the file outside was touched"
        );
    }
}

fn names(task: &str) -> TaskNames {
    let allocation = AllocationId::new("5f0c2f4e-0000-4000-8000-00000000000a").unwrap();
    TaskNames { allocation, task: TaskName::new(task).unwrap() }
}

fn tree(isolation: FsIsolation) -> TaskTree {
    TaskTree { names: names("web"), isolation, user: None }
}

fn of(path: &Path) -> (u32, u32) {
    let known = fs::symlink_metadata(path).unwrap();
    (known.mode() & 0o7777, known.uid())
}

/// Whether this process is root and may mount; if not, prints which test is skipped.
fn may_mount(what: &str) -> bool {
    let place = Place::new();
    let may = mount("test", &place.0, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>).is_ok();
    if !may {
        eprintln!("SKIPPED: {what} is not shown, since this process may not mount (it needs to be root)");
    }
    may
}

fn uid_of_nobody() -> u32 {
    accounts::user("nobody").unwrap().uid
}

#[test]
fn the_tree_has_the_modes_and_owners_that_drivers_count_on_t040_t041_t042_t043_t044_t045() {
    if !may_mount("the tree as root makes it") {
        return;
    }
    let place = Place::new();
    let prepared = place.dirs().prepare(&tree(FsIsolation::None)).unwrap();
    let layout = &prepared.layout;
    assert_eq!(of(&place.0.join("alloc")), (0o711, 0));
    assert_eq!(of(&layout.allocation_dir), (0o755, 0));
    for open in
        [&layout.shared_dir, &layout.log_dir, &layout.shared_dir.join("tmp"), &layout.shared_dir.join("data")]
    {
        assert_eq!(of(open), (0o777, uid_of_nobody()), "{}", open.display());
    }
    assert_eq!(of(&layout.task_dir), (0o777, uid_of_nobody()));
    assert_eq!(of(&layout.local_dir), (0o777, uid_of_nobody()));
    assert_eq!(of(&layout.task_dir.join("tmp")), (0o1777, uid_of_nobody()));
    assert_eq!(prepared.secrets, Secrets::InMemory);
    let table = mounts_of_this_process().unwrap();
    for name in ["secrets", "private"] {
        let path = layout.task_dir.join(name);
        assert_eq!(of(&path), (0o777, uid_of_nobody()));
        let mounted = table.mounted_at(&path).expect("it is in memory");
        assert_eq!(mounted.fs_type, "tmpfs");
        for word in ["noexec", "nosuid", "nodev"] {
            assert!(mounted.options.split(',').any(|option| option == word), "{}", mounted.options);
        }
        assert!(mounted.fs_options.contains("size=1024k"), "{}", mounted.fs_options);
    }
    assert_eq!(prepared.seen.local, layout.local_dir);
}

#[test]
fn without_root_everything_is_ours_and_secrets_are_closed_t045() {
    let place = Place::new();
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).unwrap();
    let us = rustix::process::geteuid();
    if us.is_root() {
        eprintln!("SKIPPED: the tree of a host that is not root is not shown, since this process is root");
        return;
    }
    let prepared = place.dirs().prepare(&tree(FsIsolation::None)).unwrap();
    assert_eq!(of(&prepared.layout.secrets_dir), (0o700, us.as_raw()));
    assert!(matches!(prepared.secrets, Secrets::OnDisk { reason } if reason.contains("not root")));
}

#[test]
fn a_task_of_any_user_reaches_its_directories_and_not_the_list_of_others_t040() {
    if !may_mount("a task of another user") {
        return;
    }
    let place = Place::new();
    let layout = place.dirs().prepare(&tree(FsIsolation::None)).unwrap().layout;
    let script = "echo 1 > $0/local/f && echo 2 > $0/tmp/f && echo 3 > $1/data/f && ! ls $2";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).args([&layout.task_dir, &layout.shared_dir, &place.0.join("alloc")]);
    let status = shell.uid(54_321).gid(54_321).current_dir("/").stderr(Stdio::null()).status().unwrap();
    assert!(status.success());
}

#[test]
fn each_start_finds_the_tree_whole_and_mounts_nothing_twice_t049_th060() {
    let place = Place::new();
    let dirs = place.dirs();
    let first = dirs.prepare(&tree(FsIsolation::None)).unwrap();
    fs::write(first.layout.local_dir.join("kept"), "kept").unwrap();
    fs::set_permissions(&first.layout.local_dir, fs::Permissions::from_mode(0o700)).unwrap();
    let mounted = mounts_below(&place.0).len();
    assert_eq!(dirs.prepare(&tree(FsIsolation::None)).unwrap(), first);
    assert_eq!(mounts_below(&place.0).len(), mounted);
    assert_eq!(of(&first.layout.local_dir).0, 0o777, "a mode is set right again");
    assert_eq!(fs::read_to_string(first.layout.local_dir.join("kept")).unwrap(), "kept");
}

#[test]
fn after_a_reboot_secrets_are_in_memory_again_whatever_a_marker_says_t203() {
    if !may_mount("secrets after a reboot") {
        return;
    }
    let place = Place::new();
    let secrets = place.dirs().prepare(&tree(FsIsolation::None)).unwrap().layout.secrets_dir;
    unmount(&secrets, UnmountFlags::empty()).unwrap();
    fs::write(secrets.join(".nomad-mount"), "").unwrap();
    place.dirs().prepare(&tree(FsIsolation::None)).unwrap();
    assert!(mounts_below(&place.0).contains(&secrets));
    fs::write(secrets.join("token"), "t").unwrap();
    unmount(&secrets, UnmountFlags::empty()).unwrap();
    assert!(!secrets.join("token").exists(), "it was in memory only");
    // Another file system that is mounted there is not mistaken for the host's own.
    mount("test", &secrets, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>).unwrap();
    let refused = place.dirs().prepare(&tree(FsIsolation::None)).unwrap_err();
    assert!(matches!(&refused, AllocDirError::Mounted { path, .. } if *path == secrets), "{refused}");
    assert!(!refused.is_transient());
}

#[test]
fn the_tasks_user_owns_its_secrets_but_not_where_the_name_means_another_number_t045() {
    if !may_mount("the secrets of a user") {
        return;
    }
    let user = Some(Account { uid: 54_321, gid: 54_322, home: "/".to_owned() });
    let place = Place::new();
    let dirs = place.dirs();
    let of_user = TaskTree { user: user.clone(), ..tree(FsIsolation::None) };
    let secrets = dirs.prepare(&of_user).unwrap().layout.secrets_dir;
    assert_eq!(of(&secrets), (0o710, 54_321));
    let read = |uid| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo s > $0/f && cat $0/f"]).arg(&secrets).uid(uid).gid(uid).current_dir("/");
        shell.stderr(Stdio::null()).stdout(Stdio::null()).status().unwrap().success()
    };
    assert!(read(54_321) && !read(54_323));
    dirs.prepare(&TaskTree { user, ..tree(FsIsolation::Image) }).unwrap();
    assert_eq!(of(&secrets), (0o777, uid_of_nobody()));
}

#[test]
fn a_link_in_the_place_of_a_directory_is_refused_and_not_followed_th060() {
    let place = Place::new();
    let (dirs, canary) = (place.dirs(), place.canary());
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    let mode = of(&canary.0);
    for swapped in [&layout.local_dir, &layout.log_dir, &layout.shared_dir.join("data")] {
        fs::remove_dir(swapped).unwrap();
        symlink(&canary.0, swapped).unwrap();
        let refused = dirs.prepare(&tree(FsIsolation::None)).unwrap_err();
        let AllocDirError::NotADirectory { path, found } = &refused else { panic!("{refused}") };
        assert_eq!((path, *found), (swapped, "a link"));
        assert!(!refused.is_transient(), "only a person can say what this is");
        fs::remove_file(swapped).unwrap();
        fs::create_dir(swapped).unwrap();
    }
    assert_eq!(of(&canary.0), mode, "what the link named has its mode and owner");
    dirs.prepare(&tree(FsIsolation::None)).unwrap();
    dirs.release(&names("web")).unwrap();
    fs::rename(&layout.allocation_dir, place.0.join("away")).unwrap();
    symlink(place.0.join("away"), &layout.allocation_dir).unwrap();
    let refused = dirs.prepare(&tree(FsIsolation::None)).unwrap_err();
    assert!(refused.to_string().contains("is a link"), "{refused}");
}

#[test]
fn a_file_and_a_directory_of_a_stranger_are_refused_th060() {
    let place = Place::new();
    let dirs = place.dirs();
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    fs::remove_dir(&layout.local_dir).unwrap();
    fs::write(&layout.local_dir, "").unwrap();
    let refused = dirs.prepare(&tree(FsIsolation::None)).unwrap_err();
    assert!(refused.to_string().contains("is a file"), "{refused}");
    fs::remove_file(&layout.local_dir).unwrap();
    let named_alloc = TaskTree { names: names("alloc"), ..tree(FsIsolation::None) };
    assert!(dirs.prepare(&named_alloc).unwrap_err().to_string().contains("another one"));
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a directory of a stranger is not shown, since only root can make one");
        return;
    }
    for (place, owner) in
        [(&layout.local_dir, 54_321), (&layout.task_dir, 80_001), (&layout.allocation_dir, 54_321)]
    {
        fs::create_dir_all(place).unwrap();
        std::os::unix::fs::chown(place, Some(owner), Some(owner)).unwrap();
        let refused = dirs.prepare(&tree(FsIsolation::None)).unwrap_err();
        assert!(
            matches!(&refused, AllocDirError::Foreign { owner: found, .. } if *found == owner),
            "{refused}"
        );
        std::os::unix::fs::chown(place, Some(0), Some(0)).unwrap();
    }
    std::os::unix::fs::chown(&layout.local_dir, Some(80_001), None).unwrap();
    dirs.prepare(&tree(FsIsolation::None)).expect("an earlier run had another dynamic user");
}

#[test]
fn a_chroot_shows_the_host_read_only_and_keeps_links_t046_t047() {
    if !may_mount("a chroot's content") {
        return;
    }
    let place = Place::new();
    let canary = place.canary();
    let host = place.0.join("host");
    fs::create_dir(&host).unwrap();
    symlink("canary", place.0.join("linked")).unwrap();
    let shown = |path: &Path| PathBuf::from(path);
    let list = vec![shown(&canary.0), place.0.join("linked"), place.0.join("missing"), host.clone()];
    let dirs = place.dirs().with_chroot(list);
    let prepared = dirs.prepare(&tree(FsIsolation::Chroot)).unwrap();
    assert_eq!(prepared.seen.secrets, Path::new("/secrets"));
    let inside = |path: &Path| prepared.layout.task_dir.join(path.strip_prefix("/").unwrap());
    assert_eq!(fs::read_to_string(inside(&canary.0).join("inner/file")).unwrap(), "sings");
    let written = fs::write(inside(&canary.0).join("inner/file"), "silent").unwrap_err();
    assert_eq!(written.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(fs::read_link(inside(&place.0.join("linked"))).unwrap(), Path::new("canary"));
    assert!(!inside(&place.0.join("missing")).exists());
    fs::write(prepared.layout.shared_dir.join("data/f"), "shared").unwrap();
    assert_eq!(fs::read_to_string(prepared.layout.task_dir.join("alloc/data/f")).unwrap(), "shared");
    let mounted = mounts_below(&place.0).len();
    dirs.prepare(&tree(FsIsolation::Chroot)).unwrap();
    assert_eq!(mounts_below(&place.0).len(), mounted, "nothing is mounted twice");
    dirs.remove(&names("web")).unwrap();
    assert_eq!((mounts_below(&place.0).len(), prepared.layout.allocation_dir.exists()), (0, false));
    canary.sings();
}

#[test]
fn a_chroot_never_shows_the_directories_of_other_tasks_t047() {
    let place = Place::new();
    for shown in [PathBuf::from("/"), place.0.clone(), place.0.join("alloc")] {
        let refused = place.dirs().with_chroot(vec![shown]).prepare(&tree(FsIsolation::Chroot)).unwrap_err();
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: the refusal of a list is not shown, since only root binds");
            return;
        }
        assert!(matches!(refused, AllocDirError::OwnRoot { .. }), "{refused}");
    }
    let odd = place.dirs().with_chroot(vec![PathBuf::from("/usr/../etc")]);
    let _ = odd.prepare(&tree(FsIsolation::Chroot)).unwrap_err();
}

#[test]
fn a_task_behind_unveil_finds_all_of_its_directories_below_the_root_of_mounts_t048() {
    if !may_mount("a task behind unveil") {
        return;
    }
    let place = Place::new();
    let dirs = place.dirs();
    let user = Some(accounts::user("nomad-80005").unwrap());
    let unveiled = TaskTree { user, ..tree(FsIsolation::Unveil) };
    let prepared = dirs.prepare(&unveiled).unwrap();
    assert_eq!(dirs.prepare(&unveiled).unwrap(), prepared);
    fs::write(prepared.layout.secrets_dir.join("token"), "t").unwrap();
    fs::write(prepared.layout.shared_dir.join("data/f"), "shared").unwrap();
    fs::write(prepared.layout.local_dir.join("f"), "local").unwrap();
    assert_eq!(fs::read_to_string(prepared.seen.secrets.join("token")).unwrap(), "t");
    assert_eq!(fs::read_to_string(prepared.seen.alloc.join("data/f")).unwrap(), "shared");
    assert_eq!(fs::read_to_string(prepared.seen.local.join("f")).unwrap(), "local");
    assert_eq!(of(&prepared.seen.secrets), (0o710, 80_005));
    assert_eq!(of(&place.0.join("mounts")).0, 0o711);
    dirs.remove(&names("web")).unwrap();
    assert_eq!((mounts_below(&place.0).len(), fs::read_dir(place.0.join("mounts")).unwrap().count()), (0, 0));
}

#[test]
fn at_the_end_of_a_task_nothing_of_it_stays_mounted_also_not_below_something_else_t202() {
    if !may_mount("what is unmounted") {
        return;
    }
    let place = Place::new();
    let dirs = place.dirs();
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    for _ in 0..3 {
        mount("test", &layout.secrets_dir, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>).unwrap();
    }
    dirs.release(&names("web")).unwrap();
    assert_eq!(mounts_below(&place.0), [] as [PathBuf; 0]);
    dirs.release(&names("web")).expect("it is well to ask again");
    dirs.release(&names("other")).expect("who was never there has nothing mounted");
    dirs.prepare(&tree(FsIsolation::None)).unwrap();
    assert!(mounts_below(&place.0).contains(&layout.secrets_dir));
}

#[test]
fn what_is_busy_is_told_and_removed_when_it_is_not_any_more_t050_t202() {
    if !may_mount("something busy") {
        return;
    }
    let place = Place::new();
    let dirs = place.dirs().with_timeout(Duration::from_millis(50));
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    let held = fs::File::create(layout.secrets_dir.join("held")).unwrap();
    let refused = dirs.remove(&names("web")).unwrap_err();
    assert!(refused.is_transient() && refused.to_string().contains("a process still uses it"), "{refused}");
    assert!(layout.local_dir.exists(), "nothing was removed");
    drop(held);
    dirs.remove(&names("web")).unwrap();
    assert!(!layout.allocation_dir.exists());
}

#[test]
fn a_removal_takes_all_of_a_task_and_with_the_last_one_the_allocation_t050() {
    let place = Place::new();
    let dirs = place.dirs();
    let other = TaskTree { names: names("other"), ..tree(FsIsolation::None) };
    let (layout, beside) =
        (dirs.prepare(&tree(FsIsolation::None)).unwrap().layout, dirs.prepare(&other).unwrap().layout);
    for file in ["a", ".b", "c d\n\u{1f600}"] {
        fs::write(layout.local_dir.join(file), "x").unwrap();
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        layout.local_dir.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let closed = layout.local_dir.join("closed/inner");
    fs::create_dir_all(&closed).unwrap();
    fs::write(closed.join("f"), "x").unwrap();
    for closed in [&closed, closed.parent().unwrap()] {
        fs::set_permissions(closed, fs::Permissions::from_mode(0o000)).unwrap();
    }
    assert_eq!(dirs.list().unwrap()[0].1, ["other", "web"]);
    dirs.remove(&names("web")).unwrap();
    assert!(!layout.task_dir.exists() && beside.task_dir.exists() && beside.shared_dir.exists());
    dirs.remove(&names("web")).expect("what is not there is well");
    dirs.remove(&names("other")).unwrap();
    assert_eq!(fs::read_dir(dirs.root()).unwrap().count(), 0);
}

#[test]
fn a_removal_follows_no_link_th060() {
    let place = Place::new();
    let (dirs, canary) = (place.dirs(), place.canary());
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    symlink(&canary.0, layout.local_dir.join("link")).unwrap();
    symlink(canary.0.join("inner/file"), layout.shared_dir.join("data/link")).unwrap();
    symlink("/", layout.task_dir.join("root")).unwrap();
    dirs.release(&names("web")).unwrap();
    // The directories of the task itself are links now, at every level that a task may write to.
    for swapped in [&layout.secrets_dir, &layout.local_dir] {
        fs::rename(swapped, layout.task_dir.join(format!("{}-away", swapped.file_name().unwrap().display())))
            .unwrap();
        symlink(&canary.0, swapped).unwrap();
    }
    dirs.remove(&names("web")).unwrap();
    assert!(!layout.allocation_dir.exists());
    canary.sings();
}

#[test]
fn a_link_to_something_that_is_mounted_gets_nothing_of_the_host_unmounted_th060() {
    if !may_mount("a link to a mount of the host") {
        return;
    }
    let place = Place::new();
    let host = place.0.join("host/run");
    fs::create_dir_all(host.join("resolve")).unwrap();
    mount("test", host.join("resolve"), "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>).unwrap();
    let dirs = place.dirs().with_chroot(vec![PathBuf::from("/run/resolve"), PathBuf::from("/secrets-too")]);
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    symlink(&host, layout.task_dir.join("run")).unwrap();
    symlink(host.join("resolve"), layout.task_dir.join("secrets-too")).unwrap();
    dirs.release(&names("web")).unwrap();
    dirs.remove(&names("web")).unwrap();
    assert_eq!(mounts_below(&host), [host.join("resolve")]);
}

#[test]
fn a_foreign_mount_inside_is_neither_entered_nor_unmounted_th060_t050() {
    if !may_mount("a bind inside of a task") {
        return;
    }
    let place = Place::new();
    let (dirs, canary) = (place.dirs(), place.canary());
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    let deep = layout.local_dir.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(layout.local_dir.join("kept"), "x").unwrap();
    mount_bind(&canary.0, &deep).unwrap();
    let refused = dirs.remove(&names("web")).unwrap_err();
    assert!(refused.to_string().contains(&format!("umount {}", deep.display())), "{refused}");
    assert!(layout.local_dir.join("kept").exists(), "nothing is removed as long as anything is mounted");
    canary.sings();
    unmount(&deep, UnmountFlags::empty()).unwrap();
    // The same for the task's own directory, a file, and the shared directory.
    mount_bind(&canary.0, &layout.task_dir).unwrap();
    assert!(dirs.remove(&names("web")).is_err());
    canary.sings();
    unmount(&layout.task_dir, UnmountFlags::empty()).unwrap();
    mount_bind(canary.0.join("inner/file"), layout.local_dir.join("kept")).unwrap();
    assert!(dirs.remove(&names("web")).is_err());
    canary.sings();
    unmount(layout.local_dir.join("kept"), UnmountFlags::empty()).unwrap();
    dirs.remove(&names("web")).unwrap();
    assert!(!layout.allocation_dir.exists());
    canary.sings();
}

#[test]
fn two_thousand_directories_in_one_another_are_removed_th060() {
    let place = Place::new();
    let dirs = place.dirs();
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    let mut deepest =
        rustix::fs::open(&layout.local_dir, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..2_000 {
        rustix::fs::mkdirat(&deepest, "deeper", rustix::fs::Mode::RWXU).unwrap();
        deepest =
            rustix::fs::openat(&deepest, "deeper", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())
                .unwrap();
    }
    drop(deepest);
    fs::write(layout.task_dir.join(".removed-1"), "a name that the removal would use").unwrap();
    dirs.remove(&names("web")).unwrap();
    assert!(!layout.allocation_dir.exists());
}

#[test]
fn an_immutable_file_is_told_and_everything_else_is_gone_th060() {
    let place = Place::new();
    let dirs = place.dirs();
    let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
    let (stone, sand) = (layout.local_dir.join("a/stone"), layout.local_dir.join("a/sand"));
    fs::create_dir(stone.parent().unwrap()).unwrap();
    let file = fs::File::create(&stone).unwrap();
    fs::write(&sand, "x").unwrap();
    if rustix::fs::ioctl_setflags(&file, rustix::fs::IFlags::IMMUTABLE).is_err() {
        eprintln!(
            "SKIPPED: an immutable file is not shown, since this process or file system cannot make one"
        );
        return;
    }
    let refused = dirs.remove(&names("web"));
    rustix::fs::ioctl_setflags(&file, rustix::fs::IFlags::empty()).unwrap();
    let Err(AllocDirError::Left { left, more: 0, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].path == stone && left[0].reason.contains("immutable"));
    assert!(stone.exists() && !sand.exists());
    dirs.remove(&names("web")).unwrap();
}

#[test]
fn a_directory_that_is_exchanged_for_a_link_while_it_is_removed_harms_nothing_th060() {
    let place = Place::new();
    let (dirs, canary) = (place.dirs(), place.canary());
    for _ in 0..40 {
        let layout = dirs.prepare(&tree(FsIsolation::None)).unwrap().layout;
        let (inner, spare) = (layout.local_dir.join("inner"), layout.shared_dir.join("data/spare"));
        for number in 0..50 {
            fs::create_dir_all(inner.join(number.to_string())).unwrap();
        }
        symlink(&canary.0, &spare).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    let _ =
                        rustix::fs::renameat_with(rustix::fs::CWD, &inner, rustix::fs::CWD, &spare, exchange);
                }
            });
            let _ = dirs.remove(&names("web"));
            is_over.store(true, Ordering::Relaxed);
        });
        canary.sings();
        dirs.remove(&names("web")).unwrap();
    }
    canary.sings();
}
