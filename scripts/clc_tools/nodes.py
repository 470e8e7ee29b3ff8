"""Several hosts on one machine: runs a command on the first of N emulated nodes, where MPI launchers reach the others.

    scripts/nodes 2 -- mpirun -n 4 hostname
    scripts/nodes 4 -- clc-replay record -o run1 -- mpirun -n 8 ./app
    scripts/nodes 3 --slots 2 -- mpiexec.mpich -n 6 ./app

Options: --slots S   processes per node before the next one is used (1; a launcher with more processes begins again)
         --verbose   say what is made

A node is a network namespace and a UTS namespace of its own: it has a host name (node1, node2, ...), an address, and no shared
memory that MPI would use with the others, whose messages go over TCP. A bridge joins the nodes; nothing leads out of it. Where the kernel
has time namespaces, CLOCK_MONOTONIC and CLOCK_BOOTTIME of node k are k * 1,000 s ahead. The time stamp counter is one for all of them, so
true times are known. Files and processors are shared.

Open MPI and MPICH start processes on other nodes by an agent in place of ssh, which like ssh hands on no environment but PATH,
LD_LIBRARY_PATH, HOME, USER, LANG and what TMPDIR is. A setting of the same variable in the environment wins over that of this script.

Everything is made in namespaces of a process of this script. When the command has ended, or this script has been ended by whatever signal, the
kernel ends all processes on all nodes and removes the nodes; all that can be left, by SIGKILL, is an empty directory for temporary files. Ctrl-C reaches the command, for which the script
waits; SIGTERM and SIGHUP are handed on to it.

Needs root, or a kernel that gives user namespaces to everybody; iproute2 and util-linux. Exit status: that of the command; 2 wrong usage; 77 if the kernel does not
allow this, with one line that begins with "nodes: skipped:".
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from .command import complain
from .runner import AS_ROOT

SKIPPED = 77
MOST = 250
CLONE = {"time": 0x80, "mnt": 0x20000, "uts": 0x4000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
HANDED_ON = ("PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LANG", "TMPDIR")
LIBC = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The kernel does not allow it."""


@dataclass(frozen=True)
class Wanted:
    """How many nodes, and what runs on them."""

    count: int
    slots: int
    verbose: bool
    command: list[str]


def skipped(why: object) -> int:
    complain(f"skipped: {why}")
    return SKIPPED


def as_in_shells(status: int) -> int:
    """The exit status that shells have for a process: 128 and the signal that has ended it."""
    return status if status >= 0 else 128 - status


def system(what: str, result: int) -> None:
    if result != 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str | Path, target: str | Path, kind: str | None, flags: int) -> None:
    arguments = [str(word).encode() if word else None for word in (source, target, kind)]
    system(f"mount of {target}", LIBC.mount(*arguments, ctypes.c_ulong(flags), None))


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def tool(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"{' '.join(words)}: {done.stderr.strip() or f'exit status {done.returncode}'}")


def usage(why: str) -> NoReturn:
    complain(f"{why} (see scripts/nodes --help)")
    sys.exit(2)


def arguments(words: list[str]) -> Wanted:
    if any(word in ("-h", "--help") for word in words[: words.index("--") if "--" in words else None]):
        print(__doc__.strip())
        sys.exit(0)
    if "--" not in words or not words[words.index("--") + 1 :]:
        usage("no command after --")
    own, command = words[: words.index("--")], words[words.index("--") + 1 :]
    count: int | None = None
    slots, verbose = 1, False
    while own:
        word = own.pop(0)
        if word == "--verbose":
            verbose = True
        elif word == "--slots" and own and own[0].isdigit() and int(own[0]) > 0:
            slots = int(own.pop(0))
        elif word.isdigit() and count is None and 1 <= int(word) <= MOST:
            count = int(word)
        else:
            usage(f"what is {word}?")
    if count is None:
        usage(f"how many nodes (1 to {MOST})?")
    return Wanted(count, slots, verbose, command)


