import { connect as connectTcp } from "node:net";
import type { CertificateAuthority } from "../src/ca.ts";
import { channelCredentials } from "../src/credentials.ts";
import { TlsServer, type TlsServerEvent, type TlsServerOptions } from "../src/tls-server/tls-server.ts";
import { aServer, type Pair } from "./cluster.ts";
import { anEchoServer, EchoClient, type Talks } from "./echo.ts";

/** Clean-up functions that run in reverse order at the end of a test. */
export type Cleanups = (() => void | Promise<void>)[];

/** Starts a TLS server on a loopback port whose handlers echo, and returns it with clients. */
export async function startTls(
  ca: CertificateAuthority,
  cleanups: Cleanups,
  options: Partial<TlsServerOptions> = {},
) {
  const talks: Talks = { started: 0, ended: 0 };
  const events: TlsServerEvent[] = [];
  const material = await aServer(ca);
  const tls = new TlsServer({
    material,
    nowMs: Date.now,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const server = anEchoServer(() => tls, talks);
  const { port } = await tls.listen(server, { host: "127.0.0.1", port: 0 });
  cleanups.push(async () => {
    await tls.close();
    server.forceShutdown();
  });
  const client = (pair?: Pair, host?: string, caPem = ca.certPem) => {
    const made = new EchoClient(port, channelCredentials({ caPem, ...pair }), host);
    cleanups.push(() => made.close());
    return made;
  };
  const tcp = () => {
    const socket = connectTcp(port, "127.0.0.1").on("error", () => {});
    cleanups.push(() => void socket.destroy());
    return socket;
  };
  return { tls, port, client, tcp, talks, events, material };
}
