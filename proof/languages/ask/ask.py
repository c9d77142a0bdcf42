"""Makes the calls that its input names, and tells how each ended.

    ask.py TARGET < calls

A line of input is an array: path, message in JSON, metadata. A line of output is an object.
"""

import base64
import json
import sys

import grpc

OURS = {"steadfast-executed": "executed", "steadfast-cut": "cut"}


def main():
    channel = grpc.insecure_channel(sys.argv[1])
    for line in sys.stdin:
        path, message, metadata = json.loads(line)
        call = channel.unary_unary(path)
        try:
            call(message.encode(), timeout=20, metadata=list(metadata.items()))
            told = {"code": 0, "text": ""}
        except grpc.RpcError as error:
            told = {"code": error.code().value[0], "text": error.details()}
            for name, value in error.trailing_metadata():
                if name in OURS:
                    told[OURS[name]] = value
                elif name == "steadfast-error-bin":
                    told["error"] = base64.b64encode(value).decode()
        print(json.dumps(told), flush=True)


main()
