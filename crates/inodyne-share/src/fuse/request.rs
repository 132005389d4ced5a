//! What the kernel asks: bytes in, an [`Operation`] out. Every read is checked; nothing is assumed that the bytes do not hold.
//!
//! A name in a request is one component of a path: not empty, no slash, neither `.` nor `..`. So no operation can be asked to
//! leave the directory that it names.

use std::ffi::CStr;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::abi::{
    self, BatchForgetIn, CopyFileRangeIn, CreateIn, FallocateIn, FlushIn, ForgetIn, ForgetOne, FsyncIn, GetAttrIn,
    GetXattrIn, InHeader, InitIn, InterruptIn, LinkIn, LkIn, LseekIn, MkDirIn, MkNodIn, OldInitIn, OpenIn, ReadIn,
    ReleaseIn, Rename2In, RenameIn, SetAttrIn, SetXattrIn, WriteIn, opcode,
};

/// Bytes that are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A request of the kernel.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub header: InHeader,
    body: &'a [u8],
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum Operation<'a> {
    Init(InitIn),
    Destroy,
    Interrupt {
        unique: u64,
    },
    Lookup {
        name: &'a CStr,
    },
    Forget {
        lookups: u64,
    },
    BatchForget(Vec<ForgetOne>),
    GetAttr(GetAttrIn),
    SetAttr(SetAttrIn),
    ReadLink,
    Symlink {
        name: &'a CStr,
        target: &'a CStr,
    },
    MkNod {
        ask: MkNodIn,
        name: &'a CStr,
    },
    MkDir {
        ask: MkDirIn,
        name: &'a CStr,
    },
    Unlink {
        name: &'a CStr,
    },
    RmDir {
        name: &'a CStr,
    },
    Rename {
        new_dir: u64,
        flags: u32,
        name: &'a CStr,
        new_name: &'a CStr,
    },
    Link {
        old: u64,
        name: &'a CStr,
    },
    Open(OpenIn),
    Create {
        ask: CreateIn,
        name: &'a CStr,
    },
    Read(ReadIn),
    Write {
        ask: WriteIn,
        data: &'a [u8],
    },
    Flush(FlushIn),
    Release(ReleaseIn),
    Fsync {
        ask: FsyncIn,
        is_directory: bool,
    },
    SyncFs,
    StatFs,
    SetXattr {
        flags: u32,
        name: &'a CStr,
        value: &'a [u8],
    },
    GetXattr {
        size: u32,
        name: &'a CStr,
    },
    ListXattr {
        size: u32,
    },
    RemoveXattr {
        name: &'a CStr,
    },
    OpenDir,
    ReleaseDir,
    ReadDir {
        ask: ReadIn,
        plus: bool,
    },
    GetLk(LkIn),
    SetLk {
        ask: LkIn,
        wait: bool,
    },
    Fallocate(FallocateIn),
    Lseek(LseekIn),
    CopyFileRange(CopyFileRangeIn),
    Ioctl,
    /// A number that is not supported here.
    Unknown,
}

