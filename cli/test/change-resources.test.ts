import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { PlannedResource, PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import { type ForageResource, RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { describeDifference } from "../src/view/difference.ts";
import { aResource, aRollout } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, HELLO, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let dir: string;

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "forage-change-"));
  fake.calls.length = 0;
  fake.answers = {
    ...rollout([anEvent(RolloutStatus.SUCCEEDED)], aRollout([{}])),
    apply: () => ({ rolloutId: "r-1" }),
    listResources: () => ({ resources: [web()] }),
  };
});
afterEach(() => rmSync(dir, { recursive: true }));

const LABELS = { app: "web" };

function web(image = "app:1", fields: Partial<ReturnType<typeof aResource>> = {}) {
  const spec = {
    name: "web",
    spec: { $case: "containerService", value: { container: { name: "m", image } } },
  };
  return aResource({ labels: LABELS, spec: spec as never, ...fields });
}

function forage(line: string): Promise<Result> {
  return runCommand(line.split(" "), { env: fake.env, stdin: HELLO });
}

interface Sent {
  readonly keepOthers: boolean;
  readonly bundle: { readonly labels: unknown; readonly resources: readonly ForageResource[] };
}

function sent(): readonly Sent[] {
  return fake.requests("apply") as Sent[];
}

function serviceOf(resource: ForageResource | undefined) {
  return resource?.spec?.$case === "containerService" ? resource.spec.value : undefined;
}

describe("forage scale", () => {
  test("applies the deployed resource with another number, and removes nothing", async () => {
    const { exitCode, stdout, stderr } = await forage("scale container_service/web 0");
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /^rollout r-1 done/);
    const [request] = sent();
    assert.deepEqual([request?.keepOthers, request?.bundle.labels], [true, LABELS]);
    const service = serviceOf(request?.bundle.resources[0]);
    assert.deepEqual([service?.scaling?.replicas, service?.container?.image], [0, "app:1"]);
  });

  test("prints the rollout's id with --detach", async () => {
    assert.equal((await forage("scale cs/web 5 --detach")).stdout, "r-1\n");
  });

  test("refuses to scale if the number can't be set", async () => {
    const autoscaling = { minReplicas: 1, maxReplicas: 3 };
    const scaled = { container: { name: "m" }, scaling: { autoscaling } };
    for (const [resource, message] of [
      [
        web("app", { spec: { spec: { $case: "containerService", value: scaled } } as never }),
        /scaled by its autoscaling policy: change the policy with forage edit container_service\/web -n default/,
      ],
      [web("app", { owner: "cron_job/nightly" }), /belongs to cron_job\/nightly/],
    ] as const) {
      fake.answers.listResources = () => ({ resources: [resource] });
      const { exitCode, stderr } = await forage("scale container_service/web 2");
      assert.deepEqual([exitCode, message.test(stderr)], [1, true], stderr);
    }
    assert.match(
      (await forage("scale container_service/web some")).stderr,
      /REPLICAS: "some" is not a number/,
    );
    assert.match((await forage("scale service/web 2")).stderr, /there is no service "web"/);
    assert.deepEqual(sent(), []);
  });

  test("refuses to scale if the resource changes concurrently", async () => {
    let generation = 0n;
    fake.answers.listResources = () => ({ resources: [web("app", { generation: ++generation })] });
    const { exitCode, stderr } = await forage("scale container_service/web 2");
    assert.deepEqual([exitCode, sent()], [1, []]);
    assert.match(stderr, /was changed concurrently/);
  });
});

describe("forage diff", () => {
  test("shows changed fields, whole new resources, and resources that would be removed", async () => {
    fake.answers.plan = () =>
      PlanResponse.fromPartial({
        changes: true,
        resources: [
          {
            ...{ kind: "container_service", name: "web", action: "update" },
            changes: [
              { path: "container.image", before: "a:1", after: "a:2" },
              { path: "labels[tier]", after: "front" },
              { path: "container.env[A].value", before: "b\u001b[2J" },
            ],
            steps: [{ round: 1, step: "create-pods" }],
          },
          { kind: "service", name: "web", action: "create" },
          { kind: "route", name: "old", action: "remove" },
          { kind: "job", name: "same", action: "unchanged" },
        ],
      });
    const { exitCode, stdout } = await forage("diff -f -");
    assert.equal(exitCode, 1);
    assert.deepEqual(stdout.split("\n"), [
      "shop container_service/web update",
      '- container.image: "a:1"',
      '+ container.image: "a:2"',
      '+ labels[tier]: "front"',
      '- container.env[A].value: "b\\u001b[2J"',
      "shop service/web create",
      "+ service:",
      "+   target: web",
      "+   ports:",
      "+     - name: http",
      "+       port: 80",
      "shop route/old remove",
      "",
    ]);
    const [document] = JSON.parse((await forage("diff -f - -o json")).stdout);
    assert.deepEqual(
      document.resources.map(({ name, steps }: { name: string; steps?: unknown }) => [name, steps]),
      [
        ["web", undefined],
        ["web", undefined],
        ["old", undefined],
      ],
    );
    assert.equal(
      (await forage("diff -f - -o name")).stdout,
      "container_service/web\nservice/web\nroute/old\n",
    );
  });

  test("colours removed and added lines", () => {
    const changes = [{ path: "image", before: "a:1", after: "a:2" }];
    const planned = PlannedResource.fromPartial({ kind: "service", name: "web", action: "update", changes });
    assert.equal(
      describeDifference("shop", planned, undefined, (style, text) => `${style}(${text})`),
      'strong(shop service/web update)\nbad(- image: "a:1")\ngood(+ image: "a:2")\n',
    );
  });

  test("returns different exit codes without changes and after a failure", async () => {
    fake.answers.plan = () => PlanResponse.fromPartial({});
    assert.deepEqual(await forage("diff -f -"), { exitCode: 0, stdout: "", stderr: "" });
    fake.answers.plan = () => {
      throw grpcError(status.PERMISSION_DENIED, "not yours");
    };
    assert.equal((await forage("diff -f -")).exitCode, 255);
  });
});

