//! Bodies of requests and answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::{Response, StatusCode, header};
use serde_json::Value;

use crate::api_error::ApiError;

/// The body of an answer.
pub(crate) enum AnswerBody {
    /// All of it.
    Whole(Option<Bytes>),
    /// Piece by piece. Dropped when the client hangs up, which ends whatever feeds it.
    Pieces(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => {
                pieces.as_mut().poll_next(context).map(|piece| Some(Ok(Frame::data(piece?))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// Reads the body of a request.
pub(crate) async fn read(
    body: Incoming,
    limit: usize,
    timeout: Duration,
) -> Result<Bytes, ApiError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(ApiError::too_large(limit));
    }
    match tokio::time::timeout(timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::too_large(limit))
        }
        Ok(Err(error)) => Err(ApiError::bad_request(format!("the body broke off: {error}"))),
        Err(_) => {
            let message = format!("the body took longer than {} s", timeout.as_secs());
            Err(ApiError::timeout(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// An answer of bytes.
pub(crate) fn whole(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Some(bytes)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// An answer of JSON.
pub(crate) fn json(value: &Value) -> Response<AnswerBody> {
    whole(StatusCode::OK, "application/json", value.to_string().into())
}

/// An error.
pub(crate) fn error(error: &ApiError) -> Response<AnswerBody> {
    let body = error.to_json().to_string();
    let mut response = whole(error.status, "application/json", body.into());
    if let Some(secs) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, secs.into());
    }
    response
}

/// An answer of server-sent events.
pub(crate) fn events(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Pieces(Box::pin(pieces)));
    let headers = response.headers_mut();
    let value = header::HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, value("no-cache"));
    // Proxies that collect answers would hold the pieces back.
    headers.insert("x-accel-buffering", value("no"));
    response
}
