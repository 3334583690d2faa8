//! Delivers the events of a request in Envoy's order: headers, chunks, callouts, local replies, the
//! end.

use super::context::{CalloutAnswer, Context, LocalReply};
use super::vm::{number, size};
use super::{Action, DeferredAction, Vm, VmError};
use crate::transcript::Headers;

impl Vm {
    /// Starts a new stream with its request headers. Its context is a child of the current root
    /// context.
    ///
    /// # Errors
    /// `Trap`, `Dead`.
    pub fn request(&mut self, headers: Headers, end_of_stream: bool) -> Result<(u32, Action), VmError> {
        let (root, count) = (self.root, size(&headers));
        let id = self.new_context(Some(root));
        self.invoke("proxy_on_context_create", &[number(id), number(root)])?;
        let now = u64::try_from(self.store.data().now.as_nanos()).expect("a time before the year 2500");
        let context = self.stream_mut("proxy_on_request_headers", id)?;
        context.properties.insert(b"request\0time".to_vec(), now.to_le_bytes().to_vec());
        context.request_headers = headers;
        context.request_open = true;
        let answer =
            self.invoke("proxy_on_request_headers", &[number(id), count, i32::from(end_of_stream)])?;
        let action = self.finish_callback(id, answer)?;
        self.stream_mut("proxy_on_request_headers", id)?.request_open = action == Action::Pause;
        Ok((id, action))
    }

    /// Delivers the response headers of the application, or of Envoy's own local reply, which also
    /// passes through the filter.
    ///
    /// # Errors
    /// `OutOfTurn` for a stream that is unknown or has ended; `Trap`, `Dead`.
    pub fn response(&mut self, id: u32, headers: Headers, end_of_stream: bool) -> Result<Action, VmError> {
        self.live_mut("proxy_on_response_headers", id)?;
        self.response_head(id, headers, end_of_stream)
    }

    /// Delivers a chunk of the response body. A chunk on which the filter pauses is kept and
    /// delivered again together with the next one.
    ///
    /// # Errors
    /// `OutOfTurn` for a stream that is unknown or has ended; `Trap`, `Dead`.
    pub fn response_body(&mut self, id: u32, bytes: &[u8], end_of_stream: bool) -> Result<Action, VmError> {
        self.live_mut("proxy_on_response_body", id)?;
        self.response_chunk(id, bytes, end_of_stream)
    }

    /// Delivers the response to a callout. Envoy calls the root context of the calling stream, not
    /// the stream.
    ///
    /// # Errors
    /// `OutOfTurn` for a token that is not in progress; `Trap`, `Dead`.
    pub fn callout_answer(&mut self, token: u32, answer: CalloutAnswer) -> Result<(), VmError> {
        self.callout(token, Some(answer))
    }

    /// Delivers the failure of a callout (reset, too large, timeout in its body): no headers, no
    /// body, no maps.
    ///
    /// # Errors
    /// `OutOfTurn` for a token that is not in progress; `Trap`, `Dead`.
    pub fn callout_failed(&mut self, token: u32) -> Result<(), VmError> {
        self.callout(token, None)
    }

    /// Ends a stream, or a root context that no request uses any more.
    ///
    /// # Errors
    /// `OutOfTurn` for a context that is unknown; `Trap`, `Dead`.
    pub fn finish(&mut self, id: u32) -> Result<(), VmError> {
        self.stream_mut("proxy_on_delete", id)?;
        self.invoke("proxy_on_delete", &[number(id)])?;
        let host = self.store.data_mut();
        host.running.contexts.remove(&id);
        host.running.deferred.clear();
        Ok(())
    }

    /// Returns a stream; `None` after it is finished.
    pub fn stream(&self, id: u32) -> Option<&Context> {
        self.store.data().running.contexts.get(&id)
    }

    /// Sets a property of a stream or root context for `proxy_get_property`: `set_property(id,
    /// &["response", "flags"], …)`. The bytes are those of Envoy: text unmodified, numbers as 8
    /// bytes, little endian.
    ///
    /// # Errors
    /// `OutOfTurn` for a context that is unknown.
    pub fn set_property(&mut self, id: u32, path: &[&str], value: &[u8]) -> Result<(), VmError> {
        let context = self.stream_mut("proxy_get_property", id)?;
        context.properties.insert(path.join("\0").into_bytes(), value.to_vec());
        Ok(())
    }

