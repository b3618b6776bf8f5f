import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { RealCoordinator } from "./real-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

const MANIFESTS = join(import.meta.dirname, "kubernetes");
const coordinator = new RealCoordinator({ services: { loadBalancerIps: ["192.0.2.200-192.0.2.219"] } });

before(() => coordinator.start());
after(() => coordinator.close());

describe("Kubernetes manifests with a real coordinator", { timeout: 180_000 }, () => {
  for (const file of readdirSync(MANIFESTS).sort())
    test(`plans and applies ${file} unchanged, after which nothing would change`, async () => {
      const path = join(MANIFESTS, file);
      // Each file has its own namespace, unless it names one.
      const env = { ...coordinator.env, FORAGE_NAMESPACE: file.replace(".yaml", "") };
      const forage = (...argv: string[]): Promise<Result> => runCommand(argv, { env });
      const planned = await forage("plan", "-f", path);
      assert.equal(planned.exitCode, 1, planned.stderr);
      const applied = await forage("apply", "--detach", "-f", path);
      assert.equal(applied.exitCode, 0, applied.stderr);
      const { exitCode, stdout, stderr } = await forage("diff", "-f", path);
      assert.deepEqual([exitCode, stdout], [0, ""], stderr);
    });
});
