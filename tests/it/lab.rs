//! Three hosts on one machine: network and UTS namespaces on a bridge, with an ssh server each. `mpirun` works from one host to the others as on
//! a cluster, and hosts can be stopped, killed and disconnected.

use crate::stage::{Stage, tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Hosts in the lab.
const HOSTS: u32 = 3;
/// The namespace of the bridge.
pub(crate) const SWITCH: &str = "fathom-lab-sw";

/// Three hosts, removed on drop. There is one lab at a time: a test of hosts has the machine to itself.
pub(crate) struct Lab {
    dir: TempDir,
}

impl Lab {
    pub(crate) fn up() -> Self {
        let lab =
            Self { dir: tempfile::Builder::new().prefix("fathom-lab-").tempdir_in("/var/tmp").unwrap() };
        lab.keys();
        std::fs::create_dir_all("/run/sshd").unwrap();
        let switch = SWITCH;
        run(&format!("ip netns add {switch}"));
        run(&format!("ip netns exec {switch} ip link add br0 type bridge"));
        run(&format!("ip netns exec {switch} ip link set br0 up"));
        for n in 1..=HOSTS {
            let (space, address) = (space(n), address(n));
            run(&format!("ip netns add {space}"));
            run(&format!("ip link add e{n} netns {space} type veth peer name p{n} netns {switch}"));
            run(&format!("ip netns exec {switch} ip link set p{n} master br0 up"));
            run(&format!("ip netns exec {space} ip addr add {address}/24 dev e{n}"));
            run(&format!("ip netns exec {space} ip link set e{n} up"));
            run(&format!("ip netns exec {space} ip link set lo up"));
            let config = lab.config(n);
            let start = format!("hostname {}; exec /usr/sbin/sshd -f {}", name(n), config.display());
            tool(&[&"ip", &"netns", &"exec", &space, &"unshare", &"--uts", &"sh", &"-c", &start]).unwrap();
        }
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn keys(&self) {
        for key in ["id", "host"] {
            tool(&[&"ssh-keygen", &"-q", &"-t", &"ed25519", &"-N", &"", &"-f", &self.path(key)]).unwrap();
        }
        let client = format!(
            "Host *\nIdentityFile {}\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nUser root\n",
            self.path("id").display()
        );
        std::fs::write(self.path("ssh.conf"), client).unwrap();
    }

    fn config(&self, n: u32) -> PathBuf {
        let text = format!(
            "Port 22\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPidFile {}\n",
            address(n),
            self.path("host").display(),
            self.path("id.pub").display(),
            self.path(&format!("sshd{n}.pid")).display()
        );
        let file = self.path(&format!("sshd{n}.conf"));
        std::fs::write(&file, text).unwrap();
        file
    }

    /// The program on all hosts, started on the first one.
    pub(crate) fn command(&self, stage: &Stage, words: &str, target: &Path) -> Command {
        let server = self.path("sshd1.pid");
        let until = Instant::now() + Duration::from_secs(5);
        while !server.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let server = std::fs::read_to_string(server).unwrap();
        let remote = format!("-F {}", self.path("ssh.conf").display());
        let hosts: Vec<String> = (1..=HOSTS).map(address).collect();
        let prefix = [
            &["nsenter", "-t", server.trim(), "-n", "-u", "mpirun", "--allow-run-as-root"][..],
            &["--mca", "plm_rsh_args", &remote, "--bind-to", "none", "--host", &hosts.join(",")],
            // The launcher notices within seconds that a host is disconnected.
            &["--mca", "oob_tcp_keepalive_time", "2", "--mca", "oob_tcp_keepalive_intvl", "1"],
            &["--mca", "oob_tcp_keepalive_probes", "3"],
            &["-np", &HOSTS.to_string(), "-x", "XDG_DATA_HOME", "-x", "FATHOM_TEST_IDLE"],
        ];
        let prefix: Vec<String> = prefix.concat().into_iter().map(str::to_owned).collect();
        stage.command(&prefix, words, target)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Ends processes that survived a fault, with their host.
        end();
        for n in 1..=HOSTS {
            let _ = tool(&[&"ip", &"netns", &"del", &space(n)]);
        }
        let _ = tool(&[&"ip", &"netns", &"del", &SWITCH]);
    }
}

fn run(words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let words: Vec<&dyn AsRef<std::ffi::OsStr>> =
        words.iter().map(|w| w as &dyn AsRef<std::ffi::OsStr>).collect();
    tool(&words).unwrap();
}

fn space(n: u32) -> String {
    format!("fathom-lab-{n}")
}

fn name(n: u32) -> String {
    format!("fathom-lab-{n}")
}

fn address(n: u32) -> String {
    format!("10.77.0.{n}")
}

/// The names of the hosts.
pub(crate) fn names() -> Vec<String> {
    (1..=HOSTS).map(name).collect()
}

/// Processes with this name on a host.
fn processes(n: u32, called: &str) -> Vec<String> {
    let all = tool(&[&"ip", &"netns", &"pids", &space(n)]).unwrap_or_default();
    let is_it = |pid: &&str| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == called)
    };
    all.lines().filter(is_it).map(str::to_owned).collect()
}

/// Sends a signal to the program on a host.
pub(crate) fn signal(n: u32, signal: &str) {
    for pid in processes(n, "fathom") {
        tool(&[&"kill", &format!("-{signal}"), &pid]).unwrap();
    }
}

/// Waits until `mpirun` has ended by itself, at most for the limit.
pub(crate) fn wait_for_launcher_exit(limit: Duration) {
    let until = Instant::now() + limit;
    while !processes(1, "mpirun").is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Ends all processes on all hosts, including connections to disconnected hosts: otherwise a reader of their output would wait forever.
pub(crate) fn end() {
    for pid in (1..=HOSTS).flat_map(|n| tool(&[&"ip", &"netns", &"pids", &space(n)])) {
        pid.lines().for_each(|pid| drop(tool(&[&"kill", &"-KILL", &pid])));
    }
}

/// Waits until no host has worker threads, except the hosts in `but`. Returns how long that took, or `None` after the limit.
pub(crate) fn wait_until_idle(limit: Duration, but: &[&str]) -> Option<Duration> {
    let since = Instant::now();
    let loads = |n: &u32| {
        let threads = |pid: &String| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        let names = |pid: String| {
            threads(&pid)
                .filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok())
                .collect::<Vec<_>>()
        };
        !but.contains(&name(*n).as_str())
            && processes(*n, "fathom").into_iter().flat_map(names).any(|comm| comm.trim() == "fathom-0")
    };
    while since.elapsed() < limit {
        if !(1..=HOSTS).any(|n| loads(&n)) {
            return Some(since.elapsed());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}
