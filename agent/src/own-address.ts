import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";

// Any address will do for the choice of a way out; nothing is sent.
const SOME_PORT = 9;

/** The address from which this host talks to `host`: the way other hosts most likely reach it. Sends nothing. */
export async function ownAddress(host: string): Promise<string> {
  const { address } = await lookup(host, { family: 4 });
  const socket = createSocket("udp4");
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.connect(SOME_PORT, address, resolve);
    });
    return socket.address().address;
  } finally {
    socket.close();
  }
}
