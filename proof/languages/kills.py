"""Kills, stops and moves primaries under stock gRPC clients in five languages, and checks what the clients see.

    kills.py --steadfast target/ci/steadfast                 kills: no call fails, each counts once
    kills.py --steadfast target/ci/steadfast --no-keys       each call is sent at most once
    kills.py --steadfast target/ci/steadfast --moves 10      the primary moves
    kills.py --steadfast target/ci/steadfast --stop          processes are stopped for 3 s
    kills.py --steadfast target/ci/steadfast --tls           the same with certificates

It needs Python 3.11 and the program. A language whose toolchain is not there is skipped, and told.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from clients import BUILDERS, XDS_WITH_TLS, Client, Skipped
from cluster import NODES, Broken, Cluster, wait

STOPPED_S = 3
WARM = 200  # calls before anything is done to the cluster, and after it


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steadfast", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--languages", default=",".join(BUILDERS), help="default: %(default)s")
    parser.add_argument("--kills", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--moves", type=int, help="moves instead of kills")
    parser.add_argument("--stop", action="store_true", help="stops instead of kills")
    parser.add_argument("--beside", action="store_true", help="by a gateway beside the client, not by xDS")
    parser.add_argument("--no-keys", action="store_true")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("target/languages"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def now_ms():
    return time.time() * 1000


class Trial:
    """One language's client at one cluster."""

    def __init__(self, cluster, args, language, command):
        self.cluster, self.args, self.language, self.command = cluster, args, language, command

    def start(self, beside, deadline_ms=5000):
        """A client that calls already, and the counter before its first call."""
        cluster, bootstrap = self.cluster, None
        if beside:
            # The path of a Unix socket has room for 107 bytes.
            target = f"unix:{cluster.folder}/gateway.sock"
            cluster.run_beside(target)
        else:
            target, bootstrap = "xds:///counter", self.bootstrap()
        words = ["--deadline-ms", str(deadline_ms), *(["--no-keys"] if self.args.no_keys else [])]
        before = cluster.counter()
        client = Client(self.command, target, words, cluster, bootstrap)
        try:
            self.calls_go_on(client)
        except BaseException:
            client.kill()
            raise
        return client, before

    def bootstrap(self):
        cluster = self.cluster
        if cluster.tls and self.language not in XDS_WITH_TLS:
            at = f"127.0.0.1:{cluster.beside}"
            cluster.run_beside(at)
            return cluster.bootstrap([at], with_tls=False)
        return cluster.bootstrap(map(cluster.gateway_of, NODES), with_tls=bool(cluster.tls))

    def calls_go_on(self, client):
        """Waits until further calls of the client are executed."""
        there = self.cluster.counter()

        def go_on():
            client.check()
            return self.cluster.counter() >= there + WARM

        wait(go_on, lambda: f"calls of the client: it says {client.said}")

    def run(self, beside, disturb, deadline_ms=5000):
        """Calls while `disturb` does its work, and checks the counter."""
        client, before = self.start(beside, deadline_ms)
        try:
            found = disturb(client)
            result = client.end()
        finally:
            client.kill()
        grown = self.cluster.counter() - before
        answered = result["calls"] - result["failed"]
        told = f"{self.language}: {result}, and the counter grew by {grown}; it says {client.said}"
        if not answered <= grown <= result["calls"]:
            raise Broken(f"a call was lost or executed twice: {told}")
        # Calls without a key may fail: they are sent once.
        if not self.args.no_keys and result["failed"]:
            raise Broken(f"calls with keys failed: {told}")
        return {**result, "counter": grown, **found(client)}

    def kills(self, client):
        cluster, windows = self.cluster, []
        for _ in range(self.args.kills):
            primary, since = cluster.primary(), now_ms()
            others = [node for node in NODES if node != primary]
            cluster.kill(primary)
            wait(lambda: cluster.primary(others) not in (None, primary), "another primary")
            self.calls_go_on(client)
            windows.append((since, now_ms()))
            cluster.start(primary)
            cluster.settle()
        return lambda client: gaps(client, windows)

    def moves(self, client):
        cluster, windows, arrivals = self.cluster, [], []
        for _ in range(self.args.moves):
            primary, since = cluster.primary(), now_ms()
            to = NODES[NODES.index(primary) - 1]
            cluster.move(to)
            self.calls_go_on(client)
            windows.append((since, now_ms()))
            arrivals.append((since, cluster.gateway_of(to)))
            if client.gateways:
                wait(lambda: client.gateways[-1][1].endswith(arrivals[-1][1]), f"calls at node {to}")
        return lambda client: {**gaps(client, windows), **arrived(client, arrivals)}

    def stops(self, with_gateway):
        cluster = self.cluster

        def stop(client):
            primary, since = cluster.primary(), now_ms()
            others = [node for node in NODES if node != primary]
            # A gateway that the node has started is its child only as long as the node runs.
            pids = cluster.pids(primary, with_gateway)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                over = time.monotonic() + STOPPED_S
                wait(lambda: cluster.primary(others) not in (None, primary), "another primary")
                wait(lambda: time.monotonic() > over, "the end of the stop")
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            self.calls_go_on(client)
            window = (since, now_ms())
            cluster.settle()
            return lambda client: gaps(client, [window])

        return stop


