import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ensureEnvoy } from "../../hack/lib/envoy.ts";
import { loadImage } from "../../hack/lib/load-image.ts";
import { packOciArchive } from "../../hack/lib/oci-archive.ts";
import { run } from "../../hack/lib/run.ts";
import { packTar } from "../../hack/lib/tar.ts";
import { systemClock } from "../src/clock.ts";
import { ContainerLauncher } from "../src/gateway/launch-container.ts";
import { startBackend } from "./backend.ts";
import { GatewayUnderTest, service, to } from "./gateway-under-test.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { until } from "./until.ts";

const HOST = "app.example.com";
const IMAGE = "localhost/forage/envoy:1";

test("a host without Envoy runs it as a container, which outlives the agent and is replaced if it dies", async (t) => {
  const nerdctl = await openNerdctl();
  const { runtime } = nerdctl;
  let containers = 0;
  await loadEnvoy(nerdctl).catch(async (error) => {
    await nerdctl.close();
    throw error;
  });
  const gateway = await GatewayUnderTest.start(t, {
    launcher: (...directories) =>
      new ContainerLauncher({
        ...{ image: IMAGE, instance: nerdctl.host.name, runtime, directories, clock: systemClock },
      }),
  });
  // Runs after the gateway's own hook, which still uses nerdctl.
  t.after(() => nerdctl.close());
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  await gateway.hosts({ hostname: HOST, rules: [to("a")] });
  assert.equal((await gateway.ask(HOST, "/")).status, 200);
  await gateway.stopAgent();
  assert.equal((await gateway.ask(HOST, "/")).status, 200);
  await gateway.startAgent();
  await until("it is found", () => gateway.events.some((it) => it.startsWith("gateway-proxy-found")));
  const [first] = await runtime.list(new AbortController().signal);
  await runtime.stop(first?.id ?? "", 0, new AbortController().signal);
  await until("it answers again", async () => {
    return (await gateway.ask(HOST, "/").catch(() => undefined))?.status === 200;
  });
  const [second, ...others] = await runtime.list(new AbortController().signal);
  assert.notEqual(second?.id, first?.id);
  assert.deepEqual(others, []);
  gateway.send({ full: true, gateway: "" });
  await until("nothing is left", async () => {
    containers = (await runtime.list(new AbortController().signal)).length;
    return containers === 0;
  });
});

/** Loads an image with the host's Envoy and its libraries. */
async function loadEnvoy({ host }: NerdctlUnderTest): Promise<void> {
  const envoy = await ensureEnvoy();
  const { stdout } = await run("ldd", [envoy]);
  const libraries = [...stdout.matchAll(/(\/\S+\.so\S*) \(/g)].map(([, path = ""]) => path);
  const files = [
    { type: "file" as const, path: "usr/bin/envoy", content: readFileSync(envoy), mode: 0o755 },
    ...libraries.map((path) => ({
      type: "file" as const,
      path: path.slice(1),
      content: readFileSync(path),
      mode: 0o755,
    })),
  ];
  const archive = packOciArchive({
    reference: IMAGE,
    layer: packTar(files),
    entrypoint: [],
    cmd: [],
    env: ["PATH=/usr/bin"],
  });
  const archivePath = join(host.dir, "envoy.tar");
  writeFileSync(archivePath, archive);
  await loadImage({ address: host.containerd.address, namespace: host.namespace, archivePath });
}
