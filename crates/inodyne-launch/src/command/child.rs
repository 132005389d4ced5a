//! The command's process between its creation and its `execve`: it arms the tracer, becomes the user, enters the directory,
//! finds its file, and waits to be released.
//!
//! It shares the guard's memory until then (`CLONE_VM`), and the guard waits, as with `vfork`; but the guard waits on a pipe, so that it
//! can leave the session in between, for which it would be too late afterwards. So `execve` has no copy of an address space to tear down,
//! which would count as the command's time, and the command's process can leave what it has to report in the guard's own variables.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use inodyne_model::Nanos;
use inodyne_model::run::Usage;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::stat::Mode;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use super::protocol::{Channel, Order, Report, Stage};
use super::{Input, LaunchSpec, Output};
use crate::clock::monotonic_ns;
use crate::search;
use crate::signals::inherited_mask;

/// Why the command's process could not go on, and the error's number.
pub type Failure = (Stage, i32);

const STACK_BYTES: usize = 1 << 20;

/// A command that runs its own program.
pub struct Running {
    /// Its process.
    pub pid: Pid,
    /// Its release.
    pub released_ns: Nanos,
    /// What it had used until then, none of it the command's.
    pub used: Usage,
}

/// A command that does not.
pub enum NotRunning {
    /// It could not.
    Failed(Failure),
    /// A signal killed it before it was released.
    Killed { signal: i32 },
    /// It was not released.
    Abandoned,
}

/// The kernel's account.
pub fn usage(account: &libc::rusage) -> Usage {
    let nanos = |time: libc::timeval| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000);
    Usage {
        user_ns: nanos(account.ru_utime),
        sys_ns: nanos(account.ru_stime),
        voluntary_switches: account.ru_nvcsw as u64,
        involuntary_switches: account.ru_nivcsw as u64,
        major_faults: account.ru_majflt as u64,
        minor_faults: account.ru_minflt as u64,
        max_rss_bytes: account.ru_maxrss as u64 * 1024,
    }
}

/// What this process has used so far.
fn used_so_far() -> Usage {
    // SAFETY: plain old data, valid when zero.
    let mut account: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for writing. Called like this, it cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut account) };
    usage(&account)
}

/// What the command's process leaves behind in the guard's memory.
#[derive(Default)]
struct Legacy {
    released: Option<(Nanos, Usage)>,
    failure: Option<Failure>,
}

/// Creates the command's process, which tells inodyne that it is ready and waits for its order. Returns once it runs its
/// own program, or will not. Meanwhile the calling process, which must have one thread, gets a session of its own.
pub fn spawn(
    spec: &LaunchSpec,
    channel: &Channel,
    arm_program: Option<BorrowedFd<'_>>,
    ignored: &[Signal],
) -> Result<Running, NotRunning> {
    let failed = |errno: Errno| NotRunning::Failed((Stage::Prepare, errno as i32));
    let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(failed);
    let ((go_ahead, may_go), (is_over, still_there)) = (pipe()?, pipe()?);
    let mut legacy = Legacy::default();
    let mut life = Life {
        spec,
        channel,
        arm_program,
        ignored,
        may_go: may_go.as_raw_fd(),
        go_ahead: go_ahead.as_fd(),
        legacy: &mut legacy,
    };
    let mut stack = vec![0_u8; STACK_BYTES];
    let top = stack.as_mut_ptr_range().end.cast();
    // SAFETY: the child runs on a stack of its own, and `live` casts its argument back to what it is. The child waits until this
    // thread, the only one, gives the go-ahead, and from then on this thread blocks until the child's end of a pipe is closed,
    // because the child has executed or ended. So the two never run in this memory at the same time except to make system calls
    // that neither allocate nor fail, and everything that is borrowed lives longer. A signal that ends the child finds it blocking all
    // signals, or where it does not touch the heap; SIGKILL alone may interrupt an allocation, and is followed by no further one here:
    // a process that was never released is waited for and reported, and this one ends.
    let pid = unsafe { libc::clone(live, top, libc::CLONE_VM | libc::SIGCHLD, (&raw mut life).cast()) };
    if pid < 0 {
        return Err(failed(Errno::last()));
    }
    let pid = Pid::from_raw(pid);
    drop(still_there);
    // Whoever kills inodyne's whole process group must not hit the guard: processes of the command may have left that
    // group. This comes after the creation of the child, which belongs in the terminal's session, and before the child
    // executes anything. It fails only where this process leads a group, which nothing has made it do.
    let _ = nix::unistd::setsid();
    let _ = rustix::io::write(&may_go, b".");
    // Nothing is ever written: this returns when the last copy of the other end is closed.
    let _ = rustix::io::retry_on_intr(|| rustix::io::read(&is_over, &mut [0_u8]));
    match (legacy.failure, legacy.released) {
        (Some(failure), _) => Err(NotRunning::Failed(failure)),
        (None, Some((released_ns, used))) => Ok(Running { pid, released_ns, used }),
        (None, None) => Err(match nix::sys::wait::waitpid(pid, None) {
            Ok(WaitStatus::Signaled(_, signal, _)) => NotRunning::Killed { signal: signal as i32 },
            // It was ordered to end, or inodyne is gone.
            _ => NotRunning::Abandoned,
        }),
    }
}

