import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { buildBusyboxImage } from "../../hack/lib/busybox-image.ts";
import type { Registry } from "../../hack/lib/registry.ts";
import { run } from "../../hack/lib/run.ts";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { systemClock } from "../src/clock.ts";
import { NerdctlRuntime, type NerdctlRuntimeOptions } from "../src/runtime/nerdctl/nerdctl-runtime.ts";
import type { ContainerSpec } from "../src/runtime/runtime.ts";

/** A nerdctl runtime on a separate test host, with a network namespace for its containers. */
export interface NerdctlUnderTest {
  readonly host: TestHost;
  readonly runtime: NerdctlRuntime;
  readonly options: NerdctlRuntimeOptions;
  /** The directory of the logs, `<name>.log`, of containers from `spec`. */
  readonly logDir: string;
  spec(command: readonly string[], change?: Partial<ContainerSpec>): ContainerSpec;
  /** Pushes a busybox image to the registry and returns its reference there. */
  publish(registry: Registry, repositoryAndTag: string): Promise<string>;
  close(): Promise<void>;
}

export async function openNerdctl(change: Partial<NerdctlRuntimeOptions> = {}): Promise<NerdctlUnderTest> {
  const host = await startTestHost();
  // Named after the host, so that it is removed with the host even if this process dies.
  const netns = `${host.name}-rt`;
  await run("ip", ["netns", "add", netns]);
  await run("ip", ["-n", netns, "link", "set", "lo", "up"]);
  const logDir = join(host.dir, "logs");
  mkdirSync(logDir);
  const options: NerdctlRuntimeOptions = {
    nerdctlPath: host.nerdctlPath,
    address: host.containerd.address,
    namespace: host.namespace,
    stateDir: join(host.dir, "runtime"),
    programDir: join(host.dir, "programs"),
    volumeDir: join(host.dir, "image-volumes"),
    cniBinDir: "/usr/lib/cni",
    cniConfigDir: join(host.dir, "cni"),
    instance: host.name,
    clock: systemClock,
    ...change,
  };
  const runtime = new NerdctlRuntime(options);
  return {
    host,
    runtime,
    options,
    logDir,
    spec(command, specChange = {}) {
      const name = `${host.name}-${randomUUID()}`;
      const networkNamespace = `/run/netns/${netns}`;
      const plain = { labels: {}, args: [], env: [], binds: [], hostname: "web", networkNamespace };
      return {
        ...plain,
        name,
        image: host.image,
        command,
        logFile: join(logDir, `${name}.log`),
        ...specChange,
      };
    },
    async publish(registry, repositoryAndTag) {
      const archive = await buildBusyboxImage({ name: `localhost/${repositoryAndTag}` });
      return (await registry.pushImage(archive, repositoryAndTag)).reference;
    },
    async close() {
      await runtime.close();
      if (existsSync(`/run/netns/${netns}`)) await run("ip", ["netns", "delete", netns]);
      await host.close();
    },
  };
}
