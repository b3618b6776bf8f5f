import { createSocket } from "node:dgram";
import { existsSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { createServer } from "node:net";
import { argv, stdout } from "node:process";

/** `answer NAME PORT` answers TCP and UDP requests with its name and the client's address. */
const [name = "", port = "0"] = argv.slice(2);
// The cache would otherwise be written at exit, before which the program is killed.
flushCompileCache();
const ipv6 = existsSync("/proc/net/if_inet6");
const any = ipv6 ? "::" : "0.0.0.0";
const answer = (address = ""): string => `${name} ${address.replace(/^::ffff:/, "")}`;
const udp = createSocket(ipv6 ? "udp6" : "udp4");
udp.on("message", (_, from) => udp.send(answer(from.address), from.port, from.address));
const tcp = createServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.end(answer(socket.remoteAddress));
});
tcp.listen(Number(port), any, () => udp.bind(Number(port), any, () => stdout.write("ready\n")));