/// What the command's process has to know, and where it leaves what it has to report.
struct Life<'a> {
    spec: &'a LaunchSpec,
    channel: &'a Channel,
    arm_program: Option<BorrowedFd<'a>>,
    ignored: &'a [Signal],
    go_ahead: BorrowedFd<'a>,
    /// The other end, of which this process must not keep a copy: it would not see that the guard has ended.
    may_go: RawFd,
    legacy: &'a mut Legacy,
}

/// The command's process, until it executes.
extern "C" fn live(life: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passes a pointer to this, and touches it again only when this process has executed or ended.
    let life = unsafe { &mut *life.cast::<Life<'_>>() };
    // SAFETY: the descriptors of this process are copies of the guard's; nothing in this one uses or closes it again.
    unsafe { libc::close(life.may_go) };
    if rustix::io::retry_on_intr(|| rustix::io::read(life.go_ahead, &mut [0_u8])) == Ok(1) {
        let released = &mut life.legacy.released;
        life.legacy.failure = become_command(life.spec, life.channel, life.arm_program, life.ignored, released).err();
    }
    NEVER_EXECUTED
}

/// The exit code of a process that did not become the command; nobody asks for it.
const NEVER_EXECUTED: libc::c_int = 127;

/// Returns only if the command was not executed.
fn become_command(
    spec: &LaunchSpec,
    channel: &Channel,
    arm_program: Option<BorrowedFd<'_>>,
    ignored: &[Signal],
    released: &mut Option<(Nanos, Usage)>,
) -> Result<(), Failure> {
    let program = prepare(spec, arm_program, ignored)?;
    let pid = nix::unistd::getpid().as_raw();
    let lost = |error: std::io::Error| (Stage::Prepare, error.raw_os_error().unwrap_or(libc::EIO));
    channel.send_report(&Report::Ready { pid }).map_err(lost)?;
    if channel.next_order().map_err(lost)? != Some(Order::Release) {
        return Ok(());
    }
    *released = Some((monotonic_ns(), used_so_far()));
    // A signal that came while the command was held takes effect now, as it would on the command itself. From here on one may end this
    // process at any instruction, and the guard goes on with this memory: nothing may be allocated or freed.
    inherited_mask().thread_set_mask().map_err(|errno| (Stage::Prepare, errno as i32))?;
    let errno = program.execute();
    SigSet::all().thread_set_mask().map_err(|errno| (Stage::Prepare, errno as i32))?;
    // The file itself has been found.
    let stage = if errno == Errno::ENOENT { Stage::Interpret } else { Stage::Execute };
    Err((stage, errno as i32))
}

fn redirect(input: Input, output: Output) -> Result<(), Errno> {
    // SAFETY: whoever started the command keeps what it named open, and this process has a copy of everything that was open.
    let named = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) };
    match input {
        Input::Inherit => {}
        Input::Nothing => {
            nix::unistd::dup2_stdin(nix::fcntl::open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?)?;
        }
        Input::File(file) => nix::unistd::dup2_stdin(named(file))?,
    }
    match output {
        Output::Inherit => Ok(()),
        Output::ToStderr => nix::unistd::dup2_stdout(std::io::stderr()),
        Output::Discard => {
            // Some programs do less where their output is /dev/null: GNU grep and tar, for example.
            let nowhere = nix::fcntl::open("/dev/zero", OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
            nix::unistd::dup2_stdout(&nowhere)?;
            nix::unistd::dup2_stderr(&nowhere)
        }
        Output::File(file) => nix::unistd::dup2_stdout(named(file)),
        Output::BothToFile(file) => {
            nix::unistd::dup2_stdout(named(file))?;
            nix::unistd::dup2_stderr(named(file))
        }
    }
}

