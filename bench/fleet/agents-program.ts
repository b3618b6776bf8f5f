import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { type BackOff, backOffMs } from "@forage/common/back-off";
import { WireAgent } from "./wire-agent.ts";

/** One agent of the program. */
export interface AgentOrder {
  readonly name: string;
  readonly localAddress: string;
  readonly certPem: string;
  readonly keyPem: string;
  /** The delay before its first connection. */
  readonly startMs: number;
}

export interface AgentsOrder {
  readonly host: string;
  readonly port: number;
  readonly caPem: string;
  readonly agents: readonly AgentOrder[];
}

/** The state of the program, sent to the parent regularly. */
export interface AgentsState {
  readonly connected: number;
  /** The number of connections that were welcomed since the start. */
  readonly welcomes: number;
  /** The number of attempts that ended without a welcome. */
  readonly failures: number;
}

/** The delays between attempts of the agent's own link. */
const RECONNECT: BackOff = { baseMs: 500, capMs: 10_000 };
const STATE_MS = 100;

/**
 * A program of many agents. Receives its order from its parent, connects the agents, and reconnects each one whenever
 * it loses its connection.
 */
function main(): void {
  const state = { connected: 0, welcomes: 0, failures: 0 };
  process.once("message", (order: AgentsOrder) => {
    const { host, port, caPem } = order;
    for (const { name, localAddress, certPem, keyPem, startMs } of order.agents) {
      const context = createSecureContext({ ca: caPem, cert: certPem, key: keyPem });
      void stayConnected(new WireAgent({ name, host, port, localAddress, context }), startMs, state);
    }
    setInterval(() => process.send?.(state satisfies AgentsState), STATE_MS);
  });
  process.once("disconnect", () => process.exit());
}

async function stayConnected(
  agent: WireAgent,
  startMs: number,
  state: { -readonly [Name in keyof AgentsState]: AgentsState[Name] },
): Promise<void> {
  await delay(startMs);
  for (let failures = 0; ; ) {
    let isWelcome = false;
    await agent.connect(() => {
      isWelcome = true;
      failures = 0;
      state.connected++;
      state.welcomes++;
    });
    if (isWelcome) state.connected--;
    else state.failures++;
    failures++;
    await delay(Math.random() * backOffMs(failures + 1, RECONNECT));
  }
}

main();
