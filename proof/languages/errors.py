"""Has stock clients get each of the gateway's errors, at every length and alphabet, and checks that it is whole.

    errors.py --steadfast target/ci/steadfast

One table is given to a program in each language (`ask`), which tells what it got. curl gets the same by HTTP. A
language whose toolchain is not there is skipped, and told.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

from clients import BUILDERS, EXAMPLES, Skipped, check, need
from cluster import Broken, Cluster

HERE = pathlib.Path(__file__).resolve().parent
ASK = HERE / "ask"
JSON = {"steadfast-encoding": "json"}

LENGTHS = (10, 100, 300, 380, 500, 660, 682, 900, 1100, 1500, 2000, 2040, 3000)
ALPHABETS = ("a", "ü", "漢", "😀", "\x01", '"', "% ", "x漢\n")

# Of a service's own error so many bytes stand in `steadfast-error-bin` at least (docs/gateway.md).
WHOLE_BYTES = 4400

# Of the headers of a request (docs/gateway.md).
MAX_HEADERS = 16 << 10

OK, INVALID, NOT_FOUND, EXHAUSTED, FAILED, OUT_OF_RANGE, UNIMPLEMENTED = 0, 3, 5, 8, 9, 11, 12


def table():
    """Path, message, metadata, and the code that is right."""
    good = ("/errors/count", "[1]", JSON, OK)
    for letters in ALPHABETS:
        for length in LENGTHS:
            text = (letters * length)[:length]
            message = json.dumps([text])
            yield "/errors/fail", message, JSON, FAILED
            yield "/errors/count", message, JSON, INVALID
            name = urllib.parse.quote(text, safe="")
            # The path counts as a header.
            is_long = len(name) > MAX_HEADERS - 400
            yield f"/errors/{name}", "[]", JSON, EXHAUSTED if is_long else UNIMPLEMENTED
            yield f"/{name}/count", "[1]", JSON, EXHAUSTED if is_long else NOT_FOUND
            # What spoils a connection spoils the calls that come after.
            yield good
    for length in LENGTHS:
        for name in ("steadfast-read", "steadfast-priority", "steadfast-call", "steadfast-session"):
            yield "/errors/count", "[1]", {**JSON, name: "z" * length}, INVALID
    yield "/errors/count", "[1]", {**JSON, "x-long": "z" * 17_000}, EXHAUSTED
    yield "/errors/count", "[" + " " * (1 << 20) + "1]", JSON, OUT_OF_RANGE
    yield good


def fault(case, told):
    """What is wrong with an answer."""
    path, message, _, code = case
    if told["code"] != code:
        return f"code {told['code']}, and not {code}: {told['text'][:200]}"
    if code == OK:
        return None
    executed = "yes" if code == FAILED else "no"
    if told.get("executed") != executed:
        return f"executed: {told.get('executed')}, and not {executed}"
    text, cut = told["text"], told.get("cut") or None
    if ("... (cut: " in text[-40:]) != (cut == "message" or (cut == "error" and not is_json(text))):
        return f"steadfast-cut: {cut}, and the text is {text[-60:]!r}"
    if code != FAILED:
        return None
    (wanted,) = json.loads(message)
    own = base64.b64decode(told.get("error") or "")
    if own:
        return None if json.loads(own) == wanted else "the error is another one"
    if cut != "error":
        return "the error is missing, and nothing says so"
    if is_json(text):
        return None if json.loads(text) == wanted else "the text is another one"
    length = int(text.rsplit("(cut: ", 1)[1].split()[0])
    return None if length > WHOLE_BYTES else f"an error of {length} bytes is cut"


def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def ask(command, target, cases):
    lines = "".join(json.dumps(case[:3]) + "\n" for case in cases)
    done = subprocess.run([*command, target], input=lines, capture_output=True, text=True, timeout=240, check=False)
    answers = done.stdout.splitlines()
    if done.returncode or len(answers) != len(cases):
        raise Broken(f"{len(answers)} answers to {len(cases)} calls: {done.stderr.strip()[-500:]}")
    for case, line in zip(cases, answers):
        if why := fault(case, json.loads(line)):
            raise Broken(f"{case[0][:60]} {case[1][:60]} ({len(case[1])} bytes): {why}")
    return len(cases)


def curl(target, cases):
    """By HTTP every error is whole, whatever its length."""
    count = 0
    for path, message, _, code in cases:
        if code != FAILED:
            continue
        words = ["curl", "--silent", "--show-error", "--max-time", "20", "--header", "content-type: application/json"]
        words += ["--data-binary", "@-", "--write-out", "\n%{http_code}", f"http://{target}/v1/groups{path}"]
        done = subprocess.run(words, input=message, capture_output=True, text=True, check=False)
        body, _, status = done.stdout.rpartition("\n")
        told = json.loads(body) if status == "422" else {}
        if told.get("executed") != "yes" or [told.get("error")] != json.loads(message):
            raise Broken(f"{len(message)} bytes by curl: {status} {done.stdout[:200]}{done.stderr}")
        count += 1
    return count


def python(folder):
    own = folder / "python" / "bin" / "python"
    if not own.exists():
        BUILDERS["python"](folder)
    return [own, ASK / "ask.py"]


def node(folder):
    at = folder / "node"
    if not (at / "node_modules").exists():
        BUILDERS["node"](folder)
    shutil.copy(ASK / "ask.js", at)
    return ["node", at / "ask.js"]


def go(folder):
    need("go")
    at = folder / "ask-go"
    at.mkdir(exist_ok=True)
    for source in (EXAMPLES / "go" / "go.mod", EXAMPLES / "go" / "go.sum", ASK / "ask.go"):
        shutil.copy(source, at)
    if not (folder / "client-go").exists():
        BUILDERS["go"](folder)
    check("go", "build", "-o", folder / "ask", ".", at=at)
    return [folder / "ask"]


def java(folder):
    at = folder / "java"
    if not (at / "target" / "classes").exists():
        BUILDERS["java"](folder)
    libraries = f"{at}/target/lib/*"
    check("javac", "-cp", libraries, "-d", folder / "ask-java", ASK / "Ask.java", at=folder)
    return ["java", "-cp", f"{folder}/ask-java:{libraries}", "Ask"]


LANGUAGES = {it.__name__: it for it in (python, java, go, node)}


def serve(cluster):
    """A replica of `errors` at node 1."""
    kit = HERE.parents[1] / "python" / "client"
    program = [sys.executable, ASK / "service.py"]
    words = ["--group", "errors", "--env", f"PYTHONPATH={kit}", "--config", cluster.config(1)]
    cluster.run("run", *map(str, words), "--", *map(str, program))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steadfast", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--languages", default=",".join([*LANGUAGES, "curl"]), help="default: %(default)s")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("target/languages"))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    args.build.mkdir(parents=True, exist_ok=True)
    cases, broken = list(table()), []
    with (
        tempfile.TemporaryDirectory(prefix="steadfast-") as folder,
        Cluster(args.steadfast, folder, False) as cluster,
    ):
        serve(cluster)
        target = cluster.gateway_of(1)
        for language in args.languages.split(","):
            try:
                if language == "curl":
                    need("curl")
                    count = curl(target, cases)
                else:
                    count = ask(LANGUAGES[language](args.build.resolve()), target, cases)
                print(f"{language}: {count} errors, each whole", flush=True)
            except Skipped as why:
                print(f"{language} is skipped: {why}", file=sys.stderr)
            except Broken as why:
                broken.append(f"{language}: {why}")
    for why in broken:
        print(f"BROKEN {why}", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    main()
