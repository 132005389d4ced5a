//! The packets of a trace in Perfetto's own format (`protos/perfetto/trace` of github.com/google/perfetto): tracks, slices, instants,
//! counters. Each text is written once; packets refer to it by its number.

use super::super::protobuf::{Message, Strings};

/// Field numbers, by message.
mod field {
    pub(super) const PACKET: u64 = 1;
    pub(super) mod packet {
        pub(in super::super) const TIMESTAMP: u64 = 8;
        pub(in super::super) const SEQUENCE_ID: u64 = 10;
        pub(in super::super) const TRACK_EVENT: u64 = 11;
        pub(in super::super) const INTERNED_DATA: u64 = 12;
        pub(in super::super) const SEQUENCE_FLAGS: u64 = 13;
        pub(in super::super) const TRACK_DESCRIPTOR: u64 = 60;
    }
    pub(super) mod descriptor {
        pub(in super::super) const UUID: u64 = 1;
        pub(in super::super) const NAME: u64 = 2;
        pub(in super::super) const PROCESS: u64 = 3;
        pub(in super::super) const THREAD: u64 = 4;
        pub(in super::super) const PARENT: u64 = 5;
        pub(in super::super) const COUNTER: u64 = 8;
        pub(in super::super) const PROCESS_PID: u64 = 1;
        pub(in super::super) const PROCESS_NAME: u64 = 6;
        pub(in super::super) const THREAD_PID: u64 = 1;
        pub(in super::super) const THREAD_TID: u64 = 2;
        pub(in super::super) const THREAD_NAME: u64 = 5;
    }
    pub(super) mod event {
        pub(in super::super) const ANNOTATION: u64 = 4;
        pub(in super::super) const TYPE: u64 = 9;
        pub(in super::super) const NAME: u64 = 10;
        pub(in super::super) const TRACK: u64 = 11;
        pub(in super::super) const COUNTER: u64 = 44;
        pub(in super::super) const FLOW: u64 = 47;
        pub(in super::super) const LAST_OF_FLOW: u64 = 48;
    }
    pub(super) mod annotation {
        pub(in super::super) const NAME: u64 = 1;
        pub(in super::super) const TEXT: u64 = 17;
    }
    pub(super) mod interned {
        pub(in super::super) const EVENT_NAME: u64 = 2;
        pub(in super::super) const ANNOTATION_NAME: u64 = 3;
        pub(in super::super) const ANNOTATION_TEXT: u64 = 29;
        pub(in super::super) const NUMBER: u64 = 1;
        pub(in super::super) const TEXT: u64 = 2;
    }
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// The first packet clears the earlier state; all others depend on it.
const CLEARED: u64 = 1;
const NEEDS: u64 = 2;

/// A wake-up is drawn as an arrow from where it comes from to where it goes: both events refer to it by the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    None,
    From(u64),
    To(u64),
}

