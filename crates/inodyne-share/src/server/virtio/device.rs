//! A virtiofs device: its queues, and the threads that take requests from them.
//!
//! Each queue has a thread, which itself does what it takes, so that whoever asked is woken soonest. What may wait for a disk goes to
//! another thread: always what writes back, and reading and writing if more is waiting behind it.

use std::{
    cell::RefCell,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
};

use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost_user_backend::{VhostUserBackend, VringT};
use virtio_queue::QueueT;
use vm_memory::GuestAddressSpace;
use vmm_sys_util::{
    epoll::EventSet,
    event::{EventConsumer, EventFlag, EventNotifier, new_event_consumer_and_notifier},
};

use super::{
    MOST_PLACES, Memory, QUEUES,
    mounted::{Mounted, Work},
    replies::{Queue, Taken},
};
use crate::{
    coherence::watch::{self, OwnThread},
    fuse::{abi::opcode, request::Request},
    server::host::Host,
};

/// Threads for what may wait for a disk.
const WORKERS: usize = 8;

/// How many requests may wait for one of these. With more, a queue's thread does them itself and takes no further one in the meantime, so that
/// a guest cannot fill the memory with them.
const MOST_SLOW: usize = 128;

/// `include/uapi/linux/virtio_config.h` and `virtio_ring.h`.
const VIRTIO_F_VERSION_1: u64 = 1 << 32;
const VIRTIO_RING_F_INDIRECT_DESC: u64 = 1 << 28;
const VIRTIO_RING_F_EVENT_IDX: u64 = 1 << 29;

thread_local! {
    /// Memory of a thread: for a request, and for its answer.
    static MEMORY: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    /// What a thread changes must not be taken for somebody else's change.
    static OWN: RefCell<Option<OwnThread>> = const { RefCell::new(None) };
}

/// The device of one machine.
pub(super) struct Device {
    memory: Memory,
    mounted: Arc<Mounted>,
    /// Requests for the other threads, which end with it.
    slow: SyncSender<(Vec<u8>, Work)>,
}

impl Device {
    /// One to which a machine may connect.
    pub fn new(host: &Arc<Host>, memory: Memory) -> io::Result<Self> {
        let mounted = Arc::new(Mounted::new(host.clone()));
        let (slow, requests) = sync_channel(MOST_SLOW);
        let requests = Arc::new(Mutex::new(requests));
        for _ in 0..WORKERS {
            let (mounted, requests) = (mounted.clone(), requests.clone());
            thread::Builder::new().name("share-worker".into()).spawn(move || work(&mounted, &requests))?;
        }
        Ok(Self { memory, mounted, slow })
    }

    /// Takes all requests that are in a queue.
    fn take(&self, queue: &Queue) -> io::Result<()> {
        let refused = |error: virtio_queue::Error| io::Error::other(error.to_string());
        let _work = self.mounted.work();
        loop {
            queue.disable_notification().map_err(refused)?;
            // Guest memory may change while requests are being done, so it is looked at again for each.
            while let Some(request) = Taken::next(queue, &self.memory.memory()) {
                self.request(queue, request);
            }
            // There is no notification of what came in between.
            if !queue.enable_notification().map_err(refused)? {
                return Ok(());
            }
        }
    }

    fn request(&self, queue: &Queue, taken: Taken) {
        MEMORY.with_borrow_mut(|(message, answer)| {
            let parsed = taken.read(message).and_then(|()| Request::parse(message).ok());
            let Some(request) = parsed else { return taken.discard() };
            let header = request.header;
            if matches!(header.opcode, opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT) {
                *answer = self.mounted.request(&request, std::mem::take(answer));
                return taken.discard();
            }
            if let Err(refused) = self.mounted.replies.expect(header.unique, taken) {
                return refused.discard();
            }
            if self.is_slow(queue, header.opcode) {
                match self.slow.try_send((std::mem::take(message), self.mounted.work())) {
                    Ok(()) => return,
                    Err(TrySendError::Full((back, _)) | TrySendError::Disconnected((back, _))) => *message = back,
                }
            }
            if let Ok(request) = Request::parse(message) {
                *answer = self.mounted.request(&request, std::mem::take(answer));
            }
        });
    }

    /// Whether a request may wait for a disk while others wait for it.
    fn is_slow(&self, queue: &Queue, number: u32) -> bool {
        match number {
            opcode::FSYNC
            | opcode::FSYNCDIR
            | opcode::SYNCFS
            | opcode::FALLOCATE
            | opcode::COPY_FILE_RANGE
            | opcode::LSEEK => true,
            opcode::READ | opcode::WRITE => {
                let state = queue.get_ref();
                let next = state.get_queue().next_avail();
                let last = state.get_queue().avail_idx(&*self.memory.memory(), std::sync::atomic::Ordering::Acquire);
                last.is_ok_and(|last| last.0 != next)
            }
            _ => false,
        }
    }
}

/// What another thread does until the device is gone.
fn work(mounted: &Mounted, requests: &Mutex<Receiver<(Vec<u8>, Work)>>) {
    let _own = watch::own_thread();
    let mut memory = Vec::new();
    loop {
        let next = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((message, _work)) = next else { return };
        if let Ok(request) = Request::parse(&message) {
            memory = mounted.request(&request, memory);
        }
    }
}

impl VhostUserBackend for Device {
    type Bitmap = ();
    type Vring = Queue;

    fn num_queues(&self) -> usize {
        QUEUES
    }

    fn max_queue_size(&self) -> usize {
        MOST_PLACES
    }

    fn features(&self) -> u64 {
        VIRTIO_F_VERSION_1
            | VIRTIO_RING_F_INDIRECT_DESC
            | VIRTIO_RING_F_EVENT_IDX
            | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
    }

    /// Each queue knows it itself.
    fn set_event_idx(&self, _enabled: bool) {}

    /// It is the same value.
    fn update_memory(&self, _memory: Memory) -> io::Result<()> {
        Ok(())
    }

    fn queues_per_thread(&self) -> Vec<u64> {
        (0..QUEUES).map(|queue| 1 << queue).collect()
    }

    fn handle_event(&self, _event: u16, events: EventSet, queues: &[Queue], _thread: usize) -> io::Result<()> {
        OWN.with_borrow_mut(|own| {
            own.get_or_insert_with(watch::own_thread);
        });
        match queues {
            // The only one of this thread.
            [queue] if events.contains(EventSet::IN) => self.take(queue),
            _ => Ok(()),
        }
    }

    fn exit_event(&self, _thread: usize) -> Option<(EventConsumer, EventNotifier)> {
        new_event_consumer_and_notifier(EventFlag::NONBLOCK | EventFlag::CLOEXEC).ok()
    }

    /// A machine that is paused, or restarts. Nothing is taken from this queue any more.
    fn stop_vring(&self, _queue: u32) -> io::Result<()> {
        self.mounted.finish();
        Ok(())
    }
}
