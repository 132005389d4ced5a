//! `inodyne share`: arguments, and what a person sees of a share; the work is done by `inodyne-share`.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use inodyne_render::escaped;
use inodyne_share::{
    Address, Admitted, GuestKeys, HostKeys, MountOptions, Ordering, Owners, PrivateKey, PublicKey, ServeOptions,
    ShareError, Status, mount, serve, status,
};
use nix::sys::signal::{SigSet, Signal};

use crate::failure::{ExitStatus, Failure};
use crate::options::time;
use crate::say::show;

/// Share a directory with another machine, whose kernel caches it and is notified of every change
#[derive(Args, Debug)]
pub struct ShareArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Share a directory until stopped
    #[command(after_long_help = "  inodyne share serve /srv/files --listen unix:/run/files.sock\n  \
        inodyne share serve /srv/files --listen vhost-user:/run/files.vhost --listen unix:/run/files.sock\n  \
        inodyne share serve /srv/files --listen serial:/run/files.port\n  \
        inodyne share serve /srv/files --listen vsock:2:700 --allow cid:3\n  \
        inodyne share serve /srv/files --listen tcp:192.0.2.1:7000 --key host.key --allow guests.keys")]
    Serve(Serve),
    /// Mount a share on an existing directory, until it is unmounted (root)
    #[command(after_long_help = "  inodyne share mount unix:/run/files.sock /mnt\n  \
        inodyne share mount unix:/run/files.sock /mnt --reconnect 30s\n  \
        inodyne share mount serial:/dev/virtio-ports/files /mnt\n  \
        inodyne share mount tcp:192.0.2.1:7000 /mnt --key guest.key --host 4f0c6b7d9a1e2835c0d4f6a8b9273e5d1c0f8a7b6e5d4c3b2a190817f6e5d4c3")]
    Mount(Mount),
    /// Show the state of a share: who has mounted it, what was requested
    #[command(after_long_help = "  inodyne share status unix:/run/files.sock")]
    Status(Ask),
    /// Generate a key pair for tcp: and vsock:, in a new file; print the public key
    #[command(after_long_help = "  inodyne share key /etc/inodyne/share.key")]
    Key(Key),
}

