# SPDX-License-Identifier: BSD-3-Clause
"""Where the work is done: two emulated hosts with a link between them, or one of these alone."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Place:
    name: str
    title: str
    link: list = field(default_factory=list)  # wanlink run's
    hosts: tuple = ("a", "b")  # of the two ranks
    loopback: bool = False  # over TCP, although both are on one host
    rate: float = 0  # bytes a second of the link, in whole packets; 0: none is emulated
    delay: float = 0  # seconds one way
    long_bytes: int = 256 << 20
    largest: int = 16 << 20
    halo: int = 800000
    work_ms: tuple = (0.5, 1)
    rows: tuple = ("latency", "stream", "both", "rate", "behind", "cpu", "overlap", "heat", "beside", "ticks")

    @property
    def one_host(self):
        return self.hosts[0] == self.hosts[1]

    @property
    def exchange_ms(self):
        """What a halo takes there, and one back at the same time: 1448 of 1500 bytes are the message's."""
        return 1e3 * (self.delay + self.halo * 1500 / 1448 / self.rate) if self.rate else 0


_all = [
    Place("one-host", "one host", hosts=("a", "a")),
    Place("loopback", "TCP on loopback", hosts=("a", "a"), loopback=True),
    Place("gigabit", "1 Gbit/s", ["--preset", "gigabit"], rate=125e6, work_ms=(3.3, 6.6, 13.2)),
    Place("metro", "1 Gbit/s, 2 ms", ["--preset", "metro"], rate=125e6, delay=1e-3, work_ms=(3.8, 7.6, 15.2)),
    Place("wan", "100 Mbit/s, 20 ms", ["--preset", "wan"], rate=12.5e6, delay=10e-3, long_bytes=16 << 20, largest=4 << 20,
          work_ms=(38, 76, 152)),
    Place("wan-loss", "100 Mbit/s, 20 ms, 0.1 % lost", ["--preset", "wan", "--loss", "0.1%"], rate=12.5e6, delay=10e-3,
          long_bytes=16 << 20, largest=4 << 20, work_ms=(76,), rows=("latency", "stream", "heat", "ticks")),
]
names = [place.name for place in _all]
quick_names = ["one-host", "gigabit", "wan"]


def of(name):
    return next(place for place in _all if place.name == name)
