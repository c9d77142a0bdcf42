"""A replica that has all that a service may have."""

import os
import signal
from dataclasses import dataclass
from enum import Enum
from typing import Dict, List, Optional, Tuple

from steadfast_client import Context, ServiceError, raises, read, service


class Kind(Enum):
    GIRO = 1
    SAVINGS = 2


@dataclass
class Account:
    kind: Kind
    balance: int
    moves: List[Tuple[int, str]]


@dataclass
class Limit:
    most: int


@service
class Bank:
    """Accounts by their numbers."""

    accounts: Dict[int, Account]

    def __init__(self, limit=1000):
        self.accounts, self.limit = {}, limit

    def open(self, number: int, kind: Kind = Kind.GIRO) -> Account:
        """Opens an account."""
        self.accounts[number] = Account(kind, 0, [])
        return self.accounts[number]

    @raises(Limit)
    def pay(self, number: int, amount: int, text: str, context: Context) -> int:
        account = self.accounts[number]
        if account.balance + amount > self.limit:
            raise ServiceError(Limit(self.limit))
        account.balance += amount
        account.moves.append((context.now, text))
        return account.balance

    @read
    def account(self, number: int) -> Optional[Account]:
        return self.accounts.get(number)

    def draw(self, context: Context) -> List[int]:
        return [context.random.randrange(1000) for _ in range(3)]

    def forward(self, group: str, n: int, context: Context) -> int:
        """Adds n to the counter of another group."""
        return context.call(group, "add", n)

    def fill(self, number: int, count: int) -> int:
        """Makes a state of many pieces."""
        self.accounts[number].moves = [(i, "x" * 1000) for i in range(count)]
        return count

    def text(self, length: int) -> str:
        return "x" * length

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    Bank.serve(limit=500)
