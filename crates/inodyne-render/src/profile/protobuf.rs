//! Protobuf messages under construction: the few kinds of field that the formats here need.

use std::collections::HashMap;

/// A message.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    pub(super) fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    pub(super) fn numbers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Message::default();
        for value in values {
            packed.varint(*value);
        }
        self.message(field, &packed);
    }
}

/// Texts by number, in the order of their first use.
#[derive(Default)]
pub(super) struct Strings {
    pub(super) all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Strings {
    pub(super) fn index(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}