    fn response_head(&mut self, id: u32, headers: Headers, end_of_stream: bool) -> Result<Action, VmError> {
        let count = size(&headers);
        let context = self.stream_mut("proxy_on_response_headers", id)?;
        context.response_headers = headers;
        context.response_open = true;
        context.response_seen = true;
        let answer =
            self.invoke("proxy_on_response_headers", &[number(id), count, i32::from(end_of_stream)])?;
        let action = self.finish_callback(id, answer)?;
        let context = self.stream_mut("proxy_on_response_headers", id)?;
        context.response_open = action == Action::Pause;
        context.response_started |= action == Action::Continue;
        Ok(action)
    }

    fn response_chunk(&mut self, id: u32, bytes: &[u8], end_of_stream: bool) -> Result<Action, VmError> {
        let chunk = self.stream_mut("proxy_on_response_body", id)?.chunk.get_or_insert_default();
        chunk.extend(bytes);
        let length = size(chunk);
        let answer =
            self.invoke("proxy_on_response_body", &[number(id), length, i32::from(end_of_stream)])?;
        let action = self.finish_callback(id, answer)?;
        let context = self.stream_mut("proxy_on_response_body", id)?;
        if action == Action::Continue {
            let chunk = context.chunk.take().unwrap_or_default();
            context.sent_body.extend(chunk);
        }
        Ok(action)
    }

    fn callout(&mut self, token: u32, answer: Option<CalloutAnswer>) -> Result<(), VmError> {
        let callback = "proxy_on_http_call_response";
        let root = self.store.data_mut().running.callouts.remove(&token);
        let root =
            root.ok_or(VmError::OutOfTurn { callback, id: token, reason: "no callout in progress" })?;
        let counts = answer.as_ref().map_or([0; 3], |a| [size(&a.headers), size(&a.body), size(&a.trailers)]);
        self.stream_mut(callback, root)?.callout = answer;
        let arguments = [number(root), number(token), counts[0], counts[1], counts[2]];
        self.invoke(callback, &arguments)?;
        self.stream_mut(callback, root)?.callout = None;
        self.run_deferred()?;
        Ok(())
    }

    /// Performs what the filter requested; after a local reply or a reset it does not continue.
    fn finish_callback(&mut self, id: u32, answer: Option<i32>) -> Result<Action, VmError> {
        let asked = self.run_deferred()?.contains(&id);
        Ok(if asked || answer.is_some_and(|answer| answer != 0) { Action::Pause } else { Action::Continue })
    }

    /// Performs the actions that the callback deferred, and returns their contexts.
    pub(super) fn run_deferred(&mut self) -> Result<Vec<u32>, VmError> {
        let asked = std::mem::take(&mut self.store.data_mut().running.deferred);
        let ids = asked.iter().map(|(id, _)| *id).collect();
        for (id, after) in asked {
            let Some(context) =
                self.store.data_mut().running.contexts.get_mut(&id).filter(|context| context.root != id)
            else {
                continue;
            };
            match after {
                DeferredAction::Reset => context.reset = true,
                DeferredAction::Reply(reply) => self.reply(id, reply)?,
            }
        }
        Ok(ids)
    }

    /// Envoy sends a local reply that precedes any response through all filters, including the one
    /// that replies. A reply in place of a response is sent directly, and after the start of the
    /// response the stream can only be reset.
    fn reply(&mut self, id: u32, reply: LocalReply) -> Result<(), VmError> {
        let context = self.stream_mut("proxy_send_local_response", id)?;
        if context.response_started {
            context.reset = true;
        } else if context.ended() || context.response_seen {
            context.response_headers = reply.head();
            context.sent_body.clone_from(&reply.body);
            context.local_reply = Some(reply);
        } else {
            let (head, body) = (reply.head(), reply.body.clone());
            context.local_reply = Some(reply);
            let head = self.response_head(id, head, body.is_empty())?;
            if head == Action::Continue && !body.is_empty() {
                self.response_chunk(id, &body, true)?;
            }
        }
        Ok(())
    }

    fn live_mut(&mut self, callback: &'static str, id: u32) -> Result<&mut Context, VmError> {
        let context = self.stream_mut(callback, id)?;
        if context.ended() {
            return Err(VmError::OutOfTurn { callback, id, reason: "the stream has ended" });
        }
        Ok(context)
    }

    fn stream_mut(&mut self, callback: &'static str, id: u32) -> Result<&mut Context, VmError> {
        let context = self.store.data_mut().running.contexts.get_mut(&id);
        context.ok_or(VmError::OutOfTurn { callback, id, reason: "no such context" })
    }
}

#[cfg(test)]
mod tests;