def gaps(client, windows):
    """How long the longest call took in each window."""
    spans = [client.longest(*window) for window in windows]
    return {"gaps_ms": spans, "gap_p50_ms": statistics.median(spans), "gap_max_ms": max(spans)}


def arrived(client, moves):
    """When calls came to each new primary's gateway, where the client can tell."""
    spans = []
    for since, gateway in moves:
        at = [at for at, there in client.gateways if there.endswith(gateway) and at >= since]
        spans += [round(at[0] - since, 1)] if at else []
    return {"arrived_ms": spans, "arrived_p50_ms": statistics.median(spans)} if spans else {}


def scenarios(trial, args):
    """Name and result of each case."""
    if args.stop:
        for with_gateway in (False, True):
            stopped = "node and gateway" if with_gateway else "node"
            case = trial.stops(with_gateway)
            yield f"{stopped} stopped, beside, 500 ms", trial.run(True, case, deadline_ms=500)
            yield f"{stopped} stopped, xds", trial.run(False, case)
        return
    way = "beside" if args.beside else "xds"
    if args.moves:
        yield f"{args.moves} moves, {way}", trial.run(args.beside, trial.moves)
    else:
        yield f"{args.kills} kills, {way}", trial.run(args.beside, trial.kills)


COLUMNS = ("calls", "failed", "p50_us", "gap_p50_ms", "gap_max_ms", "longest_ms", "arrived_p50_ms")


def table(results):
    yield f"{'language':9}{'case':38}" + "".join(f"{name:>15}" for name in COLUMNS)
    for row in results:
        cells = (round(row[name], 1) if name in row else "-" for name in COLUMNS)
        yield f"{row['language']:9}{row['case']:38}" + "".join(f"{cell:>15}" for cell in cells)


def build(args):
    """How each client is run, why some are not there, and which cannot be built."""
    args.build.mkdir(parents=True, exist_ok=True)
    built, skipped, broken = {}, {}, []
    languages = args.languages.split(",")
    with ThreadPoolExecutor() as pool:
        building = {it: pool.submit(BUILDERS[it], args.build.resolve()) for it in languages}
    for language, done in building.items():
        try:
            built[language] = done.result()
        except Skipped as why:
            skipped[language] = str(why)
        except Broken as why:
            broken.append(f"{language}: {why}")
    return built, skipped, broken


def main():
    args = options()
    # Whoever ends this ends the cluster and the client too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unknown = set(args.languages.split(",")) - set(BUILDERS)
    if unknown or args.kills < 1 or (args.moves is not None and args.moves < 1):
        sys.exit(f"languages are {', '.join(BUILDERS)}; kills and moves are at least 1")
    if not args.steadfast.is_file():
        sys.exit(f"{args.steadfast} is not there: cargo build -p steadfast-cli, and name the program")
    built, skipped, broken = build(args)
    for language, why in skipped.items():
        print(f"{language} is skipped: {why}", file=sys.stderr)
    results = []
    for language, command in built.items():
        try:
            with (
                tempfile.TemporaryDirectory(prefix="steadfast-") as folder,
                Cluster(args.steadfast, folder, args.tls) as cluster,
            ):
                for case, found in scenarios(Trial(cluster, args, language, command), args):
                    results.append({"language": language, "case": case, **found})
        except Broken as why:
            broken.append(f"{language}: {why}")
    if args.json:
        print(json.dumps({"results": results, "skipped": skipped, "broken": broken}, indent=1))
    else:
        print("\n".join(table(results)))
    for why in broken:
        print(f"BROKEN {why}", file=sys.stderr)
    sys.exit(1 if broken else 0)


main()
