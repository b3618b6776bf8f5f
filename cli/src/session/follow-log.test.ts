import assert from "node:assert/strict";
import { test } from "node:test";
import { LogOptions, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { Pod } from "@forage/proto/forage/operator/v1/operator";
import { followLog } from "./follow-log.ts";

const aPod = (id: string, state: "running" | "terminated" = "running") =>
  Pod.fromPartial({
    status: PodStatus.fromPartial({
      containers: [{ name: "main", containerId: id, state: { $case: state, value: {} } as never }],
    }),
  });

/**
 * Follows a log over several rounds. Each round has the output of one stream, and the pod's state
 * after it.
 */
async function follow(
  rounds: readonly { readonly says: string; readonly afterwards: Pod | undefined }[],
  restarts: boolean,
): Promise<{ shown: string; asked: (number | undefined)[] }> {
  let round = -1;
  let shown = "";
  const asked: (number | undefined)[] = [];
  await followLog({
    open: async function* (options) {
      round += 1;
      asked.push(options.tailLines);
      yield { data: Buffer.from(rounds[round]?.says ?? "") };
    },
    readPod: async () => (round < 0 ? aPod("c1") : rounds[round]?.afterwards),
    container: "",
    log: LogOptions.fromPartial({ follow: true, tailLines: 2 }),
    restarts,
    show: async (data) => {
      shown += Buffer.from(data).toString();
    },
    onLost: () => {},
    random: () => 0.1,
    signal: new AbortController().signal,
  });
  return { shown, asked };
}

test("reopens a stream that ends while its container runs, and continues at the same position", async () => {
  const { shown, asked } = await follow(
    [
      { says: "a\nb\n", afterwards: aPod("c1") },
      { says: "0\na\nb\nc\n", afterwards: aPod("c1", "terminated") },
    ],
    false,
  );
  assert.equal(shown, "a\nb\nc\n");
  assert.deepEqual(asked, [2, 10_000]);
});

test("follows a restarted container from its first line if restarts are followed", async () => {
  const rounds = [
    { says: "a\n", afterwards: aPod("c2") },
    { says: "b\n", afterwards: undefined },
  ];
  assert.deepEqual(await follow(rounds, true), { shown: "a\nb\n", asked: [2, undefined] });
  assert.deepEqual(await follow(rounds, false), { shown: "a\n", asked: [2] });
});
