//! Containers: from what people call them to their control groups. Nobody is asked through an API: names are read where Docker,
//! Podman, CRI-O and the kubelet keep them, and ids are part of the names of control groups.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use inodyne_model::cgroup::{ID_DIGITS, container_id, is_id_digit};
use serde::Deserialize;

use super::cgroups;

/// Fewer digits of an id could be a name as well.
const LEAST_DIGITS: usize = 4;
/// Docker's containers: a directory each.
const DOCKER: &str = "var/lib/docker/containers";
/// The containers of Podman and CRI-O, below this for each storage driver.
const STORAGE: &str = "var/lib/containers/storage";
/// The same for a user, in the user's home.
const USERS_STORAGE: &str = ".local/share/containers/storage";
/// The lists of containers there: those that go with their end (`--rm`, as Quadlet starts them) are in the second one.
const LISTS: [&str; 2] = ["containers.json", "volatile-containers.json"];
/// What the kubelet calls the logs of containers: `POD_NAMESPACE_CONTAINER-ID.log`.
const KUBELET: &str = "var/log/containers";
/// The programs that know names that are kept elsewhere.
const PROGRAMS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// How long each of them is waited for: its daemon may not answer, above all on a machine whose disks do not.
const LONGEST: Duration = Duration::from_secs(5);

/// The control groups of the containers with this name, or of the one whose id is this or begins with it.
///
/// # Errors
/// None, or more than one, matches; in one line.
pub fn groups(name: &str) -> Result<Vec<PathBuf>, String> {
    let mut ids = named(Path::new("/"), name);
    if ids.is_empty() && could_be_id(name) {
        ids = running(name);
        if ids.len() > 1 {
            let ids: Vec<String> = ids.iter().map(|id| id.chars().take(12).collect()).collect();
            return Err(format!("more than one container has an id that begins so: {}", ids.join(", ")));
        }
    }
    if ids.is_empty() {
        ids.extend(asked(name));
    }
    let is_meant = |directory: &str| {
        container_id(directory).is_some_and(|id| ids.contains(id))
            || machine_of(directory).is_some_and(|own| own == name)
    };
    let groups = cgroups::called(&is_meant, &|_| false);
    match (groups.is_empty(), ids.is_empty()) {
        (false, _) => Ok(groups),
        (true, false) => {
            Err("the container does not run, or has no control group of its own: then its processes are named by --pid"
                .into())
        }
        (true, true) => Err("no container is called that; its id would do, or --cgroup".into()),
    }
}

/// Whether the directory is a container's control group.
pub fn is_one(directory: &str) -> bool {
    container_id(directory).is_some() || machine_of(directory).is_some()
}

fn could_be_id(name: &str) -> bool {
    (LEAST_DIGITS..=ID_DIGITS).contains(&name.len()) && name.bytes().all(is_id_digit)
}

/// The name in the control group of an LXC container or of a systemd-nspawn machine.
fn machine_of(directory: &str) -> Option<Cow<'_, str>> {
    let lxc = directory.strip_prefix("lxc.payload.");
    let nspawn = || directory.strip_prefix("systemd-nspawn@")?.strip_suffix(".service");
    let machine = || directory.strip_prefix("machine-")?.strip_suffix(".scope");
    lxc.or_else(nspawn).map(Cow::Borrowed).or_else(|| machine().map(unescaped))
}

/// Undoes what systemd did to a name to make a unit's: `my\x2dweb` is `my-web` (systemd-escape(1)).
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|rest| rest.split_at_checked(2));
        let byte = escaped.and_then(|(digits, after)| {
            let digits =
                std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = byte.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// The ids that begin like this, among all control groups there are.
fn running(beginning: &str) -> BTreeSet<String> {
    let begins = |id: &&str| id.starts_with(beginning);
    let groups = cgroups::called(&|directory| container_id(directory).filter(begins).is_some(), &|_| false);
    let ids = groups.iter().filter_map(|group| container_id(group.file_name()?.to_str()?));
    ids.map(str::to_owned).collect()
}

/// The ids of the containers of this name, from the files below `root`; for the kubelet, a name is that of a pod, of a container in it,
/// or `POD/CONTAINER`.
fn named(root: &Path, name: &str) -> BTreeSet<String> {
    let mut ids = docker(&root.join(DOCKER), name);
    ids.extend(storage(&root.join(STORAGE), name));
    for home in entries(&root.join("home")).chain([root.join("root")]) {
        ids.extend(storage(&home.join(USERS_STORAGE), name));
    }
    ids.extend(kubelet(&root.join(KUBELET), name));
    ids
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The contents of a file, which may be in a user's home: none if it is not a file, or is larger than a list of containers would be.
fn contents(path: &Path) -> Option<Vec<u8>> {
    const MOST: u64 = 64 << 20;
    // Must not block: it may be a FIFO.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut contents = Vec::new();
    let read = file.take(MOST + 1).read_to_end(&mut contents).ok()?;
    (read as u64 <= MOST).then_some(contents)
}

fn docker(directory: &Path, name: &str) -> BTreeSet<String> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(rename = "ID")]
        id: String,
        #[serde(rename = "Name")]
        name: String,
    }
    let configs = entries(directory)
        .filter_map(|container| serde_json::from_slice::<Config>(&contents(&container.join("config.v2.json"))?).ok());
    configs.filter(|config| config.name.trim_start_matches('/') == name).map(|config| config.id).collect()
}