/// What an event says besides its name.
pub(super) type Arguments<'a> = &'a [(&'static str, String)];

/// The file under construction.
#[derive(Default)]
pub(super) struct Packets {
    file: Message,
    names: Strings,
    argument_names: Strings,
    argument_texts: Strings,
    /// Texts that the next packet is the first to use.
    interned: Message,
    has_begun: bool,
}

impl Packets {
    pub(super) fn process(&mut self, uuid: u64, pid: u32, name: &str) {
        let mut process = Message::default();
        process.number(field::descriptor::PROCESS_PID, pid.into());
        process.bytes(field::descriptor::PROCESS_NAME, name.as_bytes());
        let mut track = track(uuid, name);
        track.message(field::descriptor::PROCESS, &process);
        self.descriptor(&track);
    }

    pub(super) fn thread(&mut self, uuid: u64, process: u64, pid: u32, tid: u32, name: &str) {
        let mut thread = Message::default();
        thread.number(field::descriptor::THREAD_PID, pid.into());
        thread.number(field::descriptor::THREAD_TID, tid.into());
        thread.bytes(field::descriptor::THREAD_NAME, name.as_bytes());
        let mut track = track(uuid, name);
        track.number(field::descriptor::PARENT, process);
        track.message(field::descriptor::THREAD, &thread);
        self.descriptor(&track);
    }

    /// A track that is not a thread.
    pub(super) fn track(&mut self, uuid: u64, name: &str) {
        self.descriptor(&track(uuid, name));
    }

    pub(super) fn counter_track(&mut self, uuid: u64, name: &str) {
        let mut track = track(uuid, name);
        track.message(field::descriptor::COUNTER, &Message::default());
        self.descriptor(&track);
    }

    /// Writes nothing if it would have no length.
    pub(super) fn slice(&mut self, track: u64, name: &str, from: u64, to: u64, arguments: Arguments<'_>, flow: Flow) {
        if to <= from {
            return;
        }
        let begin = self.event(BEGIN, track, Some(name), arguments, flow);
        self.packet(from, &begin);
        let end = self.event(END, track, None, &[], Flow::None);
        self.packet(to, &end);
    }

    pub(super) fn instant(&mut self, track: u64, name: &str, at: u64, flow: Flow) {
        let event = self.event(INSTANT, track, Some(name), &[], flow);
        self.packet(at, &event);
    }

    pub(super) fn counter(&mut self, track: u64, at: u64, value: f64) {
        let mut event = self.event(COUNTER, track, None, &[], Flow::None);
        event.fixed(field::event::COUNTER, value.to_bits());
        self.packet(at, &event);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.file.0
    }

    fn event(&mut self, kind: u64, track: u64, name: Option<&str>, arguments: Arguments<'_>, flow: Flow) -> Message {
        let mut event = Message::default();
        event.number(field::event::TYPE, kind);
        event.number(field::event::TRACK, track);
        if let Some(name) = name {
            let name = intern(&mut self.names, name, field::interned::EVENT_NAME, &mut self.interned);
            event.number(field::event::NAME, name);
        }
        for (name, text) in arguments.iter().filter(|(_, text)| !text.is_empty()) {
            let mut argument = Message::default();
            let interned = &mut self.interned;
            let name = intern(&mut self.argument_names, name, field::interned::ANNOTATION_NAME, interned);
            argument.number(field::annotation::NAME, name);
            let text = intern(&mut self.argument_texts, text, field::interned::ANNOTATION_TEXT, interned);
            argument.number(field::annotation::TEXT, text);
            event.message(field::event::ANNOTATION, &argument);
        }
        match flow {
            Flow::None => {}
            Flow::From(number) => event.fixed(field::event::FLOW, number),
            Flow::To(number) => event.fixed(field::event::LAST_OF_FLOW, number),
        }
        event
    }

    fn packet(&mut self, at: u64, event: &Message) {
        let mut packet = Message::default();
        packet.number(field::packet::TIMESTAMP, at);
        packet.number(field::packet::SEQUENCE_ID, 1);
        if !self.interned.0.is_empty() {
            packet.message(field::packet::INTERNED_DATA, &std::mem::take(&mut self.interned));
        }
        packet.number(field::packet::SEQUENCE_FLAGS, if self.has_begun { NEEDS } else { CLEARED | NEEDS });
        self.has_begun = true;
        packet.message(field::packet::TRACK_EVENT, event);
        self.file.message(field::PACKET, &packet);
    }

    fn descriptor(&mut self, track: &Message) {
        let mut packet = Message::default();
        packet.message(field::packet::TRACK_DESCRIPTOR, track);
        self.file.message(field::PACKET, &packet);
    }
}

fn track(uuid: u64, name: &str) -> Message {
    let mut track = Message::default();
    track.number(field::descriptor::UUID, uuid);
    track.bytes(field::descriptor::NAME, name.as_bytes());
    track
}

/// The number of a text, from 1 on; if it is new, the next packet defines it.
fn intern(strings: &mut Strings, text: &str, kind: u64, interned: &mut Message) -> u64 {
    let before = strings.all.len();
    let number = strings.index(text) + 1;
    if strings.all.len() > before {
        let mut entry = Message::default();
        entry.number(field::interned::NUMBER, number);
        entry.bytes(field::interned::TEXT, text.as_bytes());
        interned.message(kind, &entry);
    }
    number
}
