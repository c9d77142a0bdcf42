"""Adds 1 to the group `counter` in a loop, over stock gRPC.

    python client.py TARGET [--calls N | --seconds S] [--no-keys] [--tls DIR --authority NAME]

TARGET is xds:///counter, HOST:PORT or unix:PATH. It calls until N calls, S seconds or SIGTERM, and prints one line of
JSON. Failures, and calls of more than 5 ms, are told on the error stream.
"""

import argparse
import json
import pathlib
import signal
import statistics
import sys
import time

import grpc

from steadfast_keys import Keys

JSON = [("steadfast-encoding", "json")]


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--calls", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--deadline-ms", type=int, default=5000)
    parser.add_argument("--no-keys", action="store_true")
    parser.add_argument("--tls", type=pathlib.Path, help="the folder of a client, made by `steadfast init`")
    parser.add_argument("--authority", help="the name in the nodes' certificates: node.CLUSTER.steadfast")
    return parser.parse_args()


def open_channel(args):
    if args.tls is None:
        # HTTP/2 has no name for a path: gateways refuse the one that gRPC makes of it.
        name = [("grpc.default_authority", "localhost")] if args.target.startswith("unix:") else None
        channel = grpc.insecure_channel(args.target, name)
    else:
        credentials = grpc.ssl_channel_credentials(
            (args.tls / "authority.pem").read_bytes(),
            next(args.tls.glob("client-*.key")).read_bytes(),
            next(args.tls.glob("client-*.pem")).read_bytes(),
        )
        name = [("grpc.ssl_target_name_override", args.authority)]
        channel = grpc.secure_channel(args.target, credentials, name)
    return channel if args.no_keys else grpc.intercept_channel(channel, Keys())


def main():
    args = options()
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    channel = open_channel(args)
    add = channel.unary_unary(
        "/counter/add",
        request_serializer=lambda arguments: json.dumps(arguments).encode(),
        response_deserializer=json.loads,
    )
    waits, codes = [], {}
    until = time.monotonic() + args.seconds
    while len(waits) < args.calls and time.monotonic() < until and not stopped:
        began = time.time()
        try:
            add([1], timeout=args.deadline_ms / 1000, metadata=JSON, wait_for_ready=True)
        except grpc.RpcError as error:
            codes[error.code().name] = codes.get(error.code().name, 0) + 1
            print(f"failed {error.code().name} {error.details()}", file=sys.stderr, flush=True)
        waits.append((time.time() - began) * 1000)
        if waits[-1] > 5:
            print(f"slow {began * 1000:.0f} {waits[-1]:.1f}", file=sys.stderr, flush=True)
    print(
        json.dumps(
            {
                "calls": len(waits),
                "failed": sum(codes.values()),
                "codes": codes,
                "p50_us": round(statistics.median(waits or [0]) * 1000),
                "longest_ms": round(max(waits, default=0), 1),
            }
        )
    )


main()
