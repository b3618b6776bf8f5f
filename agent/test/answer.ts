import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { argv, stdout } from "node:process";

/** `answer NAME PORT`: tells everyone who asks by TCP or UDP its name and whom it sees asking. */
const [name = "", port = "0"] = argv.slice(2);
const udp = createSocket("udp4");
udp.on("message", (_, from) => udp.send(`${name} ${from.address}`, from.port, from.address));
const tcp = createServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.end(`${name} ${socket.remoteAddress}`);
});
tcp.listen(Number(port), "0.0.0.0", () => udp.bind(Number(port), "0.0.0.0", () => stdout.write("ready\n")));
