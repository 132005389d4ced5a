//! The part of a kernel's types that the programs look at: the types that they ask about, with what these consist of.
//!
//! All that is asked about pointers is whether two of them match, so what they point to is left out: each points to nothing in particular.
//! Everything else about a type is as in the kernel, except its number.

use std::collections::{BTreeSet, HashMap};

use super::btf::{HEADER, Types, common_kind, essential, kind, word};

/// A type that programs ask about. What the kernel has of the same name and kind is what they get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    /// Without what follows `___`.
    pub name: &'static str,
    /// Its [`kind`]; all enums count as one.
    pub kind: u32,
}

/// The file that a type is from: the kernel itself, or the module of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Kernel,
    Module(usize),
}

/// Types of a kernel, and of those of its modules that are searched for what it lacks.
pub struct Whole<'a> {
    /// Its own.
    pub kernel: &'a Types<'a>,
    /// The modules'.
    pub modules: &'a [Types<'a>],
}

impl<'a> Whole<'a> {
    fn types(&self, of: Of) -> &'a Types<'a> {
        match of {
            Of::Kernel => self.kernel,
            Of::Module(module) => &self.modules[module],
        }
    }

    /// Who owns the type with this number in a file.
    fn owner(&self, of: Of, number: u32) -> Of {
        if number < self.kernel.end() { Of::Kernel } else { of }
    }

    fn name(&self, of: Of, begins: u32) -> Option<&'a [u8]> {
        self.kernel.name(begins).or_else(|| self.types(of).name(begins))
    }

    /// The numbers of the types with the name and kind of one of these.
    fn find(&self, of: Of, roots: &BTreeSet<Root>) -> Option<Vec<(Root, u32)>> {
        // There are many names, and few begin like one of these.
        let mut by_first: [Vec<Root>; 256] = [const { Vec::new() }; 256];
        for root in roots {
            by_first[usize::from(*root.name.as_bytes().first()?)].push(*root);
        }
        let kinds = roots.iter().fold(0u32, |kinds, root| kinds | 1 << root.kind);
        let mut found = Vec::new();
        for (number, candidate) in self.types(of).all() {
            if candidate.name == 0 || kinds & 1 << common_kind(candidate.kind) == 0 {
                continue;
            }
            let name = self.name(of, candidate.name)?;
            let Some(first) = name.first() else { continue };
            let fits = |root: &&Root| {
                root.kind == common_kind(candidate.kind)
                    && name.starts_with(root.name.as_bytes())
                    && essential(name) == root.name.as_bytes()
            };
            found.extend(by_first[usize::from(*first)].iter().find(fits).map(|root| (*root, number)));
        }
        Some(found)
    }
}

/// What a kernel has of the types that are asked about.
pub struct Found {
    /// Several may have the same name.
    types: Vec<(Root, u32)>,
    /// What it lacks.
    pub missing: BTreeSet<Root>,
}

impl Found {
    /// Looks through all types of a kernel. None if one is not as it should be.
    pub fn look(kernel: &Types<'_>, roots: &BTreeSet<Root>) -> Option<Found> {
        let types = Whole { kernel, modules: &[] }.find(Of::Kernel, roots)?;
        let mut missing = roots.clone();
        for (root, _) in &types {
            missing.remove(root);
        }
        Some(Found { types, missing })
    }

    /// The kernel's number of a type of which it has exactly one.
    pub fn number_of(&self, name: &str) -> Option<u32> {
        let mut of_name = self.types.iter().filter(|(root, _)| root.name == name).map(|(_, number)| *number);
        of_name.next().filter(|_| of_name.next().is_none())
    }

    /// A file of type information with what was found, and with what modules have of the rest. None if a type is not as it should be.
    pub fn part(&self, whole: &Whole<'_>) -> Option<Vec<u8>> {
        let mut copy =
            Copy { whole, numbers: HashMap::new(), next: Vec::new(), names: HashMap::new(), strings: vec![0] };
        for (_, number) in &self.types {
            copy.number(Of::Kernel, *number);
        }
        for module in (0..whole.modules.len()).map(Of::Module) {
            for (_, number) in whole.find(module, &self.missing)? {
                copy.number(module, number);
            }
        }
        copy.all()
    }
}

/// Types being copied from one file to another, in which they have other numbers and names begin elsewhere.
struct Copy<'a> {
    whole: &'a Whole<'a>,
    numbers: HashMap<(Of, u32), u32>,
    /// All that have a number, in that order.
    next: Vec<(Of, u32)>,
    names: HashMap<&'a [u8], u32>,
    strings: Vec<u8>,
}

