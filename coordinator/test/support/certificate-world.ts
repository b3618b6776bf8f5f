import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { TestContext } from "node:test";
import type { BackOff } from "@forage/common/back-off";
import { pino } from "pino";
import type { CertificateController } from "../../src/certificates/controller.ts";
import { openCertificates } from "../../src/certificates/open-certificates.ts";
import { openIssuer } from "../../src/certificates/open-issuer.ts";
import type { Config } from "../../src/config.ts";
import type { IssuedCertificate, SourcedCertificate } from "../../src/gateway/certificate-source.ts";
import type { EventInput } from "../../src/model/event.ts";
import { openVault } from "../../src/objects/open-vault.ts";
import { createMemoryStore } from "../../src/store/index.ts";
import { systemClock } from "../../src/time/clock.ts";
import { until } from "./until.ts";

/** The certificates of a coordinator, with a server in place of the gateway, on the real clock. */
export interface CertificateWorld {
  readonly controller: CertificateController;
  readonly events: readonly EventInput[];
  /** The lines of the log at all levels. */
  readonly log: readonly string[];
  /** The paths of the authority's requests. */
  readonly requests: readonly string[];
  /** Sets how the gateway answers challenges. */
  answer(how: "rightly" | "wrongly" | "never"): void;
  issued(hostname: string, other?: IssuedCertificate): Promise<IssuedCertificate>;
  pending(hostname: string, reason: string): Promise<string>;
  restart(settings?: Config["certificates"]): Promise<void>;
}

/** A short back-off, so that failed attempts are repeated within a test. */
const BACK_OFF: BackOff = { baseMs: 300, capMs: 1_000 };

export interface GatewayStandIn {
  readonly port: number;
  readonly requests: readonly string[];
  source: Pick<CertificateController, "challenges"> | undefined;
  how: "rightly" | "wrongly" | "never";
}

/** Starts a server that answers on plain HTTP like gateways. */
export async function startGatewayStandIn(t: TestContext): Promise<GatewayStandIn> {
  const requests: string[] = [];
  const gateway = { port: 0, requests, source: undefined, how: "rightly" } as GatewayStandIn & {
    port: number;
  };
  const server: Server = createServer((request, response) => {
    const path = request.url ?? "";
    requests.push(path);
    const token = path.split("/").at(-1);
    const challenge = gateway.source?.challenges().find((it) => it.token === token);
    response.statusCode = challenge === undefined ? 404 : 200;
    response.end(gateway.how === "wrongly" ? "something else" : (challenge?.keyAuthorization ?? ""));
  });
  gateway.port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  t.after(() => server.close());
  return gateway;
}

export async function startCertificateWorld(
  t: TestContext,
  gateway: GatewayStandIn,
  settings: Config["certificates"],
): Promise<CertificateWorld> {
  const clock = systemClock;
  const store = createMemoryStore({ clock });
  const vault = await openVault([{ id: "test", bytes: randomBytes(32) }], store);
  const events: EventInput[] = [];
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const open = async (given: Config["certificates"]) => {
    const issuer = await openIssuer({ settings: given, cluster: "test", store, vault, clock, randomBytes });
    if (issuer === undefined) throw new Error("these settings name no issuer");
    const controller = await openCertificates({
      ...{ issuer, store, vault, clock, log },
      events: { record: (event) => void events.push(event) },
      random: Math.random,
      backOffs: { hostname: BACK_OFF, issuer: BACK_OFF },
    });
    gateway.source = controller;
    const stop = controller.subscribe(() => {
      const tokens = controller.challenges().map(({ token }) => token);
      if (gateway.how !== "never") queueMicrotask(() => controller.served(new Set(tokens)));
    });
    return {
      controller,
      close: async () => {
        stop();
        await controller.close();
        issuer.close();
      },
    };
  };
  let opened = await open(settings);
  t.after(async () => {
    await opened.close();
    await store.close();
  });
  const certificateFor = (hostname: string): SourcedCertificate => opened.controller.certificateFor(hostname);
  return {
    get controller() {
      return opened.controller;
    },
    events,
    log: lines,
    requests: gateway.requests,
    answer: (how) => {
      gateway.how = how;
    },
    issued: async (hostname, other) => {
      let found: IssuedCertificate | undefined;
      await until(
        `${hostname} has a certificate; ${JSON.stringify(certificateFor(hostname)).slice(0, 300)}`,
        () => {
          const answer = certificateFor(hostname);
          if (answer.type === "issued" && answer.chainPem !== other?.chainPem) found = answer;
          return found !== undefined;
        },
      );
      if (found === undefined) throw new Error("unreachable");
      return found;
    },
    pending: async (hostname, reason) => {
      let message = "";
      await until(`${hostname} waits for ${reason}`, () => {
        const answer = certificateFor(hostname);
        if (answer.type === "pending" && answer.reason === reason) message = answer.message;
        return message !== "";
      });
      return message;
    },
    restart: async (given = settings) => {
      const requested = opened.controller.requested;
      await opened.close();
      opened = await open(given);
      opened.controller.setHostnames(requested);
    },
  };
}
