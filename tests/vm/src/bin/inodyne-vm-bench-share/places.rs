//! The places: how each is mounted, and what serves it. What serves them runs all the time; one place is mounted at a time.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use inodyne_vm::Vm;
use inodyne_vm::ganesha::Ganesha;
use inodyne_vm::share::{self, Server, Share, tell};
use inodyne_vm::virtiofsd::Virtiofsd;
use inodyne_vm::vsock::VsockDevice;

use crate::Failed;

/// A place where the tree can be had.
pub struct Place {
    /// In the tables.
    pub name: &'static str,
    /// The directory that holds the tree.
    pub directory: &'static str,
    /// Lines that mount it.
    mount: &'static str,
    /// How its requests can be counted.
    pub counted: Counted,
}

/// A tracepoint of the guest's kernel that says what is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// There is none.
    No,
    /// `fuse:fuse_request_send`.
    Fuse,
    /// `9p:9p_client_req`.
    Ninep,
    /// `sunrpc:rpc_request`.
    Nfs,
}

/// All of them. The first is what the others are compared with.
pub const PLACES: [Place; 10] = [
    Place { name: "ext4 of the guest", directory: "/var/tmp/native", mount: "true", counted: Counted::No },
    Place { name: "share", directory: "/mnt/share", mount: share::MOUNT, counted: Counted::Fuse },
    Place {
        name: "share over vsock",
        directory: "/mnt/share-vsock",
        mount: share::MOUNT_OVER_VSOCK,
        counted: Counted::Fuse,
    },
    Place {
        name: "share by virtiofs",
        directory: "/mnt/share-virtiofs",
        mount: "mount -t virtiofs share /mnt/share-virtiofs",
        counted: Counted::Fuse,
    },
    Place {
        name: "virtiofs, auto",
        directory: "/mnt/virtiofs-auto",
        mount: "mount -t virtiofs auto /mnt/virtiofs-auto",
        counted: Counted::Fuse,
    },
    Place {
        name: "virtiofs, always",
        directory: "/mnt/virtiofs-always",
        mount: "mount -t virtiofs always /mnt/virtiofs-always",
        counted: Counted::Fuse,
    },
    Place {
        name: "9p",
        directory: "/mnt/9p",
        mount: "mount -t 9p -o trans=virtio,version=9p2000.L shared /mnt/9p",
        counted: Counted::Ninep,
    },
    Place {
        name: "9p, loose",
        directory: "/mnt/9p-loose",
        mount: "mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose shared /mnt/9p-loose",
        counted: Counted::Ninep,
    },
    Place { name: "NFS", directory: "/mnt/nfs", mount: NFS, counted: Counted::Nfs },
    Place { name: "sshfs", directory: "/mnt/sshfs", mount: SSHFS, counted: Counted::Fuse },
];

/// Which of them is this project's.
pub const SHARE: usize = 1;
/// The same by another way.
pub const SHARE_OVER_VSOCK: usize = 2;

/// Without a program in the guest that would ask for the server's address: whoever mounts gives it.
const NFS: &str = r#"
modprobe -a virtio_net nfsv4
ip addr replace 10.0.2.15/24 dev eth0 && ip link set eth0 up
mount -i -t nfs4 -o "addr=10.0.2.2,clientaddr=10.0.2.15,vers=4.2,proto=tcp,port=$nfs_port,sec=sys" 10.0.2.2:/shared /mnt/nfs
"#;

const SSHFS: &str = r#"
for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" != sftp ] || device=/dev/$(basename "$port")
done
setsid sshfs -f -o passive ":$(cat /tmp/sftp-directory)" /mnt/sshfs <>"$device" >&0 2>/tmp/sshfs.log &
tries=0
until mountpoint -q /mnt/sshfs; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { cat /tmp/sshfs.log >&2; exit 1; }
    sleep 0.1
done
"#;

