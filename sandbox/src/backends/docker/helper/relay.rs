//! Connections of a sandbox's loopback, all carried over the standard streams of one program.
//!
//! A sandbox with an allow-list has no network. This program listens on its loopback, where the
//! proxy is said to be, and hands what comes to the backend, in whose process the proxy really is.
//! Another of its kind listens nowhere: it connects to ports of the loopback as the backend asks for it.
//!
//! Both ways go frames: a `u32` of how many bytes follow, a byte for the kind, a zero, a `u16` for
//! the stream, and what the kind says.
//!
//! | kind | means | carries |
//! | --- | --- | --- |
//! | `READY` | it listens; the first frame of the program | |
//! | `OPEN` | somebody connected, or the connection that was asked for stands | |
//! | `DIAL` | the backend asks for a connection | the port as a `u16` |
//! | `REFUSED` | it does not come about; the last word about the stream | the error as a `u32` |
//! | `DATA` | bytes of a stream | the bytes, at least one |
//! | `CREDIT` | that many more may come | a `u32` |
//! | `END` | no more bytes from this side | |
//! | `CLOSE` | the last word of this side about the stream | |
//!
//! A side sends at most `WINDOW` bytes more than it has credit for, and has room for as many: so no
//! stream ever holds up another, and nothing piles up. Credit comes once a good part of a window has
//! been handed on, so that it costs little. A number is used again once both sides have
//! closed the stream.

use crate::sys::{self, Arguments, Errno, Fd, POLLIN, POLLOUT, Poll};
use crate::wire::{self, Heart, Kind};

const READY: u8 = 0;
const OPEN: u8 = 1;
const DATA: u8 = 2;
const CREDIT: u8 = 3;
const END: u8 = 4;
const CLOSE: u8 = 5;
const DIAL: u8 = 6;
const REFUSED: u8 = 7;

/// Connections that are asked for at one time; of those that come, fewer are taken.
const STREAMS: usize = 128;
const ACCEPTED: usize = 64;
const WINDOW: usize = 256 << 10;
/// What was handed on before that is worth a credit.
const WORTH_A_CREDIT: usize = WINDOW / 4;
const HEADER: usize = 8;
/// The most bytes of a stream in one frame.
const CHUNK: usize = 32 << 10;
/// What waits for the backend to take it.
const OUT: usize = 64 << 10;

/// `relay PORT BEAT`, with the milliseconds between two signs of life
pub fn relay(arguments: &Arguments) -> i32 {
    let listener = sys::listen_on_loopback(arguments.number(2) as u16);
    carry(listener.and_then(|listener| Multiplexer::open(Some(listener))), arguments.number(3))
}

/// `dial BEAT`
pub fn dial(arguments: &Arguments) -> i32 {
    carry(Multiplexer::open(None), arguments.number(2))
}

fn carry(opened: Result<Multiplexer, Errno>, beat: u64) -> i32 {
    match opened {
        Ok(mut multiplexer) => multiplexer.work(beat),
        Err(errno) => {
            wire::status(Kind::Failed, errno as u32, u32::MAX, 0);
            1
        }
    }
}

/// One connection.
#[derive(Clone, Copy)]
struct Stream {
    fd: Option<Fd>,
    is_used: bool,
    /// The port that it is on its way to, and whether by IPv6.
    connecting: Option<(u16, bool)>,
    /// Where its waiting bytes begin in its part of the memory, and how many there are.
    start: usize,
    waiting: usize,
    /// The backend sends no more; the client was told.
    host_ended: bool,
    shut: bool,
    /// The client sends no more.
    client_ended: bool,
    /// What may be sent to the backend.
    credit: usize,
    /// What was handed on since the backend was last told.
    handed_on: usize,
    /// Frames that are to be sent.
    owes_open: bool,
    owes_end: bool,
    owes_close: bool,
    owes_refusal: Option<Errno>,
    close_sent: bool,
    close_received: bool,
}

const FREE: Stream = Stream {
    fd: None,
    is_used: false,
    connecting: None,
    start: 0,
    waiting: 0,
    host_ended: false,
    shut: false,
    client_ended: false,
    credit: WINDOW,
    handed_on: 0,
    owes_open: false,
    owes_end: false,
    owes_close: false,
    owes_refusal: None,
    close_sent: false,
    close_received: false,
};

impl Stream {
    fn close(&mut self) {
        if let Some(fd) = self.fd.take() {
            sys::close(fd);
        }
        self.connecting = None;
        self.waiting = 0;
        self.owes_end = false;
        self.owes_close = !self.close_sent;
    }

