"""A replica whose state has what JSON has not: `steadfast conform` tries it."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from steadfast_client import read, service


@dataclass
class Item:
    name: str
    weight: float = 0.0
    parts: List["Item"] = field(default_factory=list)


@service
class Forms:
    items: Dict[str, Item]
    numbers: Dict[int, Optional[bytes]]

    def __init__(self):
        self.items, self.numbers, self.texts = {}, {}, []
        self.mean = 0.0

    def put(self, item: Item) -> bool:
        is_new = item.name not in self.items
        self.items[item.name] = item
        return is_new

    def number(self, n: int, what: Optional[bytes] = None) -> int:
        self.numbers[n] = what
        return len(self.numbers)

    def cut(self, text: str, weight: float) -> int:
        """Leaves half a pair of surrogates, and NaN."""
        half = text.encode("utf-16-le")[:18].decode("utf-16-le", "surrogatepass")
        self.texts.append(half + "\ud83d")
        self.mean = weight * float("inf")
        return len(self.texts)

    @read
    def find(self, name: str) -> Optional[Item]:
        return self.items.get(name)

    @read
    def all(self) -> Any:
        return len(self.texts)


if __name__ == "__main__":
    Forms.serve()
