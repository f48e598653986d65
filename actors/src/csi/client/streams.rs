//! The calls that are answered with a stream of blocks; alpha.

use std::fmt;
use std::time::Duration;

use tonic::{Request, Response, Status, Streaming};

use super::{Client, WireRequest, answered, failure};
use crate::csi::{
    BlockMetadataBatch, FailedCall, Failure, GetMetadataAllocatedRequest, GetMetadataDeltaRequest,
    MetadataStream,
};
use crate::lease::Lease;
use crate::pauses;

/// A request that is answered with a stream of blocks.
pub trait StreamRequest: WireRequest<Answer = BlockMetadataBatch> {
    /// The stream that its answers are checked against.
    fn stream(&self) -> MetadataStream;

    /// Sends its message.
    fn send(
        lease: &Lease,
        message: Request<Self::Message>,
    ) -> impl Future<Output = Result<Response<Streaming<Self::AnswerMessage>>, Status>> + Send;
}

macro_rules! streams {
    ($($request:ident => $method:ident,)*) => {
        $(impl StreamRequest for $request {
            fn stream(&self) -> MetadataStream {
                MetadataStream::new(self.max_results, self.starting_offset)
            }

            fn send(
                lease: &Lease,
                message: Request<Self::Message>,
            ) -> impl Future<Output = Result<Response<Streaming<Self::AnswerMessage>>, Status>> + Send {
                let mut client = lease.snapshot_metadata();
                async move { client.$method(message).await }
            }
        })*
    };
}

streams! {
    GetMetadataAllocatedRequest => get_metadata_allocated,
    GetMetadataDeltaRequest => get_metadata_delta,
}

impl Client {
    /// Calls `GetMetadataAllocated`; alpha.
    ///
    /// # Errors
    /// As [`Client::read_blocks`].
    pub async fn get_metadata_allocated(
        &self,
        request: &GetMetadataAllocatedRequest,
        deadline: Duration,
    ) -> Result<BlockReader<'_, GetMetadataAllocatedRequest>, FailedCall> {
        self.read_blocks(request, deadline).await
    }

    /// Calls `GetMetadataDelta`; alpha.
    ///
    /// # Errors
    /// As [`Client::read_blocks`].
    pub async fn get_metadata_delta(
        &self,
        request: &GetMetadataDeltaRequest,
        deadline: Duration,
    ) -> Result<BlockReader<'_, GetMetadataDeltaRequest>, FailedCall> {
        self.read_blocks(request, deadline).await
    }

    /// Begins to read a stream of blocks. The deadline applies to its beginning, and to each answer after the one before.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn read_blocks<R: StreamRequest>(
        &self,
        request: &R,
        deadline: Duration,
    ) -> Result<BlockReader<'_, R>, FailedCall> {
        let outcome = async {
            let refused = request.validate(self.lease.fingerprint());
            refused.map_err(|error| Failure::Request(error.fault))?;
            let sent = R::send(&self.lease, Request::new(request.to_wire()));
            answered(deadline, sent, &request.withheld()).await
        };
        let answers = self.noted(R::CALL, outcome).await?;
        let withheld = request.withheld().into_iter().map(str::to_owned).collect();
        Ok(BlockReader { client: self, answers, stream: request.stream(), deadline, withheld, failed: None })
    }
}

/// A stream of blocks. Dropping it ends the call.
pub struct BlockReader<'c, R: StreamRequest> {
    client: &'c Client,
    answers: Streaming<R::AnswerMessage>,
    stream: MetadataStream,
    deadline: Duration,
    /// The secrets of the request, which the plugin may repeat. Not shown.
    withheld: Vec<String>,
    failed: Option<FailedCall>,
}

impl<R: StreamRequest> BlockReader<'_, R> {
    /// The next blocks. `None` at the normal end, which alone proves that all blocks were read (C160).
    ///
    /// # Errors
    /// As [`Client::call`]. The stream has ended then, and each further call returns the same error; resume with a new request from
    /// [`Self::resume_at`] (C161).
    pub async fn next(&mut self) -> Result<Option<BlockMetadataBatch>, FailedCall> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let next = self.read().await;
        next.map_err(|failure| {
            let failed = self.client.failed(R::CALL, failure);
            self.failed = Some(failed.clone());
            failed
        })
    }

    /// The offset after the last block that was read, where to resume after an error (C161).
    #[must_use]
    pub const fn resume_at(&self) -> u64 {
        self.stream.resume_at()
    }

    async fn read(&mut self) -> Result<Option<BlockMetadataBatch>, Failure> {
        let message = match pauses::within(self.deadline, self.answers.message()).await {
            Ok(Ok(Some(message))) => message,
            Ok(Ok(None)) => return Ok(None),
            Ok(Err(status)) => {
                let withheld: Vec<&str> = self.withheld.iter().map(String::as_str).collect();
                return Err(failure(&status, &withheld));
            }
            Err(_) => return Err(Failure::DeadlineExceeded { after: self.deadline }),
        };
        let batch = R::answer_from_wire(message).map_err(Failure::Answer)?;
        self.stream.accept(&batch).map_err(Failure::Answer)?;
        Ok(Some(batch))
    }
}

impl<R: StreamRequest> fmt::Debug for BlockReader<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockReader")
            .field("call", &R::CALL)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