impl<'a> Request<'a> {
    /// From all the bytes of one message.
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = InHeader::read_from_prefix(message).map_err(|_| Malformed)?;
        // Extensions follow everything else; none that is asked for here is needed.
        let extensions = usize::from(header.extensions) * 8;
        let is_whole = header.len as usize == message.len() && extensions <= body.len();
        is_whole.then(|| Self { header, body: &body[..body.len() - extensions] }).ok_or(Malformed)
    }

    /// What it asks.
    pub fn operation(&self) -> Result<Operation<'a>, Malformed> {
        let mut rest = Rest(self.body);
        Ok(match self.header.opcode {
            opcode::INIT => Operation::Init(init(self.body)?),
            opcode::DESTROY => Operation::Destroy,
            opcode::INTERRUPT => Operation::Interrupt { unique: rest.take::<InterruptIn>()?.unique },
            opcode::LOOKUP => Operation::Lookup { name: rest.name()? },
            opcode::FORGET => Operation::Forget { lookups: rest.take::<ForgetIn>()?.lookups },
            opcode::BATCH_FORGET => {
                let count = rest.take::<BatchForgetIn>()?.count as usize;
                // Checked before anything is allocated: there are as many as the count says.
                let list = rest.0.chunks_exact(size_of::<ForgetOne>());
                let list = (list.len() >= count).then_some(list).ok_or(Malformed)?;
                let read = |one| ForgetOne::read_from_bytes(one).map_err(|_| Malformed);
                Operation::BatchForget(list.take(count).map(read).collect::<Result<_, _>>()?)
            }
            opcode::GETATTR => Operation::GetAttr(rest.take()?),
            opcode::SETATTR => Operation::SetAttr(rest.take()?),
            opcode::READLINK => Operation::ReadLink,
            opcode::SYMLINK => Operation::Symlink { name: rest.name()?, target: rest.text()? },
            opcode::MKNOD => Operation::MkNod { ask: rest.take()?, name: rest.name()? },
            opcode::MKDIR => Operation::MkDir { ask: rest.take()?, name: rest.name()? },
            opcode::UNLINK => Operation::Unlink { name: rest.name()? },
            opcode::RMDIR => Operation::RmDir { name: rest.name()? },
            opcode::RENAME => {
                let RenameIn { new_dir } = rest.take()?;
                Operation::Rename { new_dir, flags: 0, name: rest.name()?, new_name: rest.name()? }
            }
            opcode::RENAME2 => {
                let Rename2In { new_dir, flags, .. } = rest.take()?;
                Operation::Rename { new_dir, flags, name: rest.name()?, new_name: rest.name()? }
            }
            opcode::LINK => Operation::Link { old: rest.take::<LinkIn>()?.old_node, name: rest.name()? },
            opcode::OPEN => Operation::Open(rest.take()?),
            opcode::CREATE => Operation::Create { ask: rest.take()?, name: rest.name()? },
            opcode::READ => Operation::Read(rest.take()?),
            opcode::WRITE => {
                let ask: WriteIn = rest.take()?;
                Operation::Write { ask, data: rest.0.get(..ask.size as usize).ok_or(Malformed)? }
            }
            opcode::FLUSH => Operation::Flush(rest.take()?),
            opcode::RELEASE => Operation::Release(rest.take()?),
            opcode::FSYNC => Operation::Fsync { ask: rest.take()?, is_directory: false },
            opcode::FSYNCDIR => Operation::Fsync { ask: rest.take()?, is_directory: true },
            opcode::SYNCFS => Operation::SyncFs,
            opcode::STATFS => Operation::StatFs,
            opcode::SETXATTR => {
                let SetXattrIn { size, flags } = rest.take()?;
                let name = rest.text()?;
                Operation::SetXattr { flags, name, value: rest.0.get(..size as usize).ok_or(Malformed)? }
            }
            opcode::GETXATTR => Operation::GetXattr { size: rest.take::<GetXattrIn>()?.size, name: rest.text()? },
            opcode::LISTXATTR => Operation::ListXattr { size: rest.take::<GetXattrIn>()?.size },
            opcode::REMOVEXATTR => Operation::RemoveXattr { name: rest.text()? },
            opcode::OPENDIR => Operation::OpenDir,
            opcode::RELEASEDIR => Operation::ReleaseDir,
            opcode::READDIR => Operation::ReadDir { ask: rest.take()?, plus: false },
            opcode::READDIRPLUS => Operation::ReadDir { ask: rest.take()?, plus: true },
            opcode::GETLK => Operation::GetLk(rest.take()?),
            opcode::SETLK => Operation::SetLk { ask: rest.take()?, wait: false },
            opcode::SETLKW => Operation::SetLk { ask: rest.take()?, wait: true },
            opcode::FALLOCATE => Operation::Fallocate(rest.take()?),
            opcode::LSEEK => Operation::Lseek(rest.take()?),
            opcode::COPY_FILE_RANGE => Operation::CopyFileRange(rest.take()?),
            opcode::IOCTL => Operation::Ioctl,
            _ => Operation::Unknown,
        })
    }
}

