import type { TestContext } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { testContainerLives } from "../agent/test/container-lives-contract.ts";
import { publishedBy } from "../agent/test/fake-host-rules.ts";
import { CONTRACT_HOST_PORTS, testPodNetwork } from "../agent/test/network-contract.ts";
import { testPodFiles } from "../agent/test/pod-files-contract.ts";
import { testPodVolumes } from "../agent/test/volumes-contract.ts";
import { SimHost, type SimPrograms } from "./host/sim-host.ts";
import { simFiles, simNetwork } from "./host/sim-network.ts";
import { simRuntime } from "./host/sim-runtime.ts";
import { simVolumes } from "./host/sim-volumes.ts";

const IMAGE = "localhost/app:1";
const PULLABLE = "localhost/pulled:1";

testPodNetwork("simulated", async (t) => {
  const host = aRunningHost(t);
  const { network } = host;
  return {
    open: () => simNetwork(host, { cut: false }, CONTRACT_HOST_PORTS),
    reboot: async () => host.reboot(),
    destroy: async ({ podUid }) => void network.sandboxes.delete(podUid),
    usedSandboxes: async () => network.sandboxes.size,
    published: async () => publishedBy(network),
    occupy: async (protocol, port) => void network.occupied.add(`${protocol} ${port}`),
  };
});

testPodVolumes("simulated", async (t) => {
  const host = aRunningHost(t);
  return {
    open() {
      host.volumes.restart();
      return simVolumes(host, { cut: false });
    },
  };
});

testPodFiles("simulated", (t) => simFiles(aRunningHost(t), { cut: false }));

testContainerLives("simulated", (t) => {
  const host = aRunningHost(t, {
    endOf: ({ command }) => (command[0] === "fail" ? { afterMs: 10, exitCode: 7 } : undefined),
    isUnready: () => false,
    pullMs: () => 500,
    isInRegistry: (image) => image === PULLABLE,
    isRegistryUp: () => true,
  });
  host.images.add(IMAGE);
  const sandbox = host.network.makeSandbox("u1");
  host.network.sandboxes.set("u1", sandbox);
  let names = 0;
  return {
    runtime: simRuntime(host, { cut: false }),
    image: IMAGE,
    pullable: PULLABLE,
    unknownImage: "localhost/unknown:1",
    spec: (command) => {
      names++;
      const nothing = { args: [], env: [], labels: {}, binds: [], hostname: "h", logFile: "/dev/null" };
      return {
        name: `c${names}`,
        image: IMAGE,
        command,
        ...nothing,
        networkNamespace: sandbox.namespacePath,
      };
    },
    programs: { sleep: ["sleep"], fail: ["fail"] },
  };
});

/**
 * Returns a host whose time advances by itself: its clock jumps to the next timer whenever nothing else is left to do.
 */
function aRunningHost(t: TestContext, programs?: SimPrograms): SimHost {
  const clock = new VirtualClock();
  let isOver = false;
  t.after(() => {
    isOver = true;
  });
  const pass = (): void => {
    if (isOver) return;
    clock.next(Number.MAX_SAFE_INTEGER);
    setImmediate(pass);
  };
  setImmediate(pass);
  return new SimHost(clock, () => 0.5, programs);
}
