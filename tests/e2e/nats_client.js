// nats_client.js — a client of nats-server as it stands in the protocol's description: lines of text over a
// socket. Enough of it to listen, and to say what nobody asked for.
import { once } from "node:events";
import { connect } from "node:net";

export class NatsClient {
  #socket;
  #rest = Buffer.alloc(0);
  #heard = () => {};
  errors = []; // what the server complained of

  /** `who`: {user, pass}, or nothing. */
  async open(url, who = {}) {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname);
    this.#socket.on("data", (bytes) => this.#read(bytes));
    this.#socket.on("error", () => {});
    await once(this.#socket, "connect");
    const how = { verbose: false, pedantic: false, lang: "node", version: "1", protocol: 1, ...who };
    this.#socket.write(`CONNECT ${JSON.stringify(how)}\r\nPING\r\n`);
    await once(this.#socket, "pong");
    return this;
  }

  /** Calls heard({subject, to, bytes}) for each message under subjects that fit. */
  async listen(subject, heard) {
    this.#heard = heard;
    this.#socket.write(`SUB ${subject} 1\r\nPING\r\n`);
    await once(this.#socket, "pong");
  }

  /** Waits while the socket takes no more. `to`: where an answer goes. */
  async say(subject, bytes, to = "") {
    const body = Buffer.from(bytes);
    const head = Buffer.from(`PUB ${subject} ${to ? `${to} ` : ""}${body.length}\r\n`);
    if (!this.#socket.write(Buffer.concat([head, body, Buffer.from("\r\n")])))
      await Promise.race([once(this.#socket, "drain"), once(this.#socket, "close")]);
  }

  /** Once the server has read all that was said. */
  async flush() {
    this.#socket.write("PING\r\n");
    await once(this.#socket, "pong");
  }

  close() {
    this.#socket?.destroy();
  }

  #read(bytes) {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const end = this.#rest.indexOf("\r\n");
      if (end < 0) return;
      const line = this.#rest.subarray(0, end).toString();
      const [word, subject, , ...more] = line.split(" ");
      let from = end + 2;
      if (word === "MSG") {
        const length = Number(more.at(-1));
        if (this.#rest.length < from + length + 2) return;
        const body = Buffer.from(this.#rest.subarray(from, from + length));
        from += length + 2;
        this.#heard({ subject, to: more.length > 1 ? more[0] : "", bytes: body });
      }
      this.#rest = this.#rest.subarray(from);
      if (word === "PING") this.#socket.write("PONG\r\n");
      if (word === "PONG") this.#socket.emit("pong");
      if (word === "-ERR") this.errors.push(line);
    }
  }
}
