//! The rows of volumes on disk: of a volume, of its claims, of claims whose rows were damaged, and of audits that are not published yet.
//!
//! Their keys begin with the key of the volume, in which each name follows its length. So the rows of one volume are never read as rows of
//! a neighbour.

use std::path::Path;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::creation_parts::{DesiredPart, ExistencePart};
use super::parts::{Part, PathPart, SpecPart, TimePart, UsagePart};
use super::step_parts::{AttachPart, IntentPart, ProofPart, PublishPart, StagePart, StepPart};
use super::{Abandoned, Audit, ClaimRecord, Forced, VolumeKey, VolumeLayout, VolumeRecord};
use crate::csi::Context;
use crate::persister::{DecodeError, Loaded, Operation, Record, Table, decode_payload};
use crate::vocabulary::{AllocationId, RunNumber, VolumeName, VolumeNamespace};

/// Volumes, by their key: each name follows its length.
pub const VOLUME_TABLE: Table = Table("volumes");

/// The claims of volumes, by the key of the volume and the allocation.
pub const CLAIM_TABLE: Table = Table("volume_claims");

/// The claims whose rows were damaged and that are not released yet, by the keys of those rows. The steps that such a claim used may still
/// be in use.
pub const LOST_CLAIM_TABLE: Table = Table("volume_lost_claims");

/// The targets of claims that were given up by force, by the key of the volume and the path.
pub const ABANDONED_TABLE: Table = Table("volume_abandoned_targets");

/// The audits that are not published yet, by the key of the volume and their number.
pub const AUDIT_TABLE: Table = Table("volume_audits");

/// A row of [`VOLUME_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeRow(pub(crate) Arc<VolumeRecord>);

/// A row of [`CLAIM_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRow(pub(crate) Arc<ClaimRecord>);

/// A row of [`LOST_CLAIM_TABLE`]. All known data of such a claim are in its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostClaimRow;

impl Record for LostClaimRow {
    const TABLE: Table = LOST_CLAIM_TABLE;
    const SCHEMA: u16 = 1;

    fn instead_of_damaged(key: &[u8]) -> Option<Operation> {
        lost_claim(key)
    }
}

/// The row of a lost claim whose damaged row had this key.
fn lost_claim(key: &[u8]) -> Option<Operation> {
    read_claim_key(key).map(|_| Operation::put(key, &LostClaimRow))
}

/// A row of [`ABANDONED_TABLE`]. The target and its allocation are in the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonedRow {
    pub(super) is_released: bool,
}

impl Record for AbandonedRow {
    const TABLE: Table = ABANDONED_TABLE;
    const SCHEMA: u16 = 2;

    /// Schema 1 does not contain whether the claim was released.
    fn migrate(schema: u16, _: &[u8]) -> Result<Self, DecodeError> {
        (schema == 1).then_some(Self { is_released: false }).ok_or(DecodeError::UnknownSchema { schema })
    }

    fn instead_of_damaged(key: &[u8]) -> Option<Operation> {
        read_abandoned_key(key, false).map(|_| Operation::put(key, &Self { is_released: false }))
    }
}

/// A row of [`AUDIT_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow(pub(crate) Audit);

/// The key of the rows of a volume: the length of its namespace, the namespace, the length of its name, the name.
pub(crate) fn key(volume: &VolumeKey) -> Vec<u8> {
    let mut key = Vec::new();
    for name in [volume.namespace.as_str(), volume.name.as_str()] {
        let length = u16::try_from(name.len()).expect("a name has at most 255 bytes");
        key.extend_from_slice(&length.to_be_bytes());
        key.extend_from_slice(name.as_bytes());
    }
    key
}

pub(super) fn claim_key(volume: &VolumeKey, allocation: &AllocationId) -> Vec<u8> {
    [&key(volume), allocation.as_str().as_bytes()].concat()
}

