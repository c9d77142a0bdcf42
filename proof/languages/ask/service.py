"""A service whose errors are what its callers want."""

from steadfast_client import ServiceError, service


@service
class Errors:
    def __init__(self):
        self.calls = 0

    def fail(self, text: str) -> int:
        """Fails with this text as its own error."""
        self.calls += 1
        raise ServiceError(text)

    def count(self, by: int) -> int:
        """Counts, and refuses what is no number."""
        self.calls += by
        return self.calls


if __name__ == "__main__":
    Errors.serve()
