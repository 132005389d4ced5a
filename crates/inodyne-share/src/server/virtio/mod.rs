//! Guests that mount the share over virtiofs: any Linux in a virtual machine, without a program of ours. The virtual machine monitor (QEMU, Cloud
//! Hypervisor) connects a queue in its guest's memory to this process over the vhost-user protocol, and FUSE requests are put in it.
//!
//! | module | what it knows |
//! |---|---|
//! | this one | a virtual machine, from when it connects to its end |
//! | `device` | queues, and threads that take requests from them |
//! | `mounted` | the guest that has it mounted, if one has |
//! | `replies` | requests that are not answered, and where the answers go |
//!
//! virtiofs has no notifications, so such a guest is told of no change, and believes what it is told for a second.

mod device;
mod mounted;
mod replies;
#[cfg(test)]
mod tests;

use std::{io, os::unix::net::UnixListener, sync::Arc};

use vhost::vhost_user::Listener;
use vhost_user_backend::VhostUserDaemon;
use vm_memory::{GuestMemoryAtomic, GuestMemoryMmap};

use super::host::Host;
use device::Device;

/// The memory of a virtual machine: which of it is shared changes as it starts and as memory is added.
type Memory = GuestMemoryAtomic<GuestMemoryMmap>;

/// The first queue is for what has no answer; the others, as many as the machine is given, are for requests. QEMU uses one by default.
const QUEUES: usize = 1 + 4;

/// The longest queue; QEMU's has 128 places by default.
const MOST_PLACES: usize = 1024;

/// A virtual machine that is connected.
pub(super) struct Machine(VhostUserDaemon<Arc<Device>>);

impl Machine {
    /// The next one that connects.
    pub fn accept(host: &Arc<Host>, listener: UnixListener) -> io::Result<Self> {
        let memory = Memory::new(GuestMemoryMmap::new());
        let device = Arc::new(Device::new(host, memory.clone())?);
        let failed = |error: vhost_user_backend::Error| io::Error::other(error.to_string());
        let mut daemon = VhostUserDaemon::new("share-machine".into(), device, memory).map_err(failed)?;
        daemon.start(&mut Listener::from(listener)).map_err(failed)?;
        Ok(Self(daemon))
    }

    /// Serves it until it disconnects.
    pub fn serve(mut self) {
        // However it ends, it is over: a monitor that was killed is as good as one that has said so.
        let _ = self.0.wait();
    }
}
