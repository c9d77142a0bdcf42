"""What Python adds to a call: the wheel beside the client in Rust, in turns of one run.

    cargo build --release --manifest-path python/Cargo.toml --example native
    STEADFAST_PROGRAM=target/release/steadfast python python/client/tests/bench.py \
        --native python/target/release/examples/native

A cluster of three nodes on this machine; each call adds 1 to the built-in counter, and one call is
under way at a time.
"""

import argparse
import asyncio
import os
import platform
import subprocess
import time

from cluster import Cluster, program
from steadfast_client import AsyncClient, Client


def timed(call, count):
    took = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        call()
        took.append(time.perf_counter_ns() - begun)
    return took


async def timed_in_coroutine(call, count):
    took = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        await call()
        took.append(time.perf_counter_ns() - begun)
    return took


def at(took, share):
    """So many microseconds or less are taken by this share of the calls."""
    return sorted(took)[int(share * (len(took) - 1))] / 1000


def measure(addresses, native, rounds, count):
    """The nanoseconds of each call, by the kind of client."""
    rust = subprocess.Popen(
        [native, *addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def by_rust():
        rust.stdin.write(f"{count}\n")
        rust.stdin.flush()
        return [int(word) for word in rust.stdout.readline().split()]

    plain, loop = Client(*addresses, deadline=20), asyncio.new_event_loop()
    coroutines = AsyncClient(*addresses, deadline=20)
    turns = {
        "rust": by_rust,
        "python": lambda: timed(lambda: plain.call("counter", "add", 1), count),
        "python, raw bytes": lambda: timed(
            lambda: plain.call("counter", "add", body=b"\1"), count
        ),
        "asyncio": lambda: loop.run_until_complete(
            timed_in_coroutine(lambda: coroutines.call("counter", "add", 1), count)
        ),
    }
    taken = {name: [] for name in turns}
    try:
        for number in range(rounds + 1):
            for name, turn in turns.items():
                took = turn()
                # The first round finds the group, and warms up.
                taken[name] += took if number else []
    finally:
        rust.kill()
        rust.communicate()
        loop.run_until_complete(coroutines.close())
        loop.close()
    return taken


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--native", required=True, help="the example `native`, built")
    options.add_argument("--rounds", type=int, default=50, help="turns of each client")
    options.add_argument("--count", type=int, default=200, help="calls in a turn")
    options = options.parse_args()
    before = os.getloadavg()[0]
    with Cluster() as cluster:
        taken = measure(
            list(cluster.addresses.values()), options.native, options.rounds, options.count
        )
    version = subprocess.run([program(), "--version"], capture_output=True, text=True).stdout
    print(
        f"{os.cpu_count()} processors, load {before:.1f} before and {os.getloadavg()[0]:.1f} after, "
        f"Linux {platform.release()}, Python {platform.python_version()}, {version.strip()}"
    )
    base = taken["rust"]
    print(f"{'':18}  {'p50':>8}  {'p99':>8}  {'p50 - rust':>10}   us, {len(base)} calls each")
    for name, took in taken.items():
        p50, p99 = at(took, 0.5), at(took, 0.99)
        print(f"{name:18}  {p50:8.1f}  {p99:8.1f}  {p50 - at(base, 0.5):10.1f}")


main()