fn prepare(spec: &LaunchSpec, arm_program: Option<BorrowedFd<'_>>, ignored: &[Signal]) -> Result<Program, Failure> {
    let at = |stage: Stage| move |errno: Errno| (stage, errno as i32);
    reset_signals(ignored).map_err(at(Stage::Prepare))?;
    redirect(spec.input, spec.output).map_err(at(Stage::Prepare))?;
    if let Some(program) = arm_program {
        arm(program).map_err(at(Stage::Arm))?;
    }
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if let Some(user) = &spec.user {
        user.take_over().map_err(at(Stage::User))?;
        for (name, value) in user.variables() {
            set(&mut environment, name, value.to_owned());
        }
    }
    die_with_the_guard().map_err(at(Stage::Prepare))?;
    if let Some(directory) = &spec.directory {
        let before = nix::unistd::getcwd();
        nix::unistd::chdir(directory.as_path()).map_err(at(Stage::Directory))?;
        let entered = nix::unistd::getcwd();
        // Who stays where inodyne was started keeps its PWD, which may be the directory's name over a link, or not be there.
        if before.is_err() || entered != before {
            let named =
                if directory.is_absolute() { directory.clone() } else { entered.map_err(at(Stage::Directory))? };
            set(&mut environment, "PWD", named.into_os_string());
        }
    }
    for (name, value) in &spec.environment {
        set(&mut environment, name, value.clone());
    }
    Program::find(&spec.argv, &environment).map_err(at(Stage::Execute))
}

fn set(environment: &mut Vec<(OsString, OsString)>, name: impl AsRef<OsStr>, value: OsString) {
    environment.retain(|(known, _)| known != name.as_ref());
    environment.push((name.as_ref().to_owned(), value));
}

/// The guard ignores some signals, Rust ignores SIGPIPE, inodyne SIGXFSZ, and all are inherited: the command starts with the defaults,
/// except for what was ignored before inodyne began, these two as well. All of them stay blocked until it is released.
fn reset_signals(ignored: &[Signal]) -> Result<(), Errno> {
    for each in Signal::iterator().filter(|s| *s != Signal::SIGKILL && *s != Signal::SIGSTOP) {
        let action = if ignored.contains(&each) { SigHandler::SigIgn } else { SigHandler::SigDfl };
        // SAFETY: no handler is installed.
        unsafe { signal(each, action) }?;
    }
    Ok(())
}

/// Runs the tracer's arming program in this thread's context, so that the thread is known by its task and not by a pid.
fn arm(program: BorrowedFd<'_>) -> Result<(), Errno> {
    /// The start of `union bpf_attr` as BPF_PROG_TEST_RUN reads it (include/uapi/linux/bpf.h).
    #[repr(C)]
    #[derive(Default)]
    struct TestRun {
        program: u32,
        returned: u32,
        data_size_in: u32,
        data_size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
        context_size_in: u32,
        context_size_out: u32,
        context_in: u64,
        context_out: u64,
        flags: u32,
        cpu: u32,
        batch_size: u32,
        unused: u32,
    }
    const BPF_PROG_TEST_RUN: i32 = 10;
    let arguments: [u64; 1] = [1];
    let mut run = TestRun {
        program: program.as_raw_fd() as u32,
        context_size_in: size_of_val(&arguments) as u32,
        context_in: arguments.as_ptr() as u64,
        ..TestRun::default()
    };
    // SAFETY: the attributes and what they point at are valid for their stated sizes.
    let failed = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &mut run, size_of::<TestRun>()) };
    match failed {
        0 if run.returned == 0 => Ok(()),
        0 => Err(Errno::EAGAIN),
        _ => Err(Errno::last()),
    }
}