class Nodes:
    """The nodes, made by the first process of the namespaces."""

    def __init__(self, directory: Path, wanted: Wanted) -> None:
        self.directory, self.wanted = directory, wanted
        self.time = Path("/proc/self/ns/time").exists()
        # One process on each node, which keeps it.
        self.keepers: list[int] = []

    @staticmethod
    def name(k: int) -> str:
        return f"node{k}"

    @staticmethod
    def address(k: int) -> str:
        return f"10.77.0.{k}"

    def numbers(self) -> range:
        return range(1, self.wanted.count + 1)

    def say(self, text: str) -> None:
        if self.wanted.verbose:
            print(f"nodes: {text}", file=sys.stderr, flush=True)

    def make(self) -> None:
        # What is mounted here is nobody else's business; processes are those of the new namespace. The directory has to be gone with it.
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        mount("proc", "/proc", "proc", 0)
        mount("nodes", self.directory, "tmpfs", 0)
        # Names of nodes and numbers of processes are those of other runs: what MPI libraries call after them must not be shared with these.
        mount("shm", "/dev/shm", "tmpfs", 0)
        (self.directory / "sessions").mkdir()
        lines = [f"{self.address(k)} {self.name(k)}" for k in self.numbers()]
        (self.directory / "hosts").write_text("127.0.0.1 localhost\n" + "\n".join(lines) + "\n")
        mount(self.directory / "hosts", "/etc/hosts", None, MS_BIND)
        tool("ip", "link", "set", "lo", "up")
        tool("ip", "link", "add", "bridge", "type", "bridge")
        tool("ip", "link", "set", "bridge", "up")
        for k in self.numbers():
            self.keepers.append(self.keeper(k))
            process = str(self.keepers[-1])
            tool("ip", "link", "add", f"port{k}", "type", "veth", "peer", "name", "eth0", "netns", process)
            tool("ip", "link", "set", f"port{k}", "master", "bridge", "up")
            inside = self.enter(k)
            tool(*inside, "ip", "link", "set", "lo", "up")
            tool(*inside, "ip", "address", "add", f"{self.address(k)}/24", "dev", "eth0")
            tool(*inside, "ip", "link", "set", "eth0", "up")
            self.say(f"{self.name(k)} has the address {self.address(k)}")
        self.write_agent()

    def keeper(self, k: int) -> int:
        ready, told = os.pipe()
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                system("namespaces of a node", LIBC.unshare(CLONE["net"] | CLONE["uts"]))
                # Its clocks count for its children only: they are entered by nsenter.
                if self.time and LIBC.unshare(CLONE["time"]) == 0:
                    Path("/proc/self/timens_offsets").write_text(f"monotonic {1000 * k} 0\nboottime {1000 * k} 0\n")
                name = self.name(k).encode()
                system("host name", LIBC.sethostname(name, len(name)))
                os.write(told, b"y")
            except (Refused, OSError) as error:
                os.write(told, f"n{error}".encode())
                os._exit(1)
            os.close(ready)
            os.close(told)
            while True:
                signal.pause()
        os.close(told)
        answer = os.read(ready, 4096).decode()
        os.close(ready)
        if not answer.startswith("y"):
            raise Refused(answer[1:])
        return process

    def enter(self, k: int) -> list[str]:
        process = self.keepers[k - 1]
        clocks = [f"--time=/proc/{process}/ns/time_for_children"] if self.time else []
        return ["nsenter", f"--net=/proc/{process}/ns/net", f"--uts=/proc/{process}/ns/uts", *clocks, "--"]

    def write_agent(self) -> None:
        cases = "".join(
            f"    {self.name(k)} | {self.address(k)}) set -- {' '.join(self.enter(k)[1:-1])} ;;\n"
            for k in self.numbers()
        )
        handed_on = " ".join(f'${{{name}+{name}="${name}"}}' for name in HANDED_ON)
        agent = self.directory / "agent"
        agent.write_text(
            "#!/bin/sh\n# As ssh: [options] host command...\n"
            'while [ "${1#-}" != "$1" ]; do shift; done\n'
            "host=$1\nshift\ncommand=$*\ncase $host in\n"
            f'{cases}    *) echo "nodes: no node $host" >&2; exit 255 ;;\nesac\n'
            f'exec env -i {handed_on} nsenter "$@" -- sh -c "$command"\n'
        )
        agent.chmod(0o755)
        for name, text in (("openmpi", "{} slots={}"), ("mpich", "{}:{}")):
            lines = [text.format(self.name(k), self.wanted.slots) + "\n" for k in self.numbers()]
            (self.directory / name).write_text("".join(lines))

    def environment(self) -> dict[str, str]:
        agent, own = str(self.directory / "agent"), dict(os.environ)
        more = {
            # Open MPI 4; only what all nodes have, whatever else the machine has.
            "OMPI_MCA_plm": "rsh",
            "OMPI_MCA_plm_rsh_agent": agent,
            "OMPI_MCA_orte_default_hostfile": str(self.directory / "openmpi"),
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_orte_tmpdir_base": str(self.directory / "sessions"),
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "tcp,self,vader",
            # MPICH and others with Hydra.
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": agent,
            "HYDRA_HOST_FILE": str(self.directory / "mpich"),
        }
        if os.getuid() == 0:
            more |= AS_ROOT
        return more | own

    def run(self, command: Sequence[str]) -> int:
        """The command on the first node; its exit status as shells have it."""
        try:
            child = subprocess.Popen([*self.enter(1), *command], env=self.environment())
        except OSError as error:
            raise Refused(str(error)) from error

        def hand_on(number: int, _: FrameType | None) -> None:
            child.send_signal(number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, hand_on)
        # As the first process it also gets the children of others.
        while True:
            process, status = os.wait()
            if process == child.pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return as_in_shells(child.returncode)


def first_process(directory: Path, wanted: Wanted) -> int:
    """Of the new namespaces: when it ends, everything on the nodes ends."""
    die_with_parent()
    # The terminal sends it to the command as well.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        nodes = Nodes(directory, wanted)
        nodes.make()
    except (Refused, OSError) as error:
        return skipped(error)
    if shutil.which(wanted.command[0]) is None:
        complain(f"{wanted.command[0]}: command not found")
        return 127
    try:
        return nodes.run(wanted.command)
    except Refused as error:
        return skipped(error)


def new_namespaces() -> None:
    wanted = CLONE["mnt"] | CLONE["net"] | CLONE["uts"] | CLONE["pid"]
    user, group = os.getuid(), os.getgid()
    if user != 0:
        wanted |= CLONE["user"]
    system("namespaces", LIBC.unshare(wanted))
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def main() -> int:
    wanted = arguments(sys.argv[1:])
    for name in ("ip", "nsenter"):
        if shutil.which(name) is None:
            return skipped(f"{name} is not installed (iproute2, util-linux)")
    try:
        new_namespaces()
    except (Refused, OSError) as error:
        return skipped(error)
    directory = Path(tempfile.mkdtemp(prefix="clc-nodes-"))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = first_process(directory, wanted)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def hand_on(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGINT, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, hand_on)
    _, status = os.waitpid(child, 0)
    LIBC.umount2(str(directory).encode(), MNT_DETACH)
    directory.rmdir()
    return as_in_shells(os.waitstatus_to_exitcode(status))
