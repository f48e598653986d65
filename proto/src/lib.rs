//! The wire protocols of Callboard: the protocol files, the code generated from them, and their descriptors.
//!
//! | module | protocol |
//! |---|---|
//! | [`csi::v1`] | CSI v1, to storage plugins |
//! | [`goplugin`] | the services that go-plugin runs inside each plugin process |
//! | [`base`], [`drivers`], [`device`] | Nomad's plugin services, to task drivers and device plugins |
//! | [`hclspec`], [`structs`] | the types that those share: schemas, attributes, measured values |
//! | [`admin::v1`] | the admin socket, between the command line and a running host |
//! | [`marks`] | no protocol: it reports which parts of these are secret, and which may still change |

pub mod marks;
mod withheld;

/// The Container Storage Interface.
pub mod csi {
    /// CSI v1, specification release 1.12.0.
    ///
    /// The debug output of its messages shows neither secrets nor mount flags (C025).
    #[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("csi.v1");
        include!(concat!(env!("OUT_DIR"), "/csi.v1.secretive.rs"));
    }
}

/// The services that go-plugin runs inside each plugin process: broker, controller, stdio (package `plugin`).
#[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated code")]
pub mod goplugin {
    tonic::include_proto!("plugin");
}

/// The services that every plugin of Nomad has beside its own service (D102).
///
/// The debug output of its messages does not show the configuration of a plugin.
pub use hashicorp::nomad::plugins::base::proto as base;

/// The services of a task driver (D103).
///
/// The debug output of its messages shows neither environment nor configuration nor input and output of tasks.
pub use hashicorp::nomad::plugins::drivers::proto as drivers;

/// The services of a device plugin (D104).
///
/// The debug output of its messages does not show the environment that a task gets.
pub use hashicorp::nomad::plugins::device;

/// The schema by which a plugin describes its configuration (D113).
pub use hashicorp::nomad::plugins::shared::hclspec;

/// Attributes, measured values, and the detail of an error that says whether a retry can help (D110).
pub use hashicorp::nomad::plugins::shared::structs;

/// Nomad's packages by their full names, under which the generated code of one finds another.
#[allow(missing_docs, unused_qualifications, unreachable_pub, clippy::all, reason = "generated code")]
mod hashicorp {
    pub mod nomad {
        pub mod plugins {
            pub mod base {
                pub mod proto {
                    tonic::include_proto!("hashicorp.nomad.plugins.base.proto");
                    include!(concat!(env!("OUT_DIR"), "/hashicorp.nomad.plugins.base.proto.secretive.rs"));
                }
            }
            pub mod drivers {
                pub mod proto {
                    tonic::include_proto!("hashicorp.nomad.plugins.drivers.proto");
                    include!(concat!(env!("OUT_DIR"), "/hashicorp.nomad.plugins.drivers.proto.secretive.rs"));
                }
            }
            pub mod device {
                tonic::include_proto!("hashicorp.nomad.plugins.device");
                include!(concat!(env!("OUT_DIR"), "/hashicorp.nomad.plugins.device.secretive.rs"));
            }
            pub mod shared {
                pub mod hclspec {
                    tonic::include_proto!("hashicorp.nomad.plugins.shared.hclspec");
                }
                pub mod structs {
                    tonic::include_proto!("hashicorp.nomad.plugins.shared.structs");
                }
            }
        }
    }
}

/// The admin socket of a running host.
pub mod admin {
    /// Its first version.
    ///
    /// The debug output of its messages shows no mount flags (C025).
    #[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("callboard.admin.v1");
        include!(concat!(env!("OUT_DIR"), "/callboard.admin.v1.secretive.rs"));
    }
}

/// The descriptors of every protocol here and of its imports: an encoded
/// `google.protobuf.FileDescriptorSet`.
///
/// Custom options are in it, so that the secret and alpha marks of CSI can be read from it.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("descriptors");
