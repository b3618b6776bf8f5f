import type { Server } from "node:net";
import { IdentityError } from "../error.ts";

/**
 * Connections that the system accepts while the process is busy. Thousands of agents return within a second after a restart. Beyond
 * its default of 511 each of them would try again after a second at the earliest. The system takes 4,096 by default.
 */
const BACKLOG = 8_192;

/** Starts listening. @throws IdentityError LISTEN_FAILED. */
export async function listenOn(
  server: Server,
  at: { readonly host: string; readonly port: number },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new IdentityError("LISTEN_FAILED", `can't listen on ${at.host}:${at.port}: ${cause.message}`, {
          cause,
        }),
      ),
    );
    server.listen({ port: at.port, host: at.host, backlog: BACKLOG }, resolve);
  });
}