    /// Sets out to a port.
    fn set_out(&mut self, port: u16, is_v6: bool) {
        match sys::connect_to_loopback(port, is_v6) {
            Ok(fd) => {
                self.fd = Some(fd);
                self.connecting = Some((port, is_v6));
            }
            Err(errno) => self.miss(port, is_v6, errno),
        }
    }

    /// Looks what became of setting out.
    fn arrive(&mut self) {
        let (Some(fd), Some((port, is_v6))) = (self.fd, self.connecting) else { return };
        match sys::socket_error(fd) {
            0 => {
                self.connecting = None;
                self.owes_open = true;
            }
            errno => {
                self.fd = None;
                self.connecting = None;
                sys::close(fd);
                self.miss(port, is_v6, errno);
            }
        }
    }

    /// Where nobody listens by IPv4, somebody may by IPv6; what that says is of no interest otherwise.
    fn miss(&mut self, port: u16, is_v6: bool, errno: Errno) {
        if is_v6 {
            self.owes_refusal = Some(sys::ECONNREFUSED);
        } else if errno == sys::ECONNREFUSED {
            self.set_out(port, true);
        } else {
            self.owes_refusal = Some(errno);
        }
    }

    /// Writes what waits to the client.
    fn hand_on(&mut self, memory: &[u8]) {
        let Some(fd) = self.fd else { return };
        while self.waiting > 0 {
            let end = (self.start + self.waiting).min(WINDOW);
            match sys::write(fd, &memory[self.start..end]) {
                Ok(count) => {
                    self.start = (self.start + count) % WINDOW;
                    self.waiting -= count;
                    self.handed_on += count;
                }
                Err(sys::EINTR) => {}
                Err(sys::EAGAIN) => return,
                Err(_) => return self.close(),
            }
        }
        self.finish();
    }

    /// What is to be done once nothing waits any more.
    fn finish(&mut self) {
        let Some(fd) = self.fd else { return };
        if self.waiting > 0 {
            return;
        }
        if self.close_received || self.host_ended && self.client_ended && !self.owes_end {
            return self.close();
        }
        if self.host_ended && !self.shut {
            self.shut = true;
            sys::shut_down_writing(fd);
        }
    }
}

struct Multiplexer {
    /// Absent where it only connects.
    listener: Option<Fd>,
    streams: [Stream; STREAMS],
    /// The streams' bytes on their way to clients, `WINDOW` each.
    memory: &'static mut [u8],
    out: [u8; OUT],
    out_start: usize,
    out_end: usize,
    /// The beginning of the frame that is coming in, with the number of a credit.
    header: [u8; HEADER + 4],
    header_filled: usize,
    /// Bytes of its that are still to come.
    left: usize,
    /// What is read from the backend at one time.
    incoming: Option<&'static mut [u8]>,
    /// The stream that is served first, so that each is in turn.
    first: usize,
}

impl Multiplexer {
    fn open(listener: Option<Fd>) -> Result<Self, Errno> {
        let memory = sys::memory(STREAMS * WINDOW)?;
        sys::signals(&[sys::SIGPIPE])?;
        sys::set_nonblocking(0);
        sys::set_nonblocking(1);
        sys::set_nonblocking(2);
        let mut relay = Self {
            listener,
            streams: [FREE; STREAMS],
            memory,
            out: [0; OUT],
            out_start: 0,
            out_end: 0,
            header: [0; HEADER + 4],
            header_filled: 0,
            left: 0,
            incoming: Some(sys::memory(CHUNK)?),
            first: 0,
        };
        relay.say(READY, 0, &[]);
        Ok(relay)
    }

