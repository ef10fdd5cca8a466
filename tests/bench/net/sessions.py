#!/usr/bin/env python3
"""What a WebSocket session keeps in memory: idle, and with one finished job.

    sessions.py WEIR [SESSIONS]       (1000)

Opens SESSIONS sockets on `weir serve --device sim`, then asks for one answer of 16 tokens on each. Divides
the growth of the server's resident memory by SESSIONS. As many sockets are opened and closed before, so that
memory which the sessions share is there already.
"""
import base64, json, os, re, socket, subprocess, sys


def resident_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


class session:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Protocol: weir.v1\r\n\r\n").encode())
        self.heard = b""
        while b"\r\n\r\n" not in self.heard:
            self.heard += self.s.recv(4096)
        assert b" 101 " in self.heard, self.heard
        self.heard = self.heard.split(b"\r\n\r\n", 1)[1]
        assert self.frame()["type"] == "session.created"

    def need(self, n):
        while len(self.heard) < n:
            more = self.s.recv(65536)
            assert more, "the server has closed"
            self.heard += more

    def frame(self):
        self.need(2)
        n, at = self.heard[1] & 127, 2
        if n == 126:
            self.need(4)
            n, at = int.from_bytes(self.heard[2:4], "big"), 4
        self.need(at + n)
        text, self.heard = self.heard[at:at + n], self.heard[at + n:]
        return json.loads(text)

    def say(self, **message):
        text = json.dumps(message).encode()
        short = len(text) < 126
        length = bytes([0x80 | len(text)]) if short else bytes([0x80 | 126]) + len(text).to_bytes(2, "big")
        self.s.sendall(b"\x81" + length + b"\0\0\0\0" + text)

    def answer(self):
        while self.frame()["type"] != "response.done":
            pass


def crowd(port, n):
    return [session(port) for _ in range(n)]


def ask_all(sessions):
    for s in sessions:
        s.say(type="response.create", id="a", input="hello", max_tokens=16, ignore_eos=True)
    for s in sessions:
        s.answer()


def main():
    weir, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    server = subprocess.Popen([weir, "serve", "--device", "sim:rate=1000", "--listen", "127.0.0.1:0",
                               "--log-level", "error", "--queue", "65536"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+) ", server.stdout.readline())[1])
        first = crowd(port, n)
        ask_all(first)
        before_idle = resident_bytes(server.pid)
        for s in first:
            s.s.close()
        again = crowd(port, n)  # in the place of the first
        with_none = resident_bytes(server.pid)
        more = crowd(port, n)
        idle = resident_bytes(server.pid)
        ask_all(more)
        done = resident_bytes(server.pid)
        print(json.dumps({"sessions": n, "idle_kb_each": round((idle - with_none) / n / 1024, 1),
                          "with_a_finished_job_kb_each": round((done - with_none) / n / 1024, 1),
                          "rss_mb": {"first_crowd": round(before_idle / 2**20, 1),
                                     "second": round(with_none / 2**20, 1), "both": round(idle / 2**20, 1),
                                     "both_after_jobs": round(done / 2**20, 1)}}, indent=1))
        assert len(again) == n
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
