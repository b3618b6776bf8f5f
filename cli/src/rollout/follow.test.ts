import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { GetRolloutResponse } from "@forage/proto/forage/operator/v1/operator";
import { type RolloutEvent, RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import type { Coordinator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { CliError } from "../errors.ts";
import { pause } from "../pause.ts";
import { followRollout } from "./follow.ts";

type Step = readonly RolloutStatus[] | Error;

function callError(code: status, details = "gone"): CallError {
  return new CallError(
    "UNREACHABLE",
    details,
    Object.assign(new Error(details), { code, details, metadata: undefined }) as never,
  );
}

function anEvent(value: RolloutStatus): RolloutEvent {
  return { resourceKind: "service", resourceName: "a", status: value, message: "" };
}

const soon: typeof pause = (_, signal) => pause(1, signal);

/**
 * Follows a rollout. Each stream sends its statuses and then ends or fails. Each GetRollout call
 * returns the state of the last event.
 */
function follow(
  streams: readonly Step[],
  { clockMs = () => 0, wait = soon }: { clockMs?: () => number; wait?: typeof pause } = {},
) {
  const seen: RolloutStatus[] = [];
  const lost: string[] = [];
  let opened = 0;
  let last: RolloutStatus = RolloutStatus.PENDING;
  const coordinator = {
    stream: async function* () {
      const step = streams[Math.min(opened++, streams.length - 1)];
      if (step instanceof Error) throw step;
      for (const value of step ?? []) {
        last = value;
        yield anEvent(value);
      }
    },
    call: async (): Promise<GetRolloutResponse> => {
      const resources = [
        {
          ...{ kind: "service", name: "a", action: "create", status: last, message: "", reason: "" },
          ...{ finishedAt: undefined, now: "" },
        },
      ];
      return { rolloutId: "r", namespace: "n", createdAt: undefined, finished: false, resources };
    },
  } as unknown as Coordinator;
  const abort = new AbortController();
  const result = followRollout("r", {
    coordinator,
    signal: abort.signal,
    nowMs: clockMs,
    random: () => 0.5,
    onState: (state) => seen.push(state.status),
    onLost: () => lost.push("lost"),
    onFound: () => lost.push("found"),
    wait,
  });
  return { result, seen, lost, abort, opened: () => opened };
}

const { PENDING, IN_PROGRESS, SUCCEEDED } = RolloutStatus;

describe("following a rollout", () => {
  test("follows a rollout to its end", async () => {
    const { result, seen, opened } = follow([[PENDING, IN_PROGRESS, SUCCEEDED]]);
    assert.equal((await result).finished, true);
    assert.deepEqual([seen, opened()], [[PENDING, IN_PROGRESS, SUCCEEDED], 1]);
  });

  test("continues after the coordinator was away for a while", async () => {
    const away = callError(status.UNAVAILABLE);
    const { result, seen, lost } = follow([[PENDING], away, away, [PENDING, SUCCEEDED]]);
    await result;
    assert.deepEqual(
      [seen, lost],
      [
        [PENDING, PENDING, SUCCEEDED],
        ["lost", "found"],
      ],
    );
  });

  test("continues after a stream that ends regularly before the rollout, as that of a stopping coordinator does", async () => {
    const { result, opened } = follow([[IN_PROGRESS], [SUCCEEDED]]);
    await result;
    assert.equal(opened(), 2);
  });

  test("increases the delays while the coordinator is away, up to five seconds", async () => {
    const waitsMs: number[] = [];
    const { result, abort } = follow([callError(status.UNAVAILABLE)], {
      wait: async (ms, signal) => {
        waitsMs.push(ms);
        if (waitsMs.length === 8) abort.abort(new CliError("INTERRUPTED", "interrupted"));
        signal.throwIfAborted();
      },
    });
    await assert.rejects(result, { code: "INTERRUPTED" });
    assert.deepEqual(waitsMs, [125, 250, 500, 1_000, 2_000, 2_500, 2_500, 2_500]);
  });

  test("fails at once with an error for which a retry is useless", async () => {
    const { result, lost } = follow([[PENDING], callError(status.NOT_FOUND, "no such rollout")]);
    await assert.rejects(result, /no such rollout/);
    assert.deepEqual(lost, []);
  });

  test("fails when the coordinator is away for too long", async () => {
    let nowMs = 0;
    const { result, opened } = follow([callError(status.UNAVAILABLE)], {
      clockMs: () => {
        nowMs += 4 * 60_000;
        return nowMs;
      },
    });
    await assert.rejects(
      result,
      /gone; tried for 12 minutes\. The rollout may still be in progress: forage rollout status r --watch/,
    );
    assert.equal(opened(), 3);
  });

  test("ends when it is interrupted, even between attempts", async () => {
    const { result, abort } = follow([callError(status.UNAVAILABLE)]);
    abort.abort(new CliError("INTERRUPTED", "interrupted"));
    await assert.rejects(result, (error) => error instanceof CliError && error.code === "INTERRUPTED");
  });
});
