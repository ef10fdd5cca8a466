"""Two boxes of one machine: network namespaces, and between them a link that is slow and loses packets.

A packet comes after the delay, in either direction, or not at all: what follows is up to the kernel's TCP.
Wants root, and the commands `ip` and `openssl`. The boxes speak with a server of NATS as boxes do, over TLS
and with keys (docs/fleet/nats-server.conf).
"""
import atexit, base64, binascii, fcntl, os, random, shutil, struct, subprocess, tempfile, threading, time

SERVER, CLIENT = "10.77.0.1", "10.77.0.2"


def sh(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, **more).stdout


class Boxes:
    """`server` and `client` are the beginnings of commands that run in them, each with the address above."""

    def __init__(self, delay_ms, loss):
        self.delay_s, self.loss = delay_ms / 1000, loss
        ends = [self.make_box(name, mine, other) for name, mine, other in
                (("server", SERVER, CLIENT), ("client", CLIENT, SERVER))]
        self.server, self.client = (["ip", "netns", "exec", name] for name, _ in ends)
        for (_, one), (_, other) in (ends, ends[::-1]):
            threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def make_box(self, what, mine, other):
        name = f"weir-{what}-{os.getpid()}"
        sh("ip", "netns", "add", name)
        atexit.register(sh, "ip", "netns", "del", name)
        link = f"w{what[0]}{os.getpid()}"
        end = os.open("/dev/net/tun", os.O_RDWR)
        without_frames, set_interface = 0x1001, 0x400454CA  # IFF_TUN | IFF_NO_PI, TUNSETIFF
        fcntl.ioctl(end, set_interface, struct.pack("16sH22x", link.encode(), without_frames))
        sh("ip", "link", "set", link, "netns", name)
        for words in (f"addr add {mine} peer {other} dev {link}", f"link set {link} up", "link set lo up"):
            sh("ip", "-n", name, *words.split())
        return name, end

    def carry(self, one, other):
        packets, more = [], threading.Condition()

        def deliver():
            while True:
                with more:
                    while not packets:
                        more.wait()
                    at, packet = packets.pop(0)
                time.sleep(max(0.0, at - time.monotonic()))
                try:
                    os.write(other, packet)
                except OSError:
                    return  # the box is gone

        threading.Thread(target=deliver, daemon=True).start()
        while True:
            try:
                packet = os.read(one, 65536)
            except OSError:
                return
            if random.random() * 100 < self.loss:
                continue
            with more:
                packets.append((time.monotonic() + self.delay_s, packet))
                more.notify()


def key_pair():
    """A seed and its public half, as NATS writes the keys of users."""
    secret = os.urandom(32)
    der = bytes.fromhex("302e020100300506032b657004220420") + secret  # PKCS #8, Ed25519
    public = sh("openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER", input=der)[-32:]

    def text(prefix, key):
        bytes_ = prefix + key
        return base64.b32encode(bytes_ + struct.pack("<H", binascii.crc_hqx(bytes_, 0))).decode().rstrip("=")

    user, seed = 20 << 3, 18 << 3
    return text(bytes([seed | user >> 5, (user & 31) << 3]), secret), text(bytes([user]), public)


class Secrets:
    """What a server of NATS with the sample configuration needs, and who joins it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-boxes-")
        atexit.register(shutil.rmtree, self.folder)
        self.make_certificates()
        self.environment = {"WEIR_NATS_CERT": self.at("box.pem"), "WEIR_NATS_KEY": self.at("box.key"),
                            "WEIR_NATS_CA": self.at("ca.pem"), "WEIR_NATS_LISTEN": f"{SERVER}:-1"}
        for role in ("worker", "gateway", "member", "operator", "watcher"):
            seed, public = key_pair()
            self.environment[f"WEIR_{role.upper()}_KEY"] = public
            with open(self.at(role), "w") as file:
                file.write(seed + "\n")

    def at(self, name):
        return os.path.join(self.folder, name)

    def make_certificates(self):
        new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj".split()
        sh(*new, "/CN=ca", "-keyout", self.at("ca.key"), "-out", self.at("ca.pem"))
        sh(*new, "/CN=box", "-addext", f"subjectAltName=IP:{SERVER}", "-addext", "basicConstraints=CA:FALSE",
           "-CA", self.at("ca.pem"), "-CAkey", self.at("ca.key"), "-keyout", self.at("box.key"), "-out",
           self.at("box.pem"))

    def join(self, role, port):
        return ["--join", f"tls://{SERVER}:{port}", "--join-ca", self.at("ca.pem"), "--join-cert",
                self.at("box.pem"), "--join-key", self.at("box.key"), "--join-nkey", self.at(role)]
