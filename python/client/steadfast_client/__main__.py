"""`python -m steadfast_client`: what type checkers want to know of a group."""

import argparse
import sys

from ._errors import SteadfastError
from ._stubs import stubs


def main() -> None:
    """Runs the command line: 0 all is well, 1 there is no contract, 2 the command line is wrong."""
    parser = argparse.ArgumentParser("python -m steadfast_client", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("stubs", help="prints a module with the group's methods, typed")
    made.add_argument("group", help="the group's name")
    made.add_argument("--at", required=True, metavar="HOST:PORT", help="nodes, with commas between")
    made.add_argument("--tls", metavar="DIR", help="the folder that `steadfast init` made")
    options = parser.parse_args()
    try:
        from ._client import Client

        text = stubs(Client(options.at, tls=options.tls).contract(options.group), options.group)
    except (AttributeError, SteadfastError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except (KeyError, TypeError) as error:
        sys.exit(f"{parser.prog}: the types of the service's contract have no known form ({error})")
    print(text, end="")


main()
