"""A cluster of three nodes on this machine, each with a gateway, whose processes can be killed and stopped."""

import json
import pathlib
import random
import signal
import socket
import subprocess
import time

NODES = (1, 2, 3)
CLUSTER = "trial"
GROUP = "counter"
WITHIN = 30  # seconds for whatever a cluster has to do by itself

# So long after a gateway came back every client knows it and can connect to it: gateways look each other up
# twice a second, and gRPC connects again after a second at the earliest (1.2 s by its jitter).
KNOWN_AFTER = 2


class Broken(Exception):
    """A promise was not kept, or the cluster does not do its work."""


def wait(condition, told, within=WITHIN):
    """The first true value of `condition`, which `told` names."""
    until = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise Broken(f"not within {within} s: {told() if callable(told) else told}")
        time.sleep(0.02)


def address(node):
    return f"127.0.0.{node}"


def is_free(port):
    """Whether every node can have this port, by TCP and by UDP."""
    try:
        for node in NODES:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as probe:
                    probe.bind((address(node), port))
    except OSError:
        return False
    return True


def free_ports(count):
    # Below the range from which the system gives ports to clients.
    candidates = random.sample(range(20000, 30000), 200)
    return [port for port in candidates if is_free(port)][:count]


class Cluster:
    """Nodes 1, 2 and 3 with the group `counter`."""

    def __init__(self, program, folder, tls):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(folder)
        self.ring, self.client, self.admin, self.grpc, self.beside = free_ports(5)
        self.tls = self.folder / "keys" / "client-app" if tls else None
        self.processes = {}
        self.gateway = None
        self._configure()

    def __enter__(self):
        try:
            for node in NODES:
                self.start(node)
            self.settle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        own = [*self.processes.values(), *filter(None, [self.gateway])]
        for process in own:
            process.kill()
        for process in own:
            process.wait()

    def _configure(self):
        if self.tls:
            ports = ["--ring-port", self.ring, "--client-port", self.client, "--admin-port", self.admin]
            keys = self.folder / "keys"
            self.run("init", "--cluster", CLUSTER, "--out", keys, "--local", "3", *map(str, ports))
            for node in NODES:
                config = self.config(node)
                listen = f'[listen]\ngrpc = "{self.gateway_of(node)}"'
                config.write_text(config.read_text().replace("[listen]", listen, 1))
            return
        nodes = "".join(f'[[nodes]]\nid = {it}\nring = "{address(it)}:{self.ring}"\n' for it in NODES)
        for node in NODES:
            config = self.config(node)
            config.parent.mkdir(parents=True)
            config.write_text(
                f'node = {node}\ncluster = "{CLUSTER}"\ndata_dir = "data"\nadmin = "node.sock"\n'
                f'[listen]\nclient = "{address(node)}:{self.client}"\ngrpc = "{self.gateway_of(node)}"\n'
                f'[registry]\non = true\n{nodes}[[replica]]\ngroup = "{GROUP}"\nservice = "counter"\n'
            )

    def config(self, node):
        return self.folder / "keys" / f"node-{node}" / "steadfast.toml"

    def gateway_of(self, node):
        return f"{address(node)}:{self.grpc}"

    def run(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Broken(f"steadfast {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def _spawn(self, log, *words):
        with open(self.folder / log, "a") as out:
            return subprocess.Popen([self.program, *words], stdout=out, stderr=out)

    def start(self, node):
        self.processes[node] = self._spawn(f"node-{node}.log", "node", "--config", self.config(node))

    def kill(self, node):
        self.processes[node].send_signal(signal.SIGKILL)
        self.processes[node].wait()

    def pids(self, node, with_gateway):
        """The node's process, and the gateway that it has started."""
        own = self.processes[node].pid
        tasks = pathlib.Path(f"/proc/{own}/task").iterdir()
        started = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
        return [own, *started] if with_gateway else [own]

    def group(self, seen_from):
        """The group as a node sees it; None if the node does not answer or does not know it."""
        words = [self.program, "status", "--json", "--config", self.config(seen_from)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            return None
        groups = json.loads(done.stdout)["groups"]
        return next((group for group in groups if group["name"] == GROUP), None)

    def primary(self, seen_from=NODES):
        """The primary's node, as the first of these nodes that knows it says."""
        for node in seen_from:
            group = self.group(node)
            if group and group["primary"]:
                return group["primary"]["node"]
        return None

    def _is_settled(self):
        for node in NODES:
            group = self.group(node)
            if not group or not group["primary"]:
                return False
            if sum(replica["synced"] for replica in group["replicas"]) < len(NODES):
                return False
        return all(self._listens(node) for node in NODES)

    def _listens(self, node):
        try:
            socket.create_connection((address(node), self.grpc), timeout=1).close()
        except OSError:
            return False
        return True

    def _are_announced(self):
        """Whether the registry has every gateway."""
        listed = self.run("registry", "list", "--json", "--config", self.config(NODES[0]))
        bindings = json.loads(listed.splitlines()[0])["bindings"]
        return sum(it["name"] == "steadfast.gateways" for it in bindings) >= len(NODES)

    def settle(self):
        """Waits until every node has a replica with the state, and a gateway that clients know."""
        wait(self._is_settled, "three replicas with the state, and three gateways")
        wait(self._are_announced, "three gateways in the registry")
        known = time.monotonic() + KNOWN_AFTER
        wait(lambda: time.monotonic() > known, "the time until clients know the gateways")

    def move(self, node):
        self.run("move", GROUP, "--to", str(node), "--config", self.config(node))

    def _client(self):
        at = ",".join(f"{address(node)}:{self.client}" for node in NODES)
        return ["--at", at, *(["--tls", self.tls] if self.tls else [])]

    def counter(self):
        return int(self.run("call", GROUP, "get", "--deadline", "10s", *self._client()))

    def run_beside(self, where):
        """A gateway beside the clients, at a Unix socket or a port."""
        if self.gateway:
            self.gateway.kill()
            self.gateway.wait()
        self.gateway = self._spawn("beside.log", "gateway", "--listen", where, *self._client())
        kind, at = (socket.AF_INET, ("127.0.0.1", self.beside))
        if where.startswith("unix:"):
            kind, at = (socket.AF_UNIX, where.removeprefix("unix:"))

        def is_there():
            with socket.socket(kind) as probe:
                return probe.connect_ex(at) == 0

        wait(is_there, f"the gateway at {where}")

    def bootstrap(self, gateways, with_tls):
        """The bootstrap file of clients that find gateways by xDS."""
        tls = ["--tls", self.tls] if with_tls else []
        path = self.folder / "bootstrap.json"
        path.write_text(self.run("gateway", "--bootstrap", ",".join(gateways), *tls))
        return path
