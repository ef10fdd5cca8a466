"""Which combinations training never sees.

`held(...)` is a pure function of its arguments: one combination in sixteen is held out. Training draws until it is False,
the held-out prompts until it is True, so the two can never meet, whatever the seeds are.
"""
import zlib


def held(*key) -> bool:
    return zlib.crc32(repr(key).encode()) % 16 == 11


def draw(want_held: bool, make, key):
    """Calls make() until held(*key(value)) is what is wanted."""
    while True:
        value = make()
        if held(*key(value)) == want_held:
            return value