/// INIT has grown over the versions.
fn init(body: &[u8]) -> Result<InitIn, Malformed> {
    if let Ok((init, _)) = InitIn::read_from_prefix(body) {
        return Ok(init);
    }
    let (OldInitIn { major, minor, max_readahead, flags }, _) =
        OldInitIn::read_from_prefix(body).map_err(|_| Malformed)?;
    Ok(InitIn { major, minor, max_readahead, flags: flags & !(abi::init::INIT_EXT as u32), ..InitIn::default() })
}

/// The part of a message that is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Result<T, Malformed> {
        let (value, rest) = T::read_from_prefix(self.0).map_err(|_| Malformed)?;
        self.0 = rest;
        Ok(value)
    }

    /// Text up to its NUL.
    fn text(&mut self) -> Result<&'a CStr, Malformed> {
        let text = CStr::from_bytes_until_nul(self.0).map_err(|_| Malformed)?;
        self.0 = &self.0[text.count_bytes() + 1..];
        Ok(text)
    }

    /// One component of a path.
    fn name(&mut self) -> Result<&'a CStr, Malformed> {
        let name = self.text()?;
        is_component(name).then_some(name).ok_or(Malformed)
    }
}

/// Whether a name is one that a directory can contain, and leads nowhere else.
pub(crate) fn is_component(name: &CStr) -> bool {
    !matches!(name.to_bytes(), b"" | b"." | b"..") && !name.to_bytes().contains(&b'/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    use super::*;

    fn message(opcode: u32, body: &[u8]) -> Vec<u8> {
        let header = InHeader { len: (40 + body.len()) as u32, opcode, unique: 7, node: 1, ..InHeader::default() };
        [header.as_bytes(), body].concat()
    }

    fn parsed(message: &[u8]) -> Result<String, Malformed> {
        Ok(format!("{:?}", Request::parse(message)?.operation()?))
    }

    #[test]
    fn names_are_single_components() {
        for name in ["", ".", "..", "a/b", "/", "../etc"] {
            let body = [name.as_bytes(), b"\0"].concat();
            for opcode in [opcode::LOOKUP, opcode::UNLINK, opcode::RMDIR] {
                assert_eq!(parsed(&message(opcode, &body)), Err(Malformed), "{name:?}");
            }
            let rename = [&1u64.to_le_bytes()[..], b"fine\0", name.as_bytes(), b"\0"].concat();
            assert_eq!(parsed(&message(opcode::RENAME, &rename)), Err(Malformed), "{name:?}");
        }
        assert_eq!(parsed(&message(opcode::LOOKUP, b"...\0")), Ok("Lookup { name: \"...\" }".into()));
        assert_eq!(parsed(&message(opcode::LOOKUP, b"open end")), Err(Malformed));
    }

    #[test]
    fn a_message_is_as_long_as_it_says() {
        let mut short = message(opcode::LOOKUP, b"name\0");
        short.pop();
        assert_eq!(parsed(&short), Err(Malformed));
        let counted = [&u32::MAX.to_le_bytes()[..], &[0; 20]].concat();
        assert_eq!(parsed(&message(opcode::BATCH_FORGET, &counted)), Err(Malformed));
        let write = WriteIn { size: 5, ..WriteIn::default() };
        assert_eq!(parsed(&message(opcode::WRITE, &[write.as_bytes(), b"four"].concat())), Err(Malformed));
    }

    #[test]
    fn an_old_kernel_s_init_is_understood() {
        let old = OldInitIn { major: 7, minor: 31, max_readahead: 4096, flags: u32::MAX };
        let Ok(Operation::Init(init)) = Request::parse(&message(opcode::INIT, old.as_bytes())).unwrap().operation()
        else {
            panic!("not an INIT")
        };
        assert_eq!((init.minor, init.flags2, u64::from(init.flags) & abi::init::INIT_EXT), (31, 0, 0));
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(opcode in 0u32..60, body in prop::collection::vec(any::<u8>(), 0..200), extensions: u16) {
            let mut message = message(opcode, &body);
            let _ = parsed(&message);
            message[36..38].copy_from_slice(&extensions.to_le_bytes());
            let _ = parsed(&message);
        }

        #[test]
        fn nor_do_any_bytes_at_all(message in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parsed(&message);
        }
    }
}
