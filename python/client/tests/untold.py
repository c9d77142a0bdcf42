"""The replica of `counter.py`, as a program that does not tell its contract."""

from counter import Counter

import steadfast_client._service

steadfast_client._service._DESCRIBE = None

if __name__ == "__main__":
    Counter.serve()