    /// Works until the backend is gone.
    fn work(&mut self, beat: u64) -> i32 {
        const OWN: usize = 3;
        let mut heart = Heart::new(beat);
        loop {
            self.pay();
            let mut polls = [Poll { fd: -1, events: 0, happened: 0 }; STREAMS + OWN];
            let is_free = self.streams[..ACCEPTED].iter().any(|stream| !stream.is_used);
            polls[0] = Poll { fd: 0, events: POLLIN, happened: 0 };
            if self.out_start < self.out_end {
                polls[1] = Poll { fd: 1, events: POLLOUT, happened: 0 };
            }
            if is_free && self.room() >= HEADER {
                polls[2] = Poll { fd: self.listener.unwrap_or(-1), events: POLLIN, happened: 0 };
            }
            let may_fill = self.room() > HEADER;
            for (stream, poll) in self.streams.iter().zip(&mut polls[OWN..]) {
                let connects = stream.connecting.is_some();
                let reads =
                    !connects && may_fill && !stream.client_ended && stream.credit > 0;
                let writes = connects || stream.waiting > 0;
                poll.events = if reads { POLLIN } else { 0 } | if writes { POLLOUT } else { 0 };
                // Without anything to wait for, its end would be told again and again.
                poll.fd = stream.fd.filter(|_| poll.events != 0).unwrap_or(-1);
            }
            let now = sys::now();
            heart.beat(now);
            sys::poll(&mut polls, Some(heart.rest(now)));
            if polls[0].happened != 0 && !self.listen_to_host() {
                return 0;
            }
            if polls[1].happened != 0 && !self.flush() {
                return 0;
            }
            if polls[2].happened != 0 {
                self.accept();
            }
            for index in 0..STREAMS {
                let index = (index + self.first) % STREAMS;
                let Poll { events, happened, .. } = polls[OWN + index];
                if happened == 0 {
                    continue;
                }
                if self.streams[index].connecting.is_some() {
                    self.streams[index].arrive();
                    continue;
                }
                if events & POLLOUT != 0 {
                    let memory = &self.memory[index * WINDOW..(index + 1) * WINDOW];
                    self.streams[index].hand_on(memory);
                }
                if events & POLLIN != 0 {
                    self.listen_to_client(index);
                }
            }
            self.first = (self.first + 1) % STREAMS;
        }
    }

    /// Sends the frames that are owed, as far as there is room.
    fn pay(&mut self) {
        for index in 0..STREAMS {
            if !self.streams[index].is_used {
                continue;
            }
            if let Some(errno) = self.streams[index].owes_refusal {
                if self.say(REFUSED, index, &(errno as u32).to_le_bytes()) {
                    self.streams[index] = FREE;
                }
                continue;
            }
            if self.streams[index].owes_open && self.say(OPEN, index, &[]) {
                self.streams[index].owes_open = false;
            }
            if self.streams[index].owes_open {
                continue;
            }
            let handed_on = self.streams[index].handed_on;
            if handed_on >= WORTH_A_CREDIT
                && self.say(CREDIT, index, &(handed_on as u32).to_le_bytes())
            {
                self.streams[index].handed_on = 0;
            }
            if self.streams[index].owes_end && self.say(END, index, &[]) {
                self.streams[index].owes_end = false;
                self.streams[index].finish();
            }
            if self.streams[index].owes_close && self.say(CLOSE, index, &[]) {
                self.streams[index].owes_close = false;
                self.streams[index].close_sent = true;
            }
            if self.streams[index].close_sent && self.streams[index].close_received {
                self.streams[index] = FREE;
            }
        }
    }

    fn room(&self) -> usize {
        OUT - self.out_end
    }

    /// Puts a frame down; false where there is no room.
    fn say(&mut self, kind: u8, stream: usize, bytes: &[u8]) -> bool {
        if self.room() < HEADER + bytes.len() {
            return false;
        }
        let at = self.out_end;
        self.out[at + HEADER..][..bytes.len()].copy_from_slice(bytes);
        self.put_header(kind, stream, bytes.len());
        true
    }

    /// The header of a frame whose bytes lie where they have to.
    fn put_header(&mut self, kind: u8, stream: usize, length: usize) {
        let header = &mut self.out[self.out_end..][..HEADER];
        header[..4].copy_from_slice(&(length as u32 + 4).to_le_bytes());
        header[4] = kind;
        header[5] = 0;
        header[6..].copy_from_slice(&(stream as u16).to_le_bytes());
        self.out_end += HEADER + length;
    }

    /// Writes what waits to the backend; false if that is gone.
    fn flush(&mut self) -> bool {
        match sys::write(1, &self.out[self.out_start..self.out_end]) {
            Ok(count) => {
                self.out_start += count;
                if self.out_start == self.out_end {
                    (self.out_start, self.out_end) = (0, 0);
                } else if self.out_start > OUT / 2 {
                    self.out.copy_within(self.out_start..self.out_end, 0);
                    (self.out_start, self.out_end) = (0, self.out_end - self.out_start);
                }
                true
            }
            Err(errno) => matches!(errno, sys::EAGAIN | sys::EINTR),
        }
    }

    fn accept(&mut self) {
        let mut free = self.streams[..ACCEPTED].iter();
        let Some(index) = free.position(|stream| !stream.is_used) else { return };
        // Who connected may be gone already.
        if let Some(listener) = self.listener
            && let Ok(fd) = sys::accept(listener)
        {
            self.streams[index] = Stream { fd: Some(fd), is_used: true, owes_open: true, ..FREE };
        }
    }

