//! The wire of Callboard and nothing else: protocol files of our own, the code generated from them, and their
//! descriptors.
//!
//! | module | what it speaks |
//! |---|---|
//! | [`csi::v1`] | CSI v1, to storage plugins |
//! | [`admin::v1`] | the admin socket, between the command line and a running host |
//! | [`marks`] | nothing: it tells which parts of these are secret, and which may still change |

pub mod marks;
mod withheld;

/// The Container Storage Interface.
pub mod csi {
    /// CSI v1, specification release 1.13.0.
    ///
    /// The debug output of its messages shows neither secrets nor mount flags (C025).
    #[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("csi.v1");
        include!(concat!(env!("OUT_DIR"), "/secretive.rs"));
    }
}

/// The admin socket of a running host.
pub mod admin {
    /// The first version of it.
    #[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("callboard.admin.v1");
    }
}

/// The descriptors of every protocol here and of what they import: an encoded
/// `google.protobuf.FileDescriptorSet`.
///
/// Custom options are in it, so that the secret and alpha marks of CSI can be read from it.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("descriptors");
