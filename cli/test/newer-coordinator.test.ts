import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import {
  ListEventsResponse,
  WatchDrainResponse,
  WhyResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { RolloutEvent, type RolloutStatus } from "@forage/proto/forest/v1/forage";
import { EXIT } from "../src/exit-code.ts";
import { aContainer, aNode, aPod, aPodStatus, aResource, aRollout } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { HELLO } from "./rollout.ts";
import { runCommand } from "./run-command.ts";

/** Two fields with numbers that no message has: a number, and the text "new". */
const FUTURE_FIELDS = Buffer.from([0xc0, 0xa9, 0x07, 7, 0xca, 0xa9, 0x07, 3, ...Buffer.from("new")]);
/** A value that no enum has yet. */
const FUTURE_VALUE = 99;

describe("a coordinator that is newer than the command", () => {
  let fake: FakeCoordinator;

  before(async () => {
    fake = await FakeCoordinator.start();
    fake.moreBytes = FUTURE_FIELDS;
  });
  after(() => fake.close());
  beforeEach(() => {
    const status = FUTURE_VALUE as RolloutStatus;
    const container = aContainer({ state: undefined, ready: false });
    const pod = aPod({
      status: aPodStatus({ phase: FUTURE_VALUE as PodPhase, ready: false, containers: [container] }),
    });
    fake.answers = {
      listPods: () => ({ kept: [], pods: [pod] }),
      listResources: () => ({ resources: [aResource(), aResource({ kind: "workflow", name: "etl" })] }),
      listNodes: () => ({ nodes: [aNode()] }),
      listEvents: () => ListEventsResponse.fromPartial({}),
      getRollout: () => aRollout([{ status, message: "half way" }]),
      applyResources: () => ({ rolloutId: "r-1" }),
      watchRollout: (call) => {
        call.write(
          RolloutEvent.fromPartial({ resourceKind: "container_service", resourceName: "web", status }),
        );
        call.end();
      },
      drainNode: () => ({ node: aNode() }),
      watchDrain: (call) => {
        call.write(WatchDrainResponse.fromPartial({ drain: { state: "handed-over" } }));
        call.end();
      },
      why: () => WhyResponse.fromPartial({ summary: "it waits for a permit", healthy: false }),
      logs: (call) => {
        call.write({ data: Buffer.from("a line\n") });
        call.end();
      },
      exec: (call) => {
        // A frame of an unknown type.
        call.write({ frame: undefined });
        call.write({ frame: { $case: "exitCode", value: 3 } });
        call.end();
      },
    };
  });

  for (const [line, exitCode, shown] of [
    ["get pods", EXIT.ok, /web-1 .* Unknown /],
    ["get pods -o json", EXIT.ok, /"phase": "UNRECOGNIZED"/],
    ["get pods -o yaml", EXIT.ok, /web-1/],
    ["describe pod web-1", EXIT.ok, /State: +unknown/],
    ["get", EXIT.ok, /etl/],
    ["get nodes", EXIT.ok, /n1/],
    ["describe container_service/web", EXIT.ok, /web-1/],
    ["rollout status r-1", EXIT.failed, /unknown +half way/],
    ["rollout status r-1 -o json", EXIT.failed, /UNRECOGNIZED/],
    ["apply -f -", EXIT.failed, /rollout r-1 failed: container_service\/web/],
    ["why container_service/web", EXIT.ok, /it waits for a permit/],
    ["node drain n1 --wait", EXIT.failed, /handed-over/],
    ["logs web-1", EXIT.ok, /a line/],
    ["exec web-1 -- false", 3, /^$/],
  ] as const) {
    test(`ends ${line} with ${exitCode}, and shows the known fields`, async () => {
      const result = await runCommand(line.split(" "), { env: fake.env, stdin: HELLO });
      assert.doesNotMatch(result.stderr, /internal error/);
      assert.equal(result.exitCode, exitCode, result.stderr);
      assert.match(result.stdout, shown);
      assert.doesNotMatch(result.stdout, /undefined|\[object|NaN/);
    });
  }
});
