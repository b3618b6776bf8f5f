import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { buildBusyboxImage } from "../../lib/busybox-image.ts";
import type { Registry } from "../../lib/registry.ts";
import { run } from "../../lib/run.ts";
import { waitFor } from "../../lib/wait-for.ts";
import { putObject } from "../../system/objects.ts";
import {
  containerOf,
  type Json,
  type LabPod,
  type PodLab,
  shell,
  startPodLab,
} from "../../system/pod-lab.ts";

const LIMIT = { timeout: 180_000 };

const LOGIN = { username: "robot", password: "canary-7d1b90" };
/** The login in the form of `htpasswd -B`. */
const USERS = "robot:$2y$05$Q0hZb2FnZVRlc3RTYWx0UuWkeGdtPbCBciHkOfscxqa5qP7NXUm1.\n";
const REPOSITORY = "forage/locked:1";

/** Runs until the file `go` is in its directory of the host, and ignores SIGTERM. */
const untilLetGo = (dir: string, name: string, script = ":"): Json => ({
  volumes: [{ name: "v", host_path: { path: join(dir, name), type: "DirectoryOrCreate" } }],
  container: {
    command: ["sh", "-c", `trap : TERM; ${script}; until test -e /v/go; do sleep 0.2; done`],
    volume_mounts: [{ name: "v", mount_path: "/v" }],
  },
  pod_config: { termination_grace_period_seconds: 150 },
});

describe("node fields of pods: images, disk and resources", { concurrency: false }, () => {
  let lab: PodLab;
  let registry: Registry;
  before(async () => {
    lab = await startPodLab();
    const open = await lab.host.startRegistry();
    await open.pushImage(await buildBusyboxImage({ name: `localhost/${REPOSITORY}` }), REPOSITORY);
    await open.close();
    registry = await lab.host.startRegistry({ dir: open.dir, users: USERS });
  }, LIMIT);
  after(() => lab?.close(), LIMIT);

  /** Waits for any of the service's pods, including stopping ones, that meets the condition. */
  async function untilAnyPod(what: string, holds: (pod: LabPod) => boolean): Promise<LabPod> {
    let seen: readonly LabPod[] = [];
    return waitFor(
      async () => {
        seen = await lab.system.ask<LabPod[]>(["get", "pods", "-n", "e2e"]);
        return seen.find(holds);
      },
      { what, limitMs: 120_000, everyMs: 200, explain: () => JSON.stringify(seen, undefined, 1) },
    );
  }
  const letGo = (name: string): void => writeFileSync(join(lab.host.dir, name, "go"), "");
  /** Returns the files of the host's daemons, including logs, that contain the text. */
  async function filesWith(text: string): Promise<string> {
    const search = ["-xdev", "-type", "f", "-exec", "grep", "-laF", text, "{}", "+"];
    return (await run("find", [lab.host.dir, ...search], { allowFailure: true })).stdout;
  }

  test(
    "image_pull_secrets: the pull is denied without a login, and succeeds once the secret exists, without a signal",
    LIMIT,
    async () => {
      const image = `${registry.address}/${REPOSITORY}`;
      await lab.apply({
        locked: { container: { image, ...shell("true") }, pod_config: { image_pull_secrets: ["login"] } },
        "locked-out": { container: { image, ...shell("true") } },
      });
      const denied = ({ status }: LabPod): boolean =>
        status?.containers?.[0]?.waiting?.reason === "ErrImageDenied";
      const { status } = await lab.until("locked", "is denied", denied);
      assert.match(status?.containers?.[0]?.waiting?.message ?? "", /locked/);
      // Once the image is on the host, all pods of the namespace can use it.
      await lab.until("locked-out", "is denied", denied);
      await putObject(lab.system, "e2e", {
        name: "login",
        spec: { $case: "registryCredential", value: { server: registry.address, ...LOGIN } },
      });
      await lab.ready("locked");

      assert.match(await filesWith("locked"), /\.log$/m, "logs are searched");
      for (const secret of [LOGIN.password, btoa(`${LOGIN.username}:${LOGIN.password}`)])
        assert.equal(await filesWith(secret), "");
    },
  );

  test(
    "resources.limits.ephemeral_storage: a pod that exceeds it is evicted and replaced",
    LIMIT,
    async () => {
      const once = "mkdir /v/written && dd if=/dev/zero of=/big bs=1M count=30";
      const spec = untilLetGo(lab.host.dir, "greedy", once);
      const resources = { limits: { ephemeral_storage: "10Mi" } };
      await lab.apply({ greedy: { ...spec, container: { ...(spec.container as Json), resources } } });
      const evicted = await untilAnyPod("greedy is evicted", ({ status }) => status?.reason === "Evicted");
      assert.match(evicted.status?.message ?? "", /container main has written 30 MiB .* limit is 10 MiB/);
      await lab.until("greedy", "is replaced", (it) => {
        return it.uid !== evicted.uid && containerOf(it)?.running !== undefined;
      });
      letGo("greedy");
    },
  );

  test(
    "priority_class_name: a pod of a higher class preempts one of a lower class, unless its class forbids it",
    LIMIT,
    async () => {
      const [node] = await lab.system.ask<{ report: { allocatable: { cpu: string } } }[]>(["node", "ls"]);
      const { cpu } = node?.report.allocatable ?? { cpu: "" };
      assert.match(cpu, /^\d+m?$/);
      const milli = Number.parseInt(cpu, 10) * (cpu.endsWith("m") ? 1 : 1000);
      // Only one of them fits.
      const resources = { requests: { cpu: `${Math.floor(milli * 0.6)}m` } };
      const sized = (spec: Json, pod_config: Json = {}): Json => ({
        ...spec,
        container: { ...(spec.container as Json), resources },
        pod_config: { ...(spec.pod_config as Json | undefined), ...pod_config },
      });
      const idle = { container: shell("true") };
      for (const [name, neverPreempts] of Object.entries({ high: false, patient: true }))
        await putObject(lab.system, "", {
          name,
          spec: { $case: "priorityClass", value: { value: 1000, neverPreempts } },
        });

      await lab.apply({ low: sized(untilLetGo(lab.host.dir, "low")) });
      const low = await lab.ready("low");
      await lab.apply({ patient: sized(idle, { priority_class_name: "patient" }) });
      await lab.until("patient", "finds no room", ({ unschedulable = "" }) => unschedulable !== "");
      assert.equal((await lab.ready("low")).uid, low.uid);

      await lab.apply({ high: sized(idle, { priority_class_name: "high" }) });
      const stopping = await untilAnyPod("low is being stopped", (it) => {
        return it.uid === low.uid && it.stopping === true;
      });
      assert.match(stopping.stopReason ?? "", /^Preempted by e2e\/high-/);
      await lab.until("high", "waits for the room", ({ unschedulable = "" }) => /low-/.test(unschedulable));
      letGo("low");
      await lab.ready("high");
      await lab.until("low", "finds no room", (it) => it.uid !== low.uid && (it.unschedulable ?? "") !== "");
    },
  );
});
