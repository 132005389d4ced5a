//! `--request`: the requests that servers answer, compared with what the clients saw.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::requests::Served;
use inodyne_model::trace::Trace;
use support::window::{Killed, Open, holds_together, window};
use support::{eventually, inodyne, machine, run, scratch, traced};

/// Answers each message of sixteen bytes with itself; one that begins with `s` after a tenth of a second.
const ECHO: &str = "import socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
while True:
    connection = listening.accept()[0]
    while message := connection.recv(16):
        if message.startswith(b's'):
            time.sleep(0.1)
        connection.sendall(message)
";

trait ReadWrite: Read + Write {}

impl<Stream: Read + Write> ReadWrite for Stream {}

fn served(trace: &Trace) -> &Served {
    let served = trace.requests.as_ref().expect("requests are looked at");
    assert_eq!(served.not_kept, 0);
    for group in &served.groups {
        assert_eq!(group.ledger.sum(), group.ledger.wall_ns);
        assert_eq!(group.looked_at, group.requests);
    }
    let looked_at: Nanos = served.groups.iter().map(|group| group.ledger.wall_ns).sum();
    assert_eq!(looked_at, served.iter().map(|(_, ns, _)| ns).sum(), "all of their time");
    served
}

/// Asks so many times, every tenth time for something slow, and returns when each began and was answered.
fn ask(socket: &Path, times: usize) -> Vec<[Instant; 2]> {
    let mut connection = UnixStream::connect(socket).expect("it listens");
    let one = |number: usize| {
        let message = if number % 10 == 9 { b"slow............" } else { b"quick..........." };
        let began = Instant::now();
        connection.write_all(message).expect("it is there");
        let mut answer = [0; 16];
        connection.read_exact(&mut answer).expect("it answers");
        assert_eq!(&answer, message);
        [began, Instant::now()]
    };
    (0..times).map(one).collect()
}

#[test]
fn slow_requests_are_told_from_quick_ones_by_what_they_wait_for() {
    const TIMES: usize = 200;
    let (_machine, scratch) = (machine(), scratch());
    let socket = scratch.path().join("socket");
    let mut server = Command::new("python3");
    server.args(["-c", ECHO]).arg(&socket).stdin(Stdio::null());
    let server = Killed(server.spawn().expect("the tests need python3"));
    assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "it listens");
    let open = Open::new(&["--pid", &server.0.id().to_string(), "--request"]);
    let asked = ask(&socket, TIMES);
    let recording = open.interrupted();
    let trace = window(&recording);
    holds_together(trace);
    let served = served(trace);
    assert_eq!(served.ns.len(), TIMES);
    // They come in order. The call that answers may end after the client has the answer, but before the next one is taken.
    for ((_, ns, _), asked) in served.iter().zip(asked.windows(2)) {
        let most = asked[1][1] - asked[0][0];
        assert!(ns <= Nanos::from(most), "{ns:?} of {most:?}");
    }
    let [slowest, others] = &served.groups[..] else { panic!("two groups: {:?}", served.groups) };
    assert!(slowest.slowest && !others.slowest);
    assert_eq!((slowest.requests, others.requests), (10, 190), "a twentieth of them");
    let slept = |group: &inodyne_model::requests::ServedGroup| -> Nanos {
        let rows = group.ledger.rows.iter();
        rows.filter(|row| row.cause == Some(Cause::Sleep)).map(|row| row.ns).sum()
    };
    // Ten more are as slow, and belong to the others. One that was held up by as much on a busy machine may be among the slowest.
    assert!(slept(slowest) >= Nanos(8 * 100_000_000), "{:?}", slowest.ledger.rows);
    assert!(slept(slowest) + slept(others) >= Nanos(20 * 100_000_000), "{:?}", others.ledger.rows);
    assert!(slowest.least_ns >= Nanos(100_000_000) && slept(slowest).share_of(slowest.ledger.wall_ns) > 0.3);
    let file = scratch.path().join("recording.inodyne");
    inodyne_recording::save(&recording, &file).expect("it is written");
    let shown = run(inodyne().arg("show").arg(&file)).ended_with(0).text();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("200 requests answered"), "{shown}");
    assert!(shown.contains("of the difference is clock_nanosleep blocked: sleep"), "{shown}");
}