#[derive(Args, Debug)]
struct Serve {
    /// The directory to share
    directory: PathBuf,
    /// Where guests connect: unix:PATH, for the user that serves it alone, as the socket's permissions say; vhost-user:PATH, the same, for virtual
    /// machines that mount it by virtiofs; serial:PATH, for those that connect a serial port to it; vsock:CID:PORT, for those named by
    /// --allow; or tcp:IP:PORT, encrypted, for those with a key given by --allow. May be given several times
    #[arg(long, value_name = "ADDRESS", required = true)]
    listen: Vec<Address>,
    /// This side's private key, for tcp: and vsock: (`share key` makes one)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Who may mount it: a public key, or a file of public keys, one per line; over vsock: without --key, root of the virtual machine
    /// with this number. May be given several times
    #[arg(long, value_name = "PUBLICKEY|FILE|cid:N", value_parser = allowed)]
    allow: Vec<Allowed>,
    /// Share read-only: nobody can change anything
    #[arg(long)]
    read_only: bool,
    /// Who owns the files, as guests see them
    #[arg(long, value_enum, default_value = "squash", value_name = "HOW")]
    owners: OwnersArg,
    /// Who owns the files for guests of vhost-user:, which cannot say so themselves: UID:GID [default: 0:0]
    #[arg(long, value_name = "UID:GID", value_parser = owner)]
    owner: Option<(u32, u32)>,
    /// Also give guests of vhost-user: extended attributes, for which their kernel asks twice for each file that is made
    #[arg(long)]
    xattrs: bool,
    /// How many files and directories each guest's kernel may hold, at least 1024; about 330 bytes of memory each. A guest that wants more
    /// gets ENFILE
    #[arg(long, default_value_t = 8_000_000, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1024..))]
    most_nodes: usize,
    /// When to acknowledge a guest's change: after every other guest has dropped what it held of it, or at once
    #[arg(long, value_enum, default_value = "strict", value_name = "HOW")]
    ordering: OrderingArg,
    /// Do not watch for changes made by programs on this machine: guests see them after 1 s
    #[arg(long)]
    no_watch: bool,
    /// List directories without the types of their entries, as poor guest drivers do: every tool that needs the types then asks for each file
    #[arg(long)]
    withhold_types: bool,
    /// Answer each request this many microseconds later, as a longer path would; at most eight requests of a guest are
    /// worked on at a time, and more wait for their turn
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    delay_us: u64,
    /// Do not tell guests of changes, so that they read stale data. For testing the tests
    #[arg(long, hide = true)]
    stale: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OwnersArg {
    /// All belong to the user who mounts them; there are no set-user-id files
    Squash,
    /// The same user and group IDs on both sides; needs root
    Keep,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderingArg {
    Strict,
    Relaxed,
}

#[derive(Args, Debug)]
struct Mount {
    /// Where the host listens; for a serial port, the device
    address: Address,
    #[command(flatten)]
    keys: KeyOptions,
    /// An existing directory
    directory: PathBuf,
    /// Who owns the files, unless the host keeps their owners: UID:GID [default: the caller]
    #[arg(long, value_name = "UID:GID", value_parser = owner)]
    owner: Option<(u32, u32)>,
    /// Mount read-only: nobody can change anything
    #[arg(long)]
    read_only: bool,
    /// If the host is lost, keep trying for this long to reach it again, while programs that ask for something wait: 30s, 5m [default:
    /// unmount at once]
    #[arg(long, value_name = "TIME", value_parser = time)]
    reconnect: Option<Duration>,
    /// Wake programs that watch files here (inotify) when a program on the host changes one
    #[arg(long)]
    events: bool,
}

#[derive(Args, Debug)]
struct Ask {
    /// Where the host listens
    address: Address,
    #[command(flatten)]
    keys: KeyOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct Key {
    /// The file to create; it must not exist yet
    file: PathBuf,
}

/// What a guest needs for tcp:, and may use for vsock:.
#[derive(Args, Debug)]
struct KeyOptions {
    /// This side's private key, for tcp: and vsock: (`share key` makes one)
    #[arg(long, value_name = "FILE", requires = "host")]
    key: Option<PathBuf>,
    /// The host's public key
    #[arg(long, value_name = "PUBLICKEY", requires = "key")]
    host: Option<PublicKey>,
}

impl KeyOptions {
    fn load(&self) -> Result<Option<GuestKeys>, ShareError> {
        let Some((file, host)) = self.key.as_ref().zip(self.host) else { return Ok(None) };
        Ok(Some(GuestKeys { own: PrivateKey::load(file)?, host }))
    }
}

/// Whom a host lets in.
#[derive(Clone, Debug)]
enum Allowed {
    One(PublicKey),
    All(PathBuf),
    Machine(u32),
}

/// A virtual machine's number, a public key, or anything else, which can only be a file.
fn allowed(text: &str) -> Result<Allowed, String> {
    if let Some(number) = text.strip_prefix("cid:") {
        return number
            .parse()
            .map(Allowed::Machine)
            .map_err(|_| format!("'{number}' is not a context ID: write cid:3"));
    }
    let is_like_a_key = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_like_a_key { text.parse().map(Allowed::One) } else { Ok(Allowed::All(text.into())) }
}

/// Whom a host lets in.
fn admitted(arguments: &Serve) -> Result<Admitted, ShareError> {
    let own = arguments.key.as_ref().map(|file| PrivateKey::load(file)).transpose()?;
    let (mut allowed, mut machines) = (Vec::new(), Vec::new());
    for who in &arguments.allow {
        match who {
            Allowed::One(key) => allowed.push(*key),
            Allowed::All(file) => allowed.extend(PublicKey::all_in(file)?),
            Allowed::Machine(number) => machines.push(*number),
        }
    }
    if own.is_none() && !allowed.is_empty() {
        return Err(ShareError::Keys("--key and --allow"));
    }
    Ok(Admitted { keys: own.map(|own| HostKeys { own, allowed }), machines })
}

/// Who owns the files for guests of virtiofs.
fn owner_of_virtiofs(arguments: &Serve) -> Result<(u32, u32), ShareError> {
    let is_any = arguments.listen.iter().any(|address| matches!(address, Address::VhostUser(_)));
    let is_squashed = matches!(arguments.owners, OwnersArg::Squash);
    match arguments.owner {
        Some(_) if !is_any || !is_squashed => Err(ShareError::NoOwner),
        owner => Ok(owner.unwrap_or_default()),
    }
}

fn owner(text: &str) -> Result<(u32, u32), String> {
    let (uid, gid) = text.split_once(':').ok_or("not UID:GID, such as 1000:1000")?;
    let number = |text: &str| text.parse().map_err(|_| format!("'{text}' is not the number of a user or group"));
    Ok((number(uid)?, number(gid)?))
}

impl From<ShareError> for Failure {
    fn from(error: ShareError) -> Failure {
        Failure::new(if error.is_usage() { ExitStatus::Usage } else { ExitStatus::Lacking }, error)
    }
}

/// Does what the arguments say.
pub fn run(arguments: &ShareArgs) -> Result<ExitCode, Failure> {
    match &arguments.action {
        Action::Serve(arguments) => {
            let options = ServeOptions {
                read_only: arguments.read_only,
                withhold_types: arguments.withhold_types,
                owners: match arguments.owners {
                    OwnersArg::Squash => Owners::Squash,
                    OwnersArg::Keep => Owners::Keep,
                },
                ordering: match arguments.ordering {
                    OrderingArg::Strict => Ordering::Strict,
                    OrderingArg::Relaxed => Ordering::Relaxed,
                },
                watch: !arguments.no_watch,
                announce: !arguments.stale,
                delay: Duration::from_micros(arguments.delay_us),
                owner: owner_of_virtiofs(arguments)?,
                xattrs_by_virtiofs: arguments.xattrs,
                most_nodes: arguments.most_nodes,
            };
            let stop = Stop::new()?;
            let (directory, listen) = (&arguments.directory, &arguments.listen);
            let at: Vec<_> = listen.iter().map(Address::to_string).collect();
            let about = format!("{} at {}", directory.display(), at.join(", "));
            // The thread that waits for signals is started once the library has forked.
            let (stopped, stopper) = UnixStream::pair().map_err(|error| Failure::new(ExitStatus::Lacking, error))?;
            let mut started = Ok(());
            let ready = |watched: &str| {
                started = stop.tell(stopper);
                crate::say::say!("sharing {about}; {watched}");
            };
            serve(directory, listen, &admitted(arguments)?, options, stopped.as_fd(), ready)?;
            started?;
        }
        Action::Mount(arguments) => {
            let options = MountOptions {
                address: arguments.address.clone(),
                keys: arguments.keys.load()?,
                directory: arguments.directory.clone(),
                owner: arguments.owner,
                read_only: arguments.read_only,
                reconnect: arguments.reconnect,
                events: arguments.events,
            };
            let stop = Stop::new()?;
            let about = format!("{} on {}", options.address, options.directory.display());
            // The thread that waits for signals is started once the library has forked.
            let (stopped, stopper) = UnixStream::pair().map_err(|error| Failure::new(ExitStatus::Lacking, error))?;
            let mut started = Ok(());
            let ready = || {
                started = stop.tell(stopper);
                crate::say::say!("mounted {about}");
            };
            mount(&options, stopped.as_fd(), ready, |news| crate::say::say!("{}", escaped(news)))?;
            started?;
        }
        Action::Key(arguments) => show!("{}", PrivateKey::make(&arguments.file)?.public())?,
        Action::Status(arguments) => {
            let status = status(&arguments.address, arguments.keys.load()?.as_ref())?;
            if arguments.json {
                let json =
                    serde_json::to_string_pretty(&status).map_err(|error| Failure::new(ExitStatus::Lacking, error))?;
                show!("{json}")?;
            } else {
                crate::report::write(text(&status).as_bytes(), None)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A share's status as a person reads it. It comes from the other machine, and must not move the cursor.
fn text(status: &Status) -> String {
    let yes = |is: bool, word: &str| if is { format!(", {word}") } else { String::new() };
    let mut text = format!(
        "{}, shared for {} s{}{}\nordering: {}\n",
        status.directory,
        status.served_seconds,
        yes(status.read_only, "read-only"),
        yes(status.withhold_types, "without types"),
        status.ordering,
    );
    text += &if status.watched {
        let lost = match status.host_events_lost {
            0 => String::new(),
            times => format!("; some were lost {times} times, and guests forgot everything"),
        };
        format!("changes on the host: watched, {} seen{lost}\n", status.host_events)
    } else {
        format!("changes on the host: not watched, seen after {} s\n", status.valid_seconds)
    };
    let sandbox = if status.sandbox.is_empty() {
        "none, the kernel has nothing for it".into()
    } else {
        status.sandbox.join(", ")
    };
    text += &format!("sandbox: {sandbox}\n");
    text += &format!(
        "{} nodes known, {} descriptors kept for them, {} files open\n",
        status.nodes, status.descriptors, status.open_files
    );
    for guest in &status.guests {
        text += &format!(
            "\nguest {}{}, for {} s: holds {} nodes; {} round trips; {}\n",
            guest.guest,
            guest.key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default(),
            guest.connected_seconds,
            guest.nodes_held,
            guest.round_trips,
            match (guest.told_of_changes, guest.invalidations_sent, guest.invalidations_acknowledged) {
                (true, sent, acknowledged) => format!("told {sent} times of changes, {acknowledged} acknowledged"),
                (false, ..) => "virtiofs, asks again after 1 s".into(),
            },
        );
        let mut requests: Vec<_> = guest.requests.iter().collect();
        requests.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        requests.iter().for_each(|(name, count)| text += &format!("  {count:>10}  {name}\n"));
    }
    text.lines().map(|line| escaped(line) + "\n").collect()
}

/// Ends what is running when the user says so: SIGINT, SIGTERM and SIGHUP become something that can be waited for.
struct Stop(SigSet);

/// The signals that end it, except for those that whoever started it wants to be ignored (`nohup`, a background job): one that is blocked
/// is kept to be waited for, ignored or not.
fn ending(is_ignored: impl Fn(Signal) -> bool) -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect()
}

impl Stop {
    /// To be called before any thread is started, so that all inherit it.
    fn new() -> Result<Stop, Failure> {
        let signals = ending(|signal| inodyne_launch::is_ignored(signal).unwrap_or(false));
        signals.thread_block().map_err(|error| Failure::new(ExitStatus::Lacking, error))?;
        Ok(Stop(signals))
    }

    /// Closes `stopper` at a signal.
    fn tell(self, stopper: UnixStream) -> Result<(), Failure> {
        let waited = std::thread::Builder::new().spawn(move || {
            let _ = self.0.wait();
            drop(stopper);
        });
        waited.map(drop).map_err(|error: io::Error| Failure::new(ExitStatus::Lacking, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_machine_says_does_not_move_the_cursor() {
        let status = serde_json::json!({
            "directory": "a\u{1b}[2Jb", "read_only": false, "withhold_types": false, "ordering": "strict\u{9b}1m", "watched": false,
            "valid_seconds": 1, "served_seconds": 2, "nodes": 3, "descriptors": 4, "open_files": 5, "host_events": 0,
            "host_events_lost": 0, "guests": [],
        });
        let text = text(&serde_json::from_value(status).unwrap());
        assert!(text.starts_with("a\\u{1b}[2Jb, shared for 2 s\nordering: strict\\u{9b}1m\n"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }

    #[test]
    fn what_was_ignored_from_the_start_ends_nothing() {
        let ending = |ignored: &[Signal]| ending(|signal| ignored.contains(&signal)).iter().collect::<Vec<_>>();
        assert_eq!(ending(&[]), [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM]);
        assert_eq!(ending(&[Signal::SIGHUP, Signal::SIGINT]), [Signal::SIGTERM]);
    }

    #[test]
    fn an_owner_is_two_numbers() {
        assert_eq!(owner("1000:100"), Ok((1000, 100)));
        for wrong in ["", "1000", "root:root", "1:2:3", "-1:0"] {
            assert!(owner(wrong).is_err(), "{wrong}");
        }
    }
}