describe("forage edit", () => {
  /** Creates an editor that runs the script with the file's path as `$1`, and counts its runs. */
  function editor(script: string): Record<string, string> {
    const path = join(dir, "editor");
    writeFileSync(path, `#!/bin/sh\necho run >> ${dir}/runs\n${script}\n`);
    chmodSync(path, 0o700);
    return {
      ...fake.env,
      PATH: process.env.PATH ?? "",
      EDITOR: `${path} --flag-of-mine`.split(" ")[0] ?? "",
    };
  }

  const runs = (): number => readFileSync(join(dir, "runs"), "utf8").split("\n").length - 1;

  function edit(script: string, { terminal = false } = {}): Promise<Result> {
    const input = Object.assign(Readable.from([]), { isTTY: terminal });
    return runCommand(["edit", "container_service/web"], { env: editor(script), input });
  }

  /** Returns the file that an error names. */
  function kept(stderr: string): string {
    const [, path = ""] = /the edited text is kept in (\S+)/.exec(stderr) ?? [];
    return path;
  }

  test("applies the saved text, with the resource's labels", async () => {
    const { exitCode, stdout, stderr } = await edit('sed -i s/app:1/app:2/ "$1"; cp "$1" "$0.seen"');
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /^rollout r-1 done/);
    const [request] = sent();
    assert.equal(serviceOf(request?.bundle.resources[0])?.container?.image, "app:2");
    assert.deepEqual([request?.bundle.labels, request?.keepOthers], [LABELS, true]);
    assert.match(readFileSync(join(dir, "editor.seen"), "utf8"), /^# Save.*\nnamespace: default\nlabels:\n/);
  });

  test("sends nothing without a change", async () => {
    assert.deepEqual(await edit("true"), { exitCode: 0, stdout: "", stderr: "nothing was changed\n" });
    assert.deepEqual(sent(), []);
  });

  test("reopens the editor on a terminal with the problem below its line until it is corrected", async () => {
    const script = `if grep -q '^#! ' "$1"; then cp "$1" ${dir}/seen; sed -i 's/imgae/image/' "$1"
else sed -i 's/image: app:1/imgae: app:2/' "$1"; fi`;
    const { exitCode, stderr } = await edit(script, { terminal: true });
    assert.equal(exitCode, 0, stderr);
    assert.match(
      readFileSync(join(dir, "seen"), "utf8"),
      /\n +imgae: app:2\n#! resources\[0\]\.container_service\.container\.imgae: unknown field "imgae"/,
    );
    assert.equal(serviceOf(sent()[0]?.bundle.resources[0])?.container?.image, "app:2");
    assert.equal(runs(), 2);
  });

  test("shows a refusal of the coordinator below its line", async () => {
    fake.answers.apply = ({ bundle }) => {
      if (serviceOf(bundle?.resources[0])?.container?.image === "app:3") return { rolloutId: "r-1" };
      throw grpcError(status.INVALID_ARGUMENT, "1 field is wrong", [
        { field: "resources[0].container_service.container.image", description: "is no image" },
      ]);
    };
    const script = `if grep -q '^#! .*image: is no image' "$1"; then sed -i s/app:2/app:3/ "$1"
else sed -i s/app:1/app:2/ "$1"; fi`;
    const { exitCode, stderr } = await edit(script, { terminal: true });
    assert.equal(exitCode, 0, stderr);
    assert.equal(runs(), 2);
  });

  test("keeps the edited text if it can't be applied", async () => {
    for (const [script, terminal, message] of [
      ['sed -i s/image/imgae/ "$1"', false, /unknown field "imgae"/],
      ['sed -i s/image/imgae/ "$1"', true, /unknown field "imgae"/],
      [
        'sed -i "s/name: web/name: other/" "$1"',
        false,
        /must hold container_service\/web in namespace "default"/,
      ],
      ['sed -i s/app:1/app:2/ "$1"; exit 3', false, /the editor ".*" failed/],
    ] as const) {
      const { exitCode, stderr } = await edit(script, { terminal });
      assert.equal(exitCode, 1);
      assert.match(stderr, message);
      assert.match(readFileSync(kept(stderr), "utf8"), /imgae|name: other|app:2/);
      rmSync(join(kept(stderr), ".."), { recursive: true });
    }
    assert.deepEqual(sent(), []);
  });

  test("does not overwrite a resource that was changed concurrently", async () => {
    fake.answers.listResources = () => ({
      resources: [web("app:1", { generation: existsSync(join(dir, "runs")) ? 2n : 1n })],
    });
    const { stderr } = await edit('sed -i s/app:1/app:2/ "$1"');
    assert.match(stderr, /was changed concurrently/);
    assert.match(readFileSync(kept(stderr), "utf8"), /app:2/);
    rmSync(join(kept(stderr), ".."), { recursive: true });
    assert.deepEqual(sent(), []);
  });
});
