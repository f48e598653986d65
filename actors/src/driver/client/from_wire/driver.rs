//! Reads the answers of a driver about itself.

use std::collections::HashMap;

use callboard_proto::drivers as wire;
use callboard_proto::structs;

use super::{Fault, MESSAGE_BYTES_MAX, network_mode, unknown};
use crate::driver::Fingerprint;
use crate::driver::{
    Attribute, AttributeValue, Attributes, DriverCapabilities, DriverHealth, FsIsolation, MountSupport,
    NetworkMode,
};
use crate::vocabulary::text::{bounded, quoted};

/// Most attributes that are read of one fingerprint.
const ATTRIBUTES_MAX: usize = 4_096;

pub(in crate::driver) fn fingerprint(answer: wire::FingerprintResponse) -> Result<Fingerprint, Fault> {
    use wire::fingerprint_response::HealthState;
    if !answer.err.is_empty() {
        return Err(format!("the driver says: {}", bounded(&answer.err, MESSAGE_BYTES_MAX)));
    }
    let health = match HealthState::try_from(answer.health) {
        Ok(HealthState::Undetected) => DriverHealth::Undetected,
        Ok(HealthState::Unhealthy) => DriverHealth::Unhealthy,
        Ok(HealthState::Healthy) => DriverHealth::Healthy,
        Err(_) => return unknown("health", answer.health),
    };
    let attributes = attributes(answer.attributes)?;
    let description = bounded(&answer.health_description, MESSAGE_BYTES_MAX);
    Ok(Fingerprint { health, description, attributes })
}

fn attributes(attributes: HashMap<String, structs::Attribute>) -> Result<Attributes, Fault> {
    use structs::attribute::Value;
    if attributes.len() > ATTRIBUTES_MAX {
        return Err(format!("{} attributes; at most {ATTRIBUTES_MAX} are read", attributes.len()));
    }
    let mut read = Attributes::new();
    for (name, attribute) in attributes {
        let value = match attribute.value {
            Some(Value::FloatVal(value)) if value.is_finite() => AttributeValue::Float(value),
            Some(Value::FloatVal(value)) => {
                return Err(format!("attribute \"{}\" is {value}", quoted(&name)));
            }
            Some(Value::IntVal(value)) => AttributeValue::Integer(value),
            Some(Value::StringVal(value)) => AttributeValue::Text(value),
            Some(Value::BoolVal(value)) => AttributeValue::Bool(value),
            None => return Err(format!("attribute \"{}\" has no value", quoted(&name))),
        };
        read.insert(name, Attribute { value, unit: attribute.unit });
    }
    Ok(read)
}