fn storage(directory: &Path, name: &str) -> BTreeSet<String> {
    #[derive(Deserialize)]
    struct Container {
        id: String,
        #[serde(default)]
        names: Vec<String>,
    }
    let drivers = entries(directory).filter(|path| path.to_string_lossy().ends_with("-containers"));
    let lists = drivers.flat_map(|driver| LISTS.map(|list| driver.join(list)));
    let containers = lists.filter_map(|list| serde_json::from_slice::<Vec<Container>>(&contents(&list)?).ok());
    let meant = containers.flatten().filter(|container| container.names.iter().any(|own| own == name));
    meant.map(|container| container.id).collect()
}

fn kubelet(directory: &Path, name: &str) -> BTreeSet<String> {
    let id = |path: PathBuf| {
        let log = path.file_name()?.to_str()?.strip_suffix(".log")?.to_owned();
        let (whole, id) = log.rsplit_once('-')?;
        let [pod, _, container] = whole.split('_').collect::<Vec<_>>()[..] else { return None };
        let is_meant = name == pod || name == container || name.split_once('/') == Some((pod, container));
        (is_meant && container_id(id).is_some()).then(|| id.to_owned())
    };
    entries(directory).filter_map(id).collect()
}

/// The id that one of the programs reports, if it is installed and answers.
fn asked(name: &str) -> Option<String> {
    PROGRAMS.iter().find_map(|program| {
        let mut command = Command::new(program);
        // An image may have the same name.
        command.args(["inspect", "--type", "container", "--format", "{{.Id}}", "--", name]);
        container_id(said_within(&mut command, LONGEST)?.trim()).map(str::to_owned)
    })
}

/// What a program prints. One that takes longer, or that has left somebody who may print more, is ended. Nobody waits for its end: if it
/// waits for a disk, a signal does not end it.
fn said_within(command: &mut Command, longest: Duration) -> Option<String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        let read = output.read_to_string(&mut said).ok();
        tell.send(read.map(|_| said))
    });
    let said = told.recv_timeout(longest);
    if said.is_err() {
        child.kill().ok()?;
    }
    thread::spawn(move || child.wait());
    said.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "e68610c33cecbe8530efcca7fda5320949c101ed6c334157c4492f9c9021c90b";

    #[test]
    fn an_id_is_read_from_the_name_of_a_group_of_each_runtime() {
        for name in [
            ID.to_owned(),
            format!("docker-{ID}.scope"),
            format!("libpod-{ID}"),
            format!("cri-containerd-{ID}.scope"),
            format!("crio-{ID}.scope"),
            format!("kubepods-pod1.slice:cri-containerd:{ID}"),
        ] {
            assert_eq!(container_id(&name), Some(ID), "{name}");
        }
        for name in
            [format!("libpod-conmon-{ID}.scope"), format!("docker-{ID}0.scope"), "init.scope".into(), String::new()]
        {
            assert_eq!(container_id(&name), None, "{name}");
        }
        let machine = |directory| machine_of(directory).map(Cow::into_owned);
        assert_eq!(machine("lxc.payload.web").as_deref(), Some("web"));
        assert_eq!(machine("systemd-nspawn@web.service").as_deref(), Some("web"));
        assert_eq!(machine("machine-web.scope").as_deref(), Some("web"));
        assert_eq!(machine(r"machine-my\x2dweb\x2d1.scope").as_deref(), Some("my-web-1"));
        assert_eq!(machine(r"machine-a\x2.scope").as_deref(), Some(r"a\x2"));
        assert_eq!(machine("web.service"), None);
    }

    #[test]
    fn a_program_that_does_not_answer_is_not_waited_for() {
        let mut never = Command::new("sleep");
        assert_eq!(said_within(never.arg("1000"), Duration::from_millis(50)), None);
        let mut soon = Command::new("echo");
        assert_eq!(said_within(soon.arg(ID), Duration::from_secs(60)), Some(format!("{ID}\n")));
        assert_eq!(said_within(&mut Command::new("no-such-program"), Duration::from_secs(60)), None);
    }

    #[test]
    fn names_are_read_where_the_runtimes_keep_them() {
        let root = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        let id = |digit: char| digit.to_string().repeat(ID_DIGITS);
        file(
            &format!("{DOCKER}/a/config.v2.json"),
            &format!(r#"{{"ID": "{}", "Name": "/web", "Path": "sh"}}"#, id('a')),
        );
        file(&format!("{DOCKER}/b/config.v2.json"), "not JSON");
        let podman = format!(r#"[{{"id": "{}", "names": ["db"]}}, {{"id": "{}"}}]"#, id('b'), id('c'));
        file(&format!("{STORAGE}/overlay-containers/containers.json"), &podman);
        let users = format!(r#"[{{"id": "{}", "names": ["web"]}}]"#, id('d'));
        file(&format!("home/u/{USERS_STORAGE}/overlay-containers/containers.json"), &users);
        let ending = format!(r#"[{{"id": "{}", "names": ["job"]}}]"#, id('f'));
        file(&format!("home/u/{USERS_STORAGE}/overlay-containers/volatile-containers.json"), &ending);
        file(&format!("{KUBELET}/etcd-node1_kube-system_etcd-{}.log", id('e')), "");
        file(&format!("{KUBELET}/no_id-1.log"), "");
        let found = |name: &str| named(root.path(), name).into_iter().collect::<Vec<_>>();
        assert_eq!(found("web"), [id('a'), id('d')]);
        assert_eq!(found("db"), [id('b')]);
        assert_eq!(found("job"), [id('f')]);
        for name in ["etcd", "etcd-node1", "etcd-node1/etcd"] {
            assert_eq!(found(name), [id('e')], "{name}");
        }
        for name in ["", "kube-system", "node1/etcd", "/web"] {
            assert!(found(name).is_empty(), "{name}");
        }
    }
}