/// The volume and the allocation of the row of a claim; `None` if its key is damaged as well.
fn read_claim_key(key: &[u8]) -> Option<(VolumeKey, AllocationId)> {
    let (volume, allocation) = read_volume_key(key)?;
    let allocation = AllocationId::new(std::str::from_utf8(allocation).ok()?).ok()?;
    Some((volume, allocation))
}

/// The volume in the prefix of a row's key, and the rest of the key.
pub(super) fn read_volume_key(key: &[u8]) -> Option<(VolumeKey, &[u8])> {
    let (namespace, rest) = read_name(key)?;
    let (name, rest) = read_name(rest)?;
    let (namespace, name) = (VolumeNamespace::new(namespace).ok()?, VolumeName::new(name).ok()?);
    Some((VolumeKey { namespace, name }, rest))
}

/// A name that follows its length, and the rest of the key.
fn read_name(key: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = key.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

/// The volume of a row as people name it; `None` if its key is damaged.
#[must_use]
pub fn name_of_key(key: &[u8]) -> Option<String> {
    let (namespace, rest) = read_name(key)?;
    let (name, _) = read_name(rest)?;
    Some(format!("{namespace}/{name}"))
}

/// The lost claims: those that earlier loads have found damaged, and those of this load, which may still be in their place.
pub(crate) fn lost_claims(
    claims: &Loaded<ClaimRow>,
    earlier: &Loaded<LostClaimRow>,
) -> Vec<(VolumeKey, AllocationId)> {
    let damaged = claims.damaged.iter().chain(&earlier.damaged).map(|damaged| &damaged.key);
    let keys = earlier.rows.iter().map(|(key, _)| key).chain(damaged);
    keys.filter_map(|key| read_claim_key(key)).collect()
}

pub(super) fn abandoned_key(volume: &VolumeKey, path: &Path) -> Vec<u8> {
    [&key(volume), path.as_os_str().as_encoded_bytes()].concat()
}

/// The volume and the target of the row of an abandoned target; `None` if its key is damaged as well.
fn read_abandoned_key(key: &[u8], is_released: bool) -> Option<(VolumeKey, Abandoned)> {
    let (volume, path) = read_volume_key(key)?;
    let path = Path::new(std::str::from_utf8(path).ok()?);
    let allocation = VolumeLayout::allocation_of(path)?;
    Some((volume, Abandoned { path: path.to_owned(), allocation, is_released }))
}

/// The abandoned targets, with their volumes: also from damaged rows (RES-08), which may still be in their place.
pub(crate) fn abandoned_targets(loaded: &Loaded<AbandonedRow>) -> Vec<(VolumeKey, Abandoned)> {
    let damaged = loaded.damaged.iter().map(|damaged| (&damaged.key, false));
    let rows = loaded.rows.iter().map(|(key, row)| (key, row.is_released)).chain(damaged);
    rows.filter_map(|(key, is_released)| read_abandoned_key(key, is_released)).collect()
}

pub(super) fn audit_key(volume: &VolumeKey, number: u64) -> Vec<u8> {
    [&key(volume)[..], &number.to_be_bytes()].concat()
}

/// Makes a row of a layout: it is written in that layout, and the decoded value is checked.
macro_rules! row {
    ($row:ident, $layout:ty, $table:expr) => {
        row!($row, $layout, $table, {
            const SCHEMA: u16 = 1;
        });
    };
    ($row:ident, $layout:ty, $table:expr, { $($more:tt)* }) => {
        impl Record for $row {
            const TABLE: Table = $table;
            $($more)*
        }

        impl Serialize for $row {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$layout>::of(&self.0).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $row {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$layout>::deserialize(deserializer)?.read().map(Self).map_err(D::Error::custom)
            }
        }
    };
}
pub(crate) use row;

row!(VolumeRow, Box<VolumePart>, VOLUME_TABLE, {
    const SCHEMA: u16 = 3;

    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        of_earlier_schema::<Box<VolumePart>>(schema, payload).map(Self)
    }
});
row!(ClaimRow, Box<ClaimPart>, CLAIM_TABLE, {
    const SCHEMA: u16 = 3;

    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        of_earlier_schema::<Box<ClaimPart>>(schema, payload).map(Self)
    }

    fn instead_of_damaged(key: &[u8]) -> Option<Operation> {
        lost_claim(key)
    }
});
row!(AuditRow, AuditPart, AUDIT_TABLE);

