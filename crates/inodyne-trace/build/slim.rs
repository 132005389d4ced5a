//! Takes out of the compiled object what is needed neither to load the programs nor to read its types: the lines of source (`.BTF.ext`),
//! which the kernel checks and keeps for each program, and labels within functions. Together they are two thirds of what is not instructions.

use object::build::elf::{Builder, SectionData};

/// Of the compiler's labels within functions. A later compiler keeps them to itself.
const LABEL: &[u8] = b"LBB";

/// The object without them.
pub fn slim(object: &[u8]) -> Vec<u8> {
    let mut builder = Builder::read(object).expect("the linker writes a valid ELF file");
    for symbol in &mut builder.symbols {
        symbol.delete = symbol.name.starts_with(LABEL);
    }
    for section in &mut builder.sections {
        if section.name.as_slice() == b".BTF.ext"
            && let SectionData::Data(data) = &mut section.data
        {
            *data = without_lines(data).into();
        }
    }
    // libbpf's linker keeps the names of sections among those of symbols, which the writer does not.
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = object::elf::SHT_STRTAB;
    names.data = SectionData::SectionString;
    let mut slim = Vec::new();
    builder.write(&mut slim).expect("what was read can be written");
    slim
}

/// The header and the three parts that follow it: functions, lines, CO-RE records (`struct btf_ext_header` in libbpf).
fn without_lines(extra: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_ne_bytes(extra[at..at + 4].try_into().expect("four bytes")) as usize;
    let (header, lines, lines_length) = (word(4), word(16), word(20));
    let (kept, cut) = (header + lines, header + lines + lines_length);
    let mut slim = [&extra[..kept], &extra[cut..]].concat();
    let mut set = |at: usize, value: usize| slim[at..at + 4].copy_from_slice(&(value as u32).to_ne_bytes());
    set(20, 0);
    set(24, word(24) - lines_length);
    slim
}
