"""A replica in 20 lines."""

from steadfast_client import read, service


@service
class Counter:
    """A number."""

    def __init__(self):
        self.sum = 0

    def add(self, n: int) -> int:
        """Adds n, and gives the sum."""
        self.sum += n
        return self.sum

    @read
    def get(self) -> int:
        return self.sum


if __name__ == "__main__":
    Counter.serve()