impl<'a> Copy<'a> {
    /// The new number of a type, which is copied sooner or later.
    fn number(&mut self, of: Of, number: u32) -> u32 {
        if number == 0 {
            return 0; // void
        }
        let key = (self.whole.owner(of, number), number);
        *self.numbers.entry(key).or_insert_with(|| {
            self.next.push(key);
            self.next.len() as u32
        })
    }

    fn name(&mut self, of: Of, begins: u32) -> Option<u32> {
        let name = self.whole.name(of, begins)?;
        if name.is_empty() {
            return Some(0);
        }
        Some(*self.names.entry(name).or_insert_with(|| {
            let begins = self.strings.len() as u32;
            self.strings.extend(name);
            self.strings.push(0);
            begins
        }))
    }

    /// Copies everything that has a number.
    fn all(mut self) -> Option<Vec<u8>> {
        let mut types = Vec::new();
        let mut done = 0;
        while let Some(key) = self.next.get(done).copied() {
            self.one(key, &mut types)?;
            done += 1;
        }
        let lengths = [types.len() as u32, types.len() as u32, self.strings.len() as u32];
        let header = [0x0001_eb9f, 24, 0, lengths[0], lengths[1], lengths[2]];
        Some(header.into_iter().flat_map(u32::to_ne_bytes).chain(types).chain(self.strings).collect())
    }