pub(in crate::driver) fn capabilities(
    answer: wire::CapabilitiesResponse,
) -> Result<DriverCapabilities, Fault> {
    use wire::driver_capabilities::{FsIsolation as Fs, MountConfigs};
    let told = answer.capabilities.ok_or("there are no capabilities in it")?;
    let fs_isolation = match Fs::try_from(told.fs_isolation) {
        Ok(Fs::None) => FsIsolation::None,
        Ok(Fs::Chroot) => FsIsolation::Chroot,
        Ok(Fs::Image) => FsIsolation::Image,
        Ok(Fs::Unveil) => FsIsolation::Unveil,
        Err(_) => return unknown("fs_isolation", told.fs_isolation),
    };
    let mounts = match MountConfigs::try_from(told.mount_configs) {
        Ok(MountConfigs::NoMounts) => MountSupport::None,
        Ok(_) => MountSupport::Any,
        Err(_) => return unknown("mount_configs", told.mount_configs),
    };
    let modes: Result<Vec<NetworkMode>, Fault> =
        told.network_isolation_modes.iter().map(|mode| network_mode(*mode)).collect();
    let mut network_modes = modes?;
    network_modes.sort_unstable();
    network_modes.dedup();
    Ok(DriverCapabilities {
        send_signals: told.send_signals,
        exec: told.exec,
        fs_isolation,
        network_modes,
        must_create_network: told.must_create_network,
        mounts,
        disable_log_collection: told.disable_log_collection,
        dynamic_workload_users: told.dynamic_workload_users,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(value: structs::attribute::Value) -> structs::Attribute {
        structs::Attribute { value: Some(value), unit: "MiB".to_owned() }
    }

    #[test]
    fn a_fingerprint_is_read_as_it_is_told_or_refused() {
        use structs::attribute::Value;
        let told = [
            ("f", Value::FloatVal(0.5), AttributeValue::Float(0.5)),
            ("i", Value::IntVal(-7), AttributeValue::Integer(-7)),
            ("s", Value::StringVal("x".to_owned()), AttributeValue::Text("x".to_owned())),
            ("b", Value::BoolVal(true), AttributeValue::Bool(true)),
        ];
        let healths =
            [(0, DriverHealth::Undetected), (1, DriverHealth::Unhealthy), (2, DriverHealth::Healthy)];
        for (number, health) in healths {
            let attributes = told.clone().map(|(name, value, _)| (name.to_owned(), attribute(value))).into();
            let answer = wire::FingerprintResponse {
                health: number,
                health_description: "so it is".to_owned(),
                attributes,
                err: String::new(),
            };
            let read = told
                .clone()
                .map(|(name, _, value)| (name.to_owned(), Attribute { value, unit: "MiB".to_owned() }));
            let read = Fingerprint { health, description: "so it is".to_owned(), attributes: read.into() };
            assert_eq!(fingerprint(answer), Ok(read));
        }
        let refused = |change: fn(&mut wire::FingerprintResponse)| {
            let mut answer = wire::FingerprintResponse { health: 2, ..Default::default() };
            change(&mut answer);
            fingerprint(answer).expect_err("it is malformed")
        };
        assert_eq!(refused(|answer| answer.err = "no".to_owned()), "the driver says: no");
        assert_eq!(refused(|answer| answer.health = 9), "health is 9, which the protocol does not know");
        for number in [f64::NAN, f64::INFINITY] {
            let attributes = HashMap::from([("load".to_owned(), attribute(Value::FloatVal(number)))]);
            let answer = wire::FingerprintResponse { health: 2, attributes, ..Default::default() };
            assert_eq!(fingerprint(answer), Err(format!("attribute \"load\" is {number}")));
        }
    }

    #[test]
    fn a_fingerprint_has_so_many_attributes_and_no_more() {
        let answer = |count: usize| {
            let one = |number| (format!("{number}"), attribute(structs::attribute::Value::IntVal(1)));
            let attributes = (0..count).map(one).collect();
            fingerprint(wire::FingerprintResponse { health: 2, attributes, ..Default::default() })
        };
        assert_eq!(answer(ATTRIBUTES_MAX).map(|read| read.attributes.len()), Ok(ATTRIBUTES_MAX));
        assert!(answer(ATTRIBUTES_MAX + 1).is_err());
    }

    #[test]
    fn what_a_driver_can_do_is_read_as_it_is_told_or_refused() {
        let told = |fs_isolation, mount_configs, network_isolation_modes: &[i32]| {
            let told = wire::DriverCapabilities {
                send_signals: true,
                exec: false,
                fs_isolation,
                network_isolation_modes: network_isolation_modes.to_vec(),
                must_create_network: true,
                mount_configs,
                disable_log_collection: false,
                dynamic_workload_users: true,
            };
            capabilities(wire::CapabilitiesResponse { capabilities: Some(told) })
        };
        let read = |fs_isolation, mounts, network_modes: &[NetworkMode]| DriverCapabilities {
            send_signals: true,
            exec: false,
            fs_isolation,
            network_modes: network_modes.to_vec(),
            must_create_network: true,
            mounts,
            disable_log_collection: false,
            dynamic_workload_users: true,
        };
        use {FsIsolation as Fs, MountSupport as Mounts, NetworkMode as Net};
        for (number, fs) in [(0, Fs::None), (1, Fs::Chroot), (2, Fs::Image), (3, Fs::Unveil)] {
            assert_eq!(told(number, 1, &[]), Ok(read(fs, Mounts::None, &[])));
        }
        let all = [Net::Host, Net::Group, Net::Task, Net::None];
        assert_eq!(told(0, 0, &[3, 1, 1, 0, 2]), Ok(read(Fs::None, Mounts::Any, &all)));
        assert!(told(0, 2, &[]).is_err());
        assert!(told(0, 9, &[]).is_err());
        assert!(told(9, 0, &[]).is_err());
        assert!(told(0, 0, &[9]).is_err());
        assert!(capabilities(wire::CapabilitiesResponse::default()).is_err());
    }

    #[test]
    fn an_error_is_short_however_long_the_name_of_an_attribute() {
        let attributes = HashMap::from([("\u{1b}".repeat(1 << 16), structs::Attribute::default())]);
        let fault = fingerprint(wire::FingerprintResponse { attributes, health: 2, ..Default::default() });
        assert!(fault.expect_err("it has no value").len() < 4_096);
    }
}
