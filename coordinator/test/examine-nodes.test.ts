import assert from "node:assert/strict";
import { test } from "node:test";
import type { Examination, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { ExamineNodesResponse } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { toTimestamp } from "../src/model/timestamp.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { collected, until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };

test("lets each node test the others by their reported addresses, and send its clock", LIMIT, async (t) => {
  const world = await startWorld(t);
  const asked: SessionRequest[] = [];
  for (const [index, name] of ["n1", "n2", "n3"].entries()) {
    const agent = await HollowAgent.start(world, { name, address: `10.0.0.${index + 1}` });
    agent.onSession = (session) => {
      asked.push(session);
      const at = toTimestamp(Date.now() + 90_000);
      const ok = { check: "disk", result: "ok", message: "fine", remedy: "" };
      if (name === "n3") serve(agent, session, [], "the host is being examined");
      else
        serve(agent, session, [
          { at, findings: [], peers: [] },
          { at: undefined, findings: [ok], peers: [] },
        ]);
    };
  }
  await until("all nodes are ready", async () => {
    const { nodes } = await world.operator().listNodes({});
    return nodes.length === 3 && nodes.every(({ ready }) => ready);
  });

  const found = await examine(world, []);

  assert.deepEqual(
    asked
      .map(({ kind }) => (kind?.$case === "examine" ? kind.value.peers : []))
      .map(addresses)
      .sort(),
    ["n1 10.0.0.1 n2 10.0.0.2", "n2 10.0.0.2 n3 10.0.0.3", "n3 10.0.0.3 n1 10.0.0.1"],
  );
  assert.deepEqual(
    found.map(({ node, problem, findings }) => [node, problem, findings.length]),
    [
      ["n1", "", 1],
      ["n2", "", 1],
      ["n3", "the host is being examined", 0],
    ],
  );
  const [{ clockAheadMs = 0n, clockUncertaintyMs } = ExamineNodesResponse.fromPartial({})] = found;
  assert.ok(
    Math.abs(Number(clockAheadMs) - 90_000) <= clockUncertaintyMs + 2,
    `${clockAheadMs} ± ${clockUncertaintyMs}`,
  );
  await assert.rejects(examine(world, ["n9"]), { code: status.NOT_FOUND });
});

function addresses(peers: readonly { readonly node: string; readonly address: string }[]): string {
  return peers.map(({ node, address }) => `${node} ${address}`).join(" ");
}

function examine(world: World, nodes: string[]): Promise<ExamineNodesResponse[]> {
  return collected(world.operator().examineNodes({ nodes }));
}

function serve(
  agent: HollowAgent,
  { sessionId }: SessionRequest,
  parts: readonly Examination[],
  error = "",
): void {
  const stream = agent.client.serve();
  stream.on("error", () => {});
  stream.write({ frame: { $case: "sessionId", value: sessionId } });
  for (const value of parts) stream.write({ frame: { $case: "examination", value } });
  stream.write({ frame: { $case: "end", value: { exitCode: error === "" ? 0 : 1, error } } });
  stream.end();
}
