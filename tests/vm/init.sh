#!/bin/busybox sh
# The first process of the guest, in the initial RAM disk: loads modules, mounts the root file system, puts into it what
# the host gave along, and hands over to the agent. Its messages end on the serial console.
export PATH=/bin

fail() {
    busybox echo "inodyne-vm-init: $*"
    busybox poweroff -f
}

busybox mkdir -p /proc /sys /dev /root
busybox mount -t proc proc /proc
busybox --install -s /bin
ln -s bin /sbin # where the kernel looks for modprobe
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

# ext4 asks for crc32c by an alias that not every modprobe knows.
for module in virtio_pci virtio_mmio virtio_blk virtio_console crc32c_generic crc32c_intel ext4; do
    modprobe -q "$module"
done
# Their device nodes are there before they are loaded, where there is udev.
modprobe -q loop
modprobe -q fuse
tries=0
until [ -b /dev/vda ]; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || fail "there is no /dev/vda"
    sleep 0.05
done
mount -t ext4 -o noinit_itable /dev/vda /root || fail "cannot mount the root file system"

# The modules stay in memory: the root file system is the same for all kernels.
mount -t tmpfs -o mode=755 tmpfs /root/usr/lib/modules
cp -a /lib/modules/. /root/usr/lib/modules/
if [ -d /payload ]; then
    cp -a /payload/. /root/
fi

mount --move /proc /root/proc
mount --move /sys /root/sys
mount --move /dev /root/dev
cd /root
mkdir -p dev/pts dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs run
# Not every kernel has each of these.
mount -t tracefs tracefs sys/kernel/tracing 2>/dev/null
mount -t bpf bpf sys/fs/bpf 2>/dev/null
mount -t cgroup2 cgroup2 sys/fs/cgroup 2>/dev/null &&
    for controller in memory io cpu; do echo "+$controller" >sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; done
ln -sf /proc/self/fd dev/fd
ip link set lo up 2>/dev/null
hostname inodyne-vm

# virtio-serial ports get their names from udev elsewhere.
mkdir -p dev/virtio-ports
tries=0
until [ -e "dev/virtio-ports/inodyne.vm" ]; do
    for port in sys/class/virtio-ports/*; do
        [ -e "$port/name" ] && ln -sf "../${port##*/}" "dev/virtio-ports/$(cat "$port/name")"
    done
    tries=$((tries + 1))
    [ $tries -lt 200 ] || fail "there is no virtio-serial port"
    [ -e "dev/virtio-ports/inodyne.vm" ] || sleep 0.05
done

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
# The kernel hands its words of the form A=B with a dot to nobody.
first=/sbin/inodyne-vm-agent
for word in $(cat proc/cmdline); do
    case $word in inodyne.init=*) first=${word#*=} ;; esac
done
exec busybox switch_root /root "$first"