/// Should the guard be killed, the command dies with it. Called after the change of user, which would undo this.
fn die_with_the_guard() -> Result<(), Errno> {
    let guard = nix::unistd::getppid();
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if nix::unistd::getppid() == guard { Ok(()) } else { Err(Errno::ECHILD) }
}

/// What `execve` takes: a file, its words and its environment.
struct Program {
    file: CString,
    arguments: Words,
    /// The words for the shell, should the file be a script without `#!`.
    shell_arguments: Words,
    environment: Words,
}

impl Program {
    /// Looks up the first word as `execvp` does, but before the trace begins.
    fn find(argv: &[OsString], environment: &[(OsString, OsString)]) -> Result<Program, Errno> {
        let first = argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let file = search::find(first, path)?.into_os_string();
        let shell_words = [OsStr::new("sh"), &file].into_iter().chain(argv.iter().skip(1).map(OsString::as_os_str));
        Ok(Program {
            arguments: Words::of(argv.iter().map(|word| word.as_bytes().to_vec()))?,
            shell_arguments: Words::of(shell_words.map(|word| word.as_bytes().to_vec()))?,
            environment: Words::of(
                environment.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()),
            )?,
            file: CString::new(file.into_vec()).map_err(|_| Errno::EINVAL)?,
        })
    }

    /// Returns only where it failed. A script without `#!` is given to the shell, as `execvp` does. Allocates nothing, whereas `nix`'s
    /// `execve` does: see [`become_command`].
    fn execute(&self) -> Errno {
        let error = execve(&self.file, &self.arguments, &self.environment);
        if error != Errno::ENOEXEC {
            return error;
        }
        execve(c"/bin/sh", &self.shell_arguments, &self.environment)
    }
}

/// Strings, and the pointers to them, the last of which is null, as `execve` takes them.
struct Words {
    pointers: Vec<*const libc::c_char>,
    /// What is pointed at.
    _strings: Vec<CString>,
}

impl Words {
    fn of(strings: impl Iterator<Item = Vec<u8>>) -> Result<Words, Errno> {
        let strings: Vec<CString> = strings.map(CString::new).collect::<Result<_, _>>().map_err(|_| Errno::EINVAL)?;
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Words { pointers, _strings: strings })
    }
}

fn execve(file: &CStr, arguments: &Words, environment: &Words) -> Errno {
    // SAFETY: both arrays end with a null pointer, and what they point at lives as long as they do.
    unsafe { libc::execve(file.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    Errno::last()
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Counts what each thread allocates and frees.
    struct Counting;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    thread_local! {
        static REQUESTS: Cell<u64> = const { Cell::new(0) };
    }

    // SAFETY: the system's allocator does the work.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            REQUESTS.set(REQUESTS.get() + 1);
            // SAFETY: as the caller promises.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            REQUESTS.set(REQUESTS.get() + 1);
            // SAFETY: as the caller promises.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    #[test]
    fn nothing_is_allocated_or_freed_from_the_unblocking_of_signals_to_the_execution() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        std::fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let program = Program::find(&[script.into_os_string(), "word".into()], &environment).unwrap();
        let mask = SigSet::thread_get_mask().unwrap();
        let before = REQUESTS.get();
        mask.thread_set_mask().unwrap();
        let errno = program.execute();
        assert_eq!((errno, REQUESTS.get() - before), (Errno::ENOENT, 0));
        drop(program);
        assert!(REQUESTS.get() > before, "the counter counts");
    }
}