    fn one(&mut self, key: (Of, u32), to: &mut Vec<u8>) -> Option<()> {
        let of = key.0;
        let from = self.whole.types(of).get(key.1)?;
        let mut put = |word: u32| to.extend(word.to_ne_bytes());
        put(self.name(of, from.name)?);
        put(word(from.bytes, 4)?);
        put(match from.kind {
            kind::PTR => 0,
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => self.number(of, from.of),
            _ => from.of,
        });
        let words: Vec<u32> = (HEADER..from.bytes.len()).step_by(4).map_while(|at| word(from.bytes, at)).collect();
        match from.kind {
            kind::INT => put(words[0]),
            kind::ARRAY => {
                put(self.number(of, words[0]));
                put(self.number(of, words[1]));
                put(words[2]);
            }
            kind::STRUCT | kind::UNION => {
                for member in words.chunks_exact(3) {
                    put(self.name(of, member[0])?);
                    put(self.number(of, member[1]));
                    put(member[2]);
                }
            }
            kind::ENUM | kind::ENUM64 => {
                for value in words.chunks_exact(if from.kind == kind::ENUM { 2 } else { 3 }) {
                    put(self.name(of, value[0])?);
                    value[1..].iter().for_each(|word| put(*word));
                }
            }
            // Nothing consists of functions, variables or tags.
            kind::FUNC | kind::FUNC_PROTO | kind::VAR | kind::DATASEC | kind::DECL_TAG => return None,
            // The other known kinds have nothing more.
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file being written; numbers of types and places of names go on from where another one ends.
    #[derive(Default)]
    struct Written {
        first: u32,
        first_string: u32,
        count: u32,
        words: Vec<u32>,
        strings: Vec<u8>,
    }

    impl Written {
        fn kernel() -> Written {
            Written { first: 1, strings: vec![0], ..Written::default() }
        }

        fn module(&self) -> Written {
            Written { first: self.first + self.count, first_string: self.strings.len() as u32, ..Written::default() }
        }

        fn name(&mut self, name: &str) -> u32 {
            let at = self.first_string + self.strings.len() as u32;
            self.strings.extend(name.bytes().chain([0]));
            at
        }

        fn add(&mut self, name: &str, kind: u32, of: u32, more: &[u32], count: u32) -> u32 {
            let name = if name.is_empty() { 0 } else { self.name(name) };
            self.words.extend([name, kind << 24 | count, of]);
            self.words.extend(more);
            self.count += 1;
            self.first + self.count - 1
        }

        /// A structure with members of these types, each eight bytes after the last.
        fn structure(&mut self, name: &str, members: &[(&str, u32)]) -> u32 {
            let mut words = Vec::new();
            for (place, (member, of)) in members.iter().enumerate() {
                words.extend([self.name(member), *of, 64 * place as u32]);
            }
            self.add(name, kind::STRUCT, 8 * members.len() as u32, &words, members.len() as u32)
        }

        fn bytes(&self) -> Vec<u8> {
            let length = 4 * self.words.len() as u32;
            let header = [0x0001_eb9f, 24, 0, length, length, self.strings.len() as u32];
            let words = header.iter().chain(&self.words).flat_map(|word| word.to_ne_bytes());
            words.chain(self.strings.iter().copied()).collect()
        }
    }

    fn roots(names: &[&'static str]) -> BTreeSet<Root> {
        names.iter().map(|name| Root { name, kind: kind::STRUCT }).collect()
    }

    /// A file's types in words: name and kind of each, and for structures the members with their types.
    fn described(file: &[u8]) -> Vec<String> {
        let types = Types::read(file).expect("a file of types");
        let name = |begins| String::from_utf8(types.name(begins).expect("a name").to_vec()).expect("text");
        let describe = |(number, of): (u32, super::super::btf::Type<'_>)| {
            let words: Vec<u32> = (0..of.bytes.len()).step_by(4).map(|at| word(of.bytes, at).unwrap()).collect();
            let members = if of.kind == kind::STRUCT { &words[3..] } else { &[] };
            let members = members.chunks(3).map(|member| format!(" {}:{}@{}", name(member[0]), member[1], member[2]));
            format!("{number} {} kind {} of {}{}", name(of.name), of.kind, of.of, members.collect::<String>())
        };
        types.all().map(describe).collect()
    }

    #[test]
    fn what_a_type_consists_of_comes_with_it_and_what_it_points_to_does_not() {
        let mut kernel = Written::kernel();
        let number = kernel.add("long", kind::INT, 8, &[64], 0);
        let unasked = kernel.structure("unasked", &[("a", number)]);
        let pointer = kernel.add("", kind::PTR, unasked, &[], 0);
        let inner = kernel.structure("inner", &[("b", number)]);
        let other_name = kernel.add("inner_t", kind::TYPEDEF, inner, &[], 0);
        kernel.add("asked", kind::FWD, 0, &[], 0);
        let asked = kernel.structure("asked", &[("to", pointer), ("in", other_name), ("self", number)]);
        kernel.structure("asked___2", &[]);
        kernel.structure("asked_too", &[]);
        let bytes = kernel.bytes();
        let kernel = Types::read(&bytes).unwrap();
        let found = Found::look(&kernel, &roots(&["asked", "gone"])).unwrap();
        assert_eq!(found.missing, roots(&["gone"]));
        assert_eq!(found.number_of("asked"), None, "there are two");
        let part = found.part(&Whole { kernel: &kernel, modules: &[] }).unwrap();
        let expected = [
            "1 asked kind 4 of 24 to:3@0 in:4@64 self:5@128",
            "2 asked___2 kind 4 of 0",
            "3  kind 2 of 0",
            "4 inner_t kind 8 of 6",
            "5 long kind 1 of 8",
            "6 inner kind 4 of 8 b:5@0",
        ];
        assert_eq!(described(&part), expected);
        let one = Found::look(&kernel, &roots(&["inner"])).unwrap();
        assert_eq!((one.number_of("inner"), asked), (Some(inner), 7));
    }

    #[test]
    fn what_a_kernel_has_not_comes_from_its_modules() {
        let mut kernel = Written::kernel();
        let number = kernel.add("long", kind::INT, 8, &[64], 0);
        let both = kernel.structure("both", &[("k", number)]);
        let (mut one, mut two) = (kernel.module(), kernel.module());
        one.structure("other", &[]);
        let own = one.structure("own", &[("n", number), ("b", both)]);
        one.structure("asked", &[("o", own)]);
        two.structure("both", &[]);
        two.structure("asked", &[("n", number)]);
        let (kernel, one, two) = (kernel.bytes(), one.bytes(), two.bytes());
        let kernel = Types::read(&kernel).unwrap();
        let modules = [kernel.read_more(&one).unwrap(), kernel.read_more(&two).unwrap()];
        let found = Found::look(&kernel, &roots(&["asked", "both", "gone"])).unwrap();
        assert_eq!(found.number_of("asked"), None, "a module's number is no kernel's");
        let part = found.part(&Whole { kernel: &kernel, modules: &modules }).unwrap();
        let expected = [
            "1 both kind 4 of 8 k:4@0",
            "2 asked kind 4 of 8 o:5@0",
            "3 asked kind 4 of 8 n:4@0",
            "4 long kind 1 of 8",
            "5 own kind 4 of 16 n:4@0 b:1@64",
        ];
        assert_eq!(described(&part), expected);
    }
}
