# SPDX-License-Identifier: BSD-3-Clause
# Who holds no key, at the door of a kernel: so many connections, half of them silent, the others with records of TLS
# that are none; who is shown the door is back at once. Says at its end how many records it sent, over how many connections.
# Usage: stranger.py HOST PORT CONNECTIONS SECONDS
import os
import selectors
import socket
import sys
import time

host, port, count, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
record = bytes([22, 3, 1, 0, 59]) + os.urandom(59)
burst = record * 64
selector = selectors.DefaultSelector()
opened = sent = 0


def connect(silent):
    global opened
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((host, port))
    opened += 1
    selector.register(sock, selectors.EVENT_READ if silent else selectors.EVENT_READ | selectors.EVENT_WRITE, silent)


for i in range(count):
    connect(i % 2 == 0)
end = time.monotonic() + seconds
while time.monotonic() < end:
    for key, events in selector.select(0.1):
        try:
            if events & selectors.EVENT_READ and not key.fileobj.recv(4096):
                raise ConnectionError
            if events & selectors.EVENT_WRITE:
                sent += key.fileobj.send(burst) // len(record)
        except BlockingIOError:
            pass
        except OSError:
            selector.unregister(key.fileobj)
            key.fileobj.close()
            connect(key.data)
print(f"{sent} records over {opened} connections")