    fn listen_to_client(&mut self, index: usize) {
        let room = self.room();
        let stream = &mut self.streams[index];
        let Some(fd) = stream.fd else { return };
        if room <= HEADER || stream.client_ended || stream.credit == 0 {
            return;
        }
        if stream.owes_open {
            // The next turn says so first.
            return;
        }
        let most = stream.credit.min(CHUNK).min(room - HEADER);
        let at = self.out_end + HEADER;
        match sys::read(fd, &mut self.out[at..at + most]) {
            Ok(0) => {
                stream.client_ended = true;
                stream.owes_end = true;
            }
            Ok(count) => {
                stream.credit -= count;
                self.put_header(DATA, index, count);
            }
            Err(sys::EAGAIN | sys::EINTR) => {}
            Err(_) => stream.close(),
        }
    }

    /// Takes in what the backend sent; false if that is gone, or says what it may not.
    fn listen_to_host(&mut self) -> bool {
        let Some(buffer) = self.incoming.take() else { return false };
        let goes_on = match sys::read(0, buffer) {
            Ok(0) => false,
            Ok(count) => self.take_in(&buffer[..count]),
            Err(errno) => matches!(errno, sys::EAGAIN | sys::EINTR),
        };
        self.incoming = Some(buffer);
        goes_on
    }

    /// Takes frames in as they come, wherever they are cut; false if they make no sense.
    fn take_in(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.left == 0 {
                let whole = if self.header_filled >= HEADER { self.whole() } else { HEADER };
                let part = bytes.len().min(whole - self.header_filled);
                self.header[self.header_filled..][..part].copy_from_slice(&bytes[..part]);
                self.header_filled += part;
                bytes = &bytes[part..];
                if self.header_filled < HEADER {
                    continue;
                }
                if self.header_filled == self.whole() && !self.obey() {
                    return false;
                }
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(self.left));
            if !self.take(part) {
                return false;
            }
            self.left -= part.len();
            bytes = rest;
        }
        true
    }

    /// Bytes that are to be seen before a frame of the present kind can be obeyed.
    fn whole(&self) -> usize {
        match self.header[4] {
            CREDIT => HEADER + 4,
            DIAL => HEADER + 2,
            _ => HEADER,
        }
    }

    /// The stream that the present frame is about.
    fn index(&self) -> usize {
        usize::from(u16::from_le_bytes([self.header[6], self.header[7]]))
    }

    /// Does what the present frame says; false if it makes no sense.
    fn obey(&mut self) -> bool {
        self.header_filled = 0;
        let number = |at: usize| {
            let bytes = [0, 1, 2, 3].map(|offset| self.header[at + offset]);
            u32::from_le_bytes(bytes) as usize
        };
        let (length, credit) = (number(0), number(HEADER));
        let port = u16::from_le_bytes([self.header[HEADER], self.header[HEADER + 1]]);
        let index = self.index();
        let Some(stream) = self.streams.get_mut(index) else { return false };
        match self.header[4] {
            DATA if (5..=4 + WINDOW).contains(&length) => self.left = length - 4,
            DIAL if length == 6 && self.listener.is_none() => {
                // The last words about the connection before may not have been looked at yet.
                if stream.is_used && !(stream.close_sent && stream.close_received) {
                    return false;
                }
                *stream = Stream { is_used: true, ..FREE };
                stream.set_out(port, false);
            }
            CREDIT if length == 8 => stream.credit = (stream.credit + credit).min(WINDOW),
            END if length == 4 => {
                stream.host_ended = true;
                stream.finish();
            }
            CLOSE if length == 4 => {
                stream.host_ended = true;
                stream.close_received = true;
                stream.finish();
            }
            _ => return false,
        }
        true
    }

    /// Keeps bytes for a client; false if there are more than the backend may send.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let index = self.index();
        let stream = &mut self.streams[index];
        if stream.fd.is_none() {
            // It has gone, which the backend does not know yet.
            return true;
        }
        if bytes.len() > WINDOW - stream.waiting {
            return false;
        }
        let memory = &mut self.memory[index * WINDOW..(index + 1) * WINDOW];
        let at = (stream.start + stream.waiting) % WINDOW;
        let (first, second) = bytes.split_at(bytes.len().min(WINDOW - at));
        memory[at..at + first.len()].copy_from_slice(first);
        memory[..second.len()].copy_from_slice(second);
        stream.waiting += bytes.len();
        stream.hand_on(memory);
        true
    }
}