/// What serves them.
pub struct Servers {
    /// What the servers of others report as their versions.
    pub versions: [String; 2],
    directory: PathBuf,
    arguments: Vec<String>,
    _running: Vec<Server>,
    nfs_port: u16,
    sftp: UnixListener,
    /// The other end of the port of sshfs, once the virtual machine has connected, and the server that is on it.
    port: RefCell<Option<UnixStream>>,
    sftp_server: RefCell<Option<Child>>,
}

impl Servers {
    /// Starts all of them on one directory.
    pub fn start(cache: &Path, scratch: &Path, share: &Share, memory_mib: u32) -> Result<Servers, Failed> {
        let daemon = Virtiofsd::fetch(cache)?;
        let vsock = VsockDevice::fetch(cache)?;
        let mut running = vec![share.serve::<&str>(&[])?, vsock.serve(scratch)?];
        let mut arguments = share.qemu_arguments(memory_mib);
        arguments.extend(vsock.qemu_arguments(scratch));
        for setting in ["auto", "always"] {
            let socket = scratch.join(setting);
            running.push(daemon.serve(&share.directory, &socket, setting)?);
            arguments.extend(share::virtiofs(setting, setting, &socket));
        }
        let ganesha = Ganesha::fetch(cache)?;
        let (server, nfs_port) = ganesha.serve(&share.directory, scratch)?;
        running.push(server);
        arguments.extend(["-device", "virtio-net-pci,netdev=net", "-netdev", "user,id=net"].map(String::from));
        let ninep = format!("local,path={},mount_tag=shared,security_model=passthrough", share.directory.display());
        arguments.extend(["-virtfs".into(), ninep]);
        let socket = scratch.join("sftp");
        let sftp = UnixListener::bind(&socket)?;
        arguments.extend(["-chardev".into(), format!("socket,id=sftp,path={}", socket.display())]);
        arguments.extend(["-device".into(), "virtserialport,chardev=sftp,name=sftp".into()]);
        Ok(Servers {
            versions: [daemon.version, ganesha.version],
            directory: share.directory.clone(),
            arguments,
            _running: running,
            nfs_port,
            sftp,
            port: RefCell::default(),
            sftp_server: RefCell::default(),
        })
    }

    /// What QEMU is told.
    pub fn qemu_arguments(&self) -> Vec<String> {
        self.arguments.clone()
    }

    /// Mounts a place, with nothing of it in the guest's caches.
    pub fn mount(&self, vm: &mut Vm, at: usize) -> Result<(), Failed> {
        let place = &PLACES[at];
        if place.name == "sshfs" {
            self.start_sftp(vm)?;
        }
        let lines = format!(
            "nfs_port={}\nmkdir -p {}\n{}\nsync; echo 3 >/proc/sys/vm/drop_caches",
            self.nfs_port, place.directory, place.mount
        );
        tell(vm, &lines)?;
        Ok(())
    }

    /// Unmounts it.
    pub fn unmount(&self, vm: &mut Vm, at: usize) -> Result<(), Failed> {
        let directory = PLACES[at].directory;
        tell(vm, &format!("! mountpoint -q {directory} || umount {directory}; sleep 0.5"))?;
        if let Some(mut server) = self.sftp_server.borrow_mut().take() {
            server.kill()?;
            server.wait()?;
        }
        Ok(())
    }

    /// An sftp server on the port, without ssh.
    fn start_sftp(&self, vm: &mut Vm) -> Result<(), Failed> {
        let mut port = self.port.borrow_mut();
        if port.is_none() {
            *port = Some(self.sftp.accept()?.0);
            vm.put("/tmp/sftp-directory", 0o644, self.directory.as_os_str().as_encoded_bytes())?;
        }
        let end = || port.as_ref().expect("it has connected").try_clone().map(OwnedFd::from);
        let mut command = Command::new("/usr/lib/openssh/sftp-server");
        *self.sftp_server.borrow_mut() = Some(command.stdin(end()?).stdout(end()?).spawn()?);
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(mut server) = self.sftp_server.borrow_mut().take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