#[test]
fn a_web_servers_requests_are_those_that_were_made() {
    const TIMES: usize = 60;
    let (_machine, scratch) = (machine(), scratch());
    std::fs::write(scratch.path().join("page"), [b'x'; 100_000]).expect("a file");
    let port = 20_000 + std::process::id() % 10_000;
    let mut server = Command::new("python3");
    server.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string(), "--directory"]).arg(scratch.path());
    let server =
        Killed(server.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("python3"));
    let connect = || TcpStream::connect(("127.0.0.1", port as u16));
    assert!(eventually(|| connect().is_ok()), "it listens");
    let open = Open::new(&["--pid", &server.0.id().to_string(), "--request"]);
    for _ in 0..TIMES {
        let mut connection = connect().expect("it listens");
        connection.write_all(b"GET /page HTTP/1.0\r\n\r\n").expect("it is there");
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).expect("it answers");
        assert!(answer.starts_with(b"HTTP/1.0 200") && answer.len() > 100_000, "{} bytes", answer.len());
    }
    let recording = open.interrupted();
    let trace = window(&recording);
    holds_together(trace);
    let served = served(trace);
    assert_eq!(served.ns.len(), TIMES);
    let whole: Nanos = served.groups.iter().map(|group| group.ledger.wall_ns).sum();
    let unexplained: Nanos = served.groups.iter().map(|group| group.ledger.unexplained_ns).sum();
    assert!(unexplained.share_of(whole) < 0.01, "{unexplained:?} of {whole:?}");
}

/// Answers each message once three others, to which it has been connected since it began, have answered it.
const ASKING: &str = "import socket, sys
unix = socket.socket(socket.AF_UNIX)
unix.connect(sys.argv[2])
tcp = socket.create_connection(('127.0.0.1', int(sys.argv[3])))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.connect(('127.0.0.1', int(sys.argv[4])))
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
while True:
    connection = listening.accept()[0]
    while message := connection.recv(16):
        for other in unix, tcp, udp:
            other.sendall(message)
            other.recv(16)
        connection.sendall(message)
";

#[test]
fn what_a_server_asks_of_others_is_no_request() {
    const TIMES: usize = 50;
    let (_machine, scratch) = (machine(), scratch());
    let [socket, other] = ["socket", "other"].map(|name| scratch.path().join(name));
    let unix = UnixListener::bind(&other).expect("a socket");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let ports = [tcp.local_addr(), udp.local_addr()].map(|address| address.expect("it has one").port().to_string());
    let echo = |mut stream: Box<dyn ReadWrite>| {
        let mut message = [0; 16];
        while stream.read_exact(&mut message).is_ok() && stream.write_all(&message).is_ok() {}
    };
    thread::spawn(move || echo(Box::new(unix.accept().expect("it connects").0)));
    thread::spawn(move || echo(Box::new(tcp.accept().expect("it connects").0)));
    thread::spawn(move || {
        let mut message = [0; 16];
        while let Ok((bytes, from)) = udp.recv_from(&mut message) {
            drop(udp.send_to(&message[..bytes], from));
        }
    });
    let mut server = Command::new("python3");
    server.args(["-c", ASKING]).args([&socket, &other]).args(ports).stdin(Stdio::null());
    let server = Killed(server.spawn().expect("the tests need python3"));
    assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "it listens");
    let open = Open::new(&["--pid", &server.0.id().to_string(), "--request"]);
    ask(&socket, TIMES);
    let recording = open.interrupted();
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(served(trace).ns.len(), TIMES);
}

#[test]
fn any_two_calls_can_mark_them() {
    let (_machine, scratch) = (machine(), scratch());
    std::fs::write(scratch.path().join("file"), [b'x'; 4096]).expect("a file");
    // Read and written in the same file, three times; and once written without having been read.
    let script = "import os
file = os.open('file', os.O_RDWR)
for number in range(3):
    os.pread(file, 10, number)
    os.pread(file, 10, number)
    os.pwrite(file, b'x', number)
os.pwrite(file, b'x', 9)
";
    let mut command = traced(&["--request=pread64,pwrite64"], ["python3", "-c", script]);
    let trace = run(command.current_dir(scratch.path())).ended_with(0).recording().traces.remove(0);
    let served = served(&trace);
    assert_eq!((served.ns.len(), &served.calls[..]), (3, &["pread64".to_owned(), "pwrite64".to_owned()][..]));
    // The second may return nothing; and who accepts makes the descriptor.
    let answered = |marks: &str, script: &str| {
        let mut command = traced(&[marks], ["python3", "-c", script]);
        let trace = run(command.current_dir(scratch.path())).ended_with(0).recording().traces.remove(0);
        self::served(&trace).ns.len()
    };
    let script = "import os
file = os.open('file', os.O_RDWR)
for number in range(3):
    os.pread(file, 10, number)
    os.fsync(file)
";
    assert_eq!(answered("--request=pread64,fsync", script), 3);
    let script = "import socket
listening = socket.socket(socket.AF_UNIX)
listening.bind('listening')
listening.listen()
for number in range(3):
    asking = socket.socket(socket.AF_UNIX)
    asking.connect('listening')
    listening.accept()[0].close()
    asking.close()
";
    assert_eq!(answered("--request=accept4,close", script), 3);
    let mistaken = run(inodyne().args(["run", "--request=pread64,pwrote", "--", "true"])).ended_with(2);
    assert!(mistaken.stderr.contains("two system calls on a descriptor"), "{}", mistaken.stderr);
}