/// Decodes a row of schema 1 or 2. It has the same layout, without the later marks.
fn of_earlier_schema<P: Part + DeserializeOwned>(schema: u16, payload: &[u8]) -> Result<P::Of, DecodeError> {
    if !matches!(schema, 1 | 2) {
        return Err(DecodeError::UnknownSchema { schema });
    }
    decode_payload::<P>(payload)?.read().map_err(|reason| DecodeError::Malformed { reason })
}

#[derive(Serialize, Deserialize)]
struct VolumePart {
    spec: Box<SpecPart>,
    existence: Option<ExistencePart>,
    attach: StepPart<AttachPart, Context>,
    stage: StepPart<StagePart, ProofPart>,
}

impl Part for VolumePart {
    type Of = VolumeRecord;

    fn of(it: &VolumeRecord) -> Self {
        let VolumeRecord { spec, existence, attach, stage } = it;
        Self {
            spec: Part::of(spec),
            existence: Part::of(existence),
            attach: Part::of(attach),
            stage: Part::of(stage),
        }
    }

    fn read(self) -> Result<VolumeRecord, String> {
        Ok(VolumeRecord {
            spec: self.spec.read()?,
            existence: self.existence.read()?,
            attach: self.attach.read()?,
            stage: self.stage.read()?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct ClaimPart {
    spec: Box<SpecPart>,
    allocation: String,
    usage: UsagePart,
    target_path: PathPart,
    desired: DesiredPart,
    run: u64,
    number: u64,
    attach: Option<IntentPart<AttachPart>>,
    publish: StepPart<PublishPart, ProofPart>,
}

impl Part for ClaimPart {
    type Of = ClaimRecord;

    fn of(it: &ClaimRecord) -> Self {
        let ClaimRecord { spec, allocation, usage, target_path, desired, run, number, attach, publish } = it;
        Self {
            spec: Part::of(spec),
            allocation: allocation.as_str().to_owned(),
            usage: Part::of(usage),
            target_path: Part::of(target_path),
            desired: Part::of(desired),
            run: run.get(),
            number: *number,
            attach: Part::of(attach),
            publish: Part::of(publish),
        }
    }

    fn read(self) -> Result<ClaimRecord, String> {
        Ok(ClaimRecord {
            spec: self.spec.read()?,
            allocation: AllocationId::new(&self.allocation).map_err(|error| error.to_string())?,
            usage: self.usage.read()?,
            target_path: self.target_path.read()?,
            desired: self.desired.read()?,
            run: RunNumber::new(self.run),
            number: self.number,
            attach: self.attach.read()?,
            publish: self.publish.read()?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct AuditPart {
    number: u64,
    spec: Box<SpecPart>,
    reason: String,
    at: TimePart,
    left: Vec<String>,
}

impl Part for AuditPart {
    type Of = Audit;

    fn of(it: &Audit) -> Self {
        let Audit { number, spec, forced: Forced { volume: _, reason, at, left } } = it;
        Self {
            number: *number,
            spec: Part::of(spec),
            reason: reason.clone(),
            at: Part::of(at),
            left: left.clone(),
        }
    }

    fn read(self) -> Result<Audit, String> {
        let (spec, at) = (self.spec.read()?, self.at.read()?);
        let forced = Forced { volume: spec.key.clone(), reason: self.reason, at, left: self.left };
        Ok(Audit { number: self.number, spec, forced })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::stage::{audit, claim, create_args, volume, volume_key};
    use super::*;
    use crate::csi::Secrets;
    use crate::mounts::{BlockDevice, DeviceNumber, MountIdentity, UniqueMountId};
    use crate::persister::{decode, encode};
    use crate::volume::{CreateArgs, Desired, Mark, Origin, Proof, Step, Towards};

    fn data() -> VolumeKey {
        volume_key("d", "v")
    }

    fn comes_back<R: Record + PartialEq + std::fmt::Debug>(row: R) {
        assert_eq!(decode::<R>(&encode(&row)).unwrap(), row);
    }

    fn refusal<R: Record + std::fmt::Debug>(row: &R) -> String {
        decode::<R>(&encode(row)).unwrap_err().to_string()
    }

    fn has_bytes<R: Record + PartialEq + std::fmt::Debug>(row: R, bytes: &[u8]) {
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<R>(bytes).unwrap(), row);
    }

    /// Holds C133.
    #[test]
    fn what_a_ledger_holds_comes_back_from_its_rows_as_it_was_v5_v10() {
        comes_back(VolumeRow(volume(data()).into()));
        comes_back(AuditRow(audit(data(), 1)));
        let Step::Up(intent, _) = claim(data(), "a1").publish else { panic!("it is published") };
        let number = DeviceNumber { major: 7, minor: 3 };
        let block = |mount, sequence| {
            let mark = Mark::Device { mount, device: BlockDevice { number, sequence } };
            Proof { boot_id: "b".into(), mark: Some(mark) }
        };
        let mounted = MountIdentity::Unique(UniqueMountId(8));
        let unmarked = Proof { boot_id: "b".into(), mark: None };
        let unique = Mark::Mount(MountIdentity::Unique(UniqueMountId(1 << 31)));
        let unique = Proof { boot_id: "b".into(), mark: Some(unique) };
        for publish in [
            Step::Down,
            Step::GoingUp(intent.clone()),
            Step::Up(intent.clone(), block(None, None)),
            Step::Up(intent.clone(), block(Some(mounted), Some(5))),
            Step::Up(intent.clone(), unmarked),
            Step::Up(intent.clone(), unique),
            Step::GoingDown(intent.clone()),
            Step::Unknown(Towards::Up, intent.clone()),
            Step::Unknown(Towards::Down, intent),
        ] {
            let record = ClaimRecord { publish, desired: Desired::Held, attach: None, ..claim(data(), "a1") };
            comes_back(ClaimRow(record.into()));
        }
        let registered =
            VolumeRecord { existence: None, attach: Step::Down, stage: Step::Down, ..volume(data()) };
        comes_back(VolumeRow(registered.into()));
    }

    #[test]
    fn a_path_comes_back_byte_by_byte() {
        use std::os::unix::ffi::OsStringExt;
        let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/t/\xff".to_vec()));
        let record = ClaimRecord { target_path: odd, ..claim(data(), "a1") };
        comes_back(ClaimRow(record.into()));
    }

    /// The encoding of this version. It must stay readable: a change of these bytes, in our code or in a library, needs a
    /// new schema and a migration.
    #[test]
    fn p2_rows_of_volumes_have_these_bytes_whatever_library_writes_them() {
        has_bytes(
            VolumeRow(volume(data()).into()),
            b"\x03\x00\x01d\x01v\x03zfs\x02id\x01\x04pool\x01t\x01\x01\x05d-v-1\x01\x05\x06\x01\x16MUL\
                TI_NODE_READER_ONLY\x00\x01\x01p\x011\x01\x00\x01s\x01\x01\x01\x04zone\x01a\x00\x01\x01m\
                \x012\x00\x02\x04\x01\x05\x02id\x01\x04pool\x01t\x01\x01\x01o\x01\x01\x04zone\x01a\x02\
                \x01n\x12SINGLE_NODE_WRITER\x01\x03xfs\x01\tpw=sesame\x01g\x04\x01\x03dev\x03sda\x01\x00\
                \x02/s\x01\x03dev\x03sda\x12SINGLE_NODE_WRITER\x01\x03xfs\x01\tpw=sesame\x01g\x04",
        );
        has_bytes(
            ClaimRow(claim(data(), "a1").into()),
            b"\x03\x00\x01d\x01v\x03zfs\x02id\x01\x04pool\x01t\x02a1\x12SINGLE_NODE_WRITER\x01\x03xfs\
                \x01\tpw=sesame\x01g\x01\x00\x02/t\x01\x03\x02\x01\x01n\x12SINGLE_NODE_WRITER\x01\x03xfs\
                \x01\tpw=sesame\x01g\x04\x02\x00\x02/t\x01\x00\x02/s\x01\x03dev\x03sda\x12SINGLE_NODE_WR\
                ITER\x01\x03xfs\x01\tpw=sesame\x01g\x01\x04\x04boot\x01\x00F\x01\t\x08\x01\x00\x01/\x03x\
                fs",
        );
        has_bytes(LostClaimRow, b"\x01\x00");
        has_bytes(AbandonedRow { is_released: true }, b"\x02\x00\x01");
        assert_eq!(decode::<AbandonedRow>(b"\x01\x00").unwrap(), AbandonedRow { is_released: false });
        has_bytes(
            AuditRow(audit(data(), 1)),
            b"\x01\x00\x01\x01d\x01v\x03zfs\x02id\x01\x04pool\x01t\x03kim\x07\x01\x05stage",
        );
    }

    #[test]
    fn p2_rows_of_earlier_schemas_are_read_as_they_were() {
        let (volume, claim) = (VolumeRow(volume(data()).into()), ClaimRow(claim(data(), "a1").into()));
        for schema in [1_u16, 2] {
            let earlier = |row: Vec<u8>| [&schema.to_le_bytes()[..], &row[2..]].concat();
            assert_eq!(decode::<VolumeRow>(&earlier(encode(&volume))).unwrap(), volume);
            assert_eq!(decode::<ClaimRow>(&earlier(encode(&claim))).unwrap(), claim);
        }
    }

    /// A device at the path, without the sequence number of its disk.
    #[test]
    fn p2_a_block_device_that_an_earlier_version_recorded_is_read_v7() {
        let number = DeviceNumber { major: 7, minor: 3 };
        let with = |sequence| {
            let mut claim = claim(data(), "a1");
            let Step::Up(_, proof) = &mut claim.publish else { panic!("it is published") };
            proof.mark = Some(Mark::Device { mount: None, device: BlockDevice { number, sequence } });
            ClaimRow(claim.into())
        };
        let present = encode(&with(Some(5)));
        let block = b"\x04boot\x01\x03\x00\x07\x03\x01\x05";
        assert!(present.ends_with(block), "{}", present.escape_ascii());
        let before = [&2_u16.to_le_bytes()[..], &present[2..present.len() - block.len()]].concat();
        let earlier = [&before[..], b"\x04boot\x01\x01\x07\x03"].concat();
        assert_eq!(decode::<ClaimRow>(&earlier).unwrap(), with(None));
    }

    #[test]
    fn p2_a_mount_that_is_known_by_its_unique_id_has_these_bytes() {
        let mut unique = claim(data(), "a1");
        let Step::Up(_, proof) = &mut unique.publish else { panic!("it is published") };
        proof.mark = Some(Mark::Mount(MountIdentity::Unique(UniqueMountId(9))));
        let bytes = encode(&ClaimRow(unique.into()));
        assert!(bytes.ends_with(b"\x04boot\x01\x02\t"), "{}", bytes.escape_ascii());
    }

    #[test]
    fn rows_of_one_volume_lie_below_its_key_and_no_others_do() {
        assert_eq!(key(&data()), b"\0\x01d\0\x01v");
        assert_eq!(claim_key(&data(), &AllocationId::new("a1").unwrap()), b"\0\x01d\0\x01va1");
        assert_eq!(audit_key(&data(), 0x0102), b"\0\x01d\0\x01v\0\0\0\0\0\0\x01\x02");
        let read = read_claim_key(b"\0\x01d\0\x01va1");
        assert_eq!(read, Some((data(), AllocationId::new("a1").unwrap())));
        let path = Path::new("/per-alloc/p/csi/node/zfs/per-alloc/a1/d/v/rw");
        let of_target = abandoned_key(&data(), path);
        assert_eq!(of_target, b"\0\x01d\0\x01v/per-alloc/p/csi/node/zfs/per-alloc/a1/d/v/rw");
        let allocation = AllocationId::new("a1").unwrap();
        let target = Abandoned { path: path.to_owned(), allocation, is_released: true };
        assert_eq!(read_abandoned_key(&of_target, true), Some((data(), target)));
        assert_eq!(read_abandoned_key(b"\0\x01d\0\x01v/t", true), None);
        for damaged in
            [&b""[..], b"\0\x01d\0\x01v", b"\0\x01d\0\x09va1", b"\0\x01/\0\x01va1", b"\0\x01d\0\x01v/"]
        {
            assert_eq!(read_claim_key(damaged), None, "{}", damaged.escape_ascii());
        }
        for neighbour in [volume_key("d", "va"), volume_key("d", "v-1"), volume_key("dv", "v")] {
            assert!(!key(&neighbour).starts_with(&key(&data())), "{neighbour}");
        }
    }

    #[test]
    fn a_row_that_says_what_no_message_may_say_is_refused_v6() {
        for path in ["t", "/a/../t", "", "/t\0"] {
            let record = ClaimRecord { target_path: path.into(), ..claim(data(), "a1") };
            let told = refusal(&ClaimRow(record.into()));
            assert!(told.contains("not absolute"), "{told}");
        }
        let mut everywhere = claim(data(), "a1");
        everywhere.attach.as_mut().expect("it is attached").args.node_id.clear();
        let told = refusal(&ClaimRow(everywhere.into()));
        assert!(told.contains("names no node"), "{told}");
        let mut nameless = volume(data());
        nameless.existence = nameless.existence.map(|mut existence| {
            let args = CreateArgs { name: String::new(), ..create_args() };
            existence.origin = Origin::Created(args.into());
            existence
        });
        let told = refusal(&VolumeRow(nameless.into()));
        assert!(told.contains("no name"), "{told}");
    }

    #[test]
    fn a_row_with_a_name_that_would_leave_its_directory_is_refused_v6() {
        let sound = encode(&AuditRow(audit(volume_key("d", "v-v"), 1)));
        let at = sound.windows(3).position(|bytes| bytes == b"v-v").expect("it has its name");
        let mut forged = sound;
        forged[at..at + 3].copy_from_slice(b"../");
        let told = decode::<AuditRow>(&forged).unwrap_err().to_string();
        assert!(told.contains("volume name"), "{told}");
    }

    /// Holds C025.
    #[test]
    fn secrets_are_in_no_row_and_mount_flags_are_in_no_dump_of_one_v11() {
        let row = VolumeRow(volume(data()).into());
        let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        let Some(Origin::Created(args)) = row.0.existence.clone().map(|existence| existence.origin) else {
            panic!("it was created")
        };
        // The call has secrets; only its arguments are kept, which have none.
        let request = args.request(Secrets::new([("user".to_owned(), "canary".to_owned())].into()));
        assert_eq!(request.secrets.expose()["user"], "canary");
        assert!(holds(&encode(&row), &request.name), "a retry repeats its name (C050)");
        assert!(!holds(&encode(&row), "canary"));
        assert!(holds(&encode(&row), "pw=sesame"), "a retry repeats the flags (C013)");
        assert!(!format!("{row:?} {:?}", ClaimRow(claim(data(), "a1").into())).contains("sesame"));
    }
}
