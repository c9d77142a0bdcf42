"""A service that knows the nodes of its group's replicas, and merges what others noted."""

from typing import List

from steadfast_client import View, read, service


@service
class Crew:
    members: List[int]
    written: List[str]

    def __init__(self) -> None:
        self.members = []
        self.written = []

    def on_view(self, view: View) -> None:
        self.members = sorted(view.members)

    def on_merge(self, other: "Crew") -> None:
        self.written += [note for note in other.written if note not in self.written]

    def note(self, text: str) -> int:
        """Notes a text, and how many nodes have the state."""
        self.written.append(f"{text} {len(self.members)}: {self.members}")
        return len(self.written)

    @read
    def notes(self) -> List[str]:
        """All notes."""
        return self.written


if __name__ == "__main__":
    Crew.serve()
