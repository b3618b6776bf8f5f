import type { TestContext } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { publishedBy } from "../fake-host-rules.ts";
import { CONTRACT_HOST_PORTS, testPodNetwork } from "../network-contract.ts";
import { testPodFiles } from "../pod-files-contract.ts";
import { testPodVolumes } from "../volumes-contract.ts";
import { SimHost } from "./sim-host.ts";
import { simFiles, simNetwork } from "./sim-network.ts";
import { simVolumes } from "./sim-volumes.ts";

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

/** Returns a host whose time passes by itself: its clock jumps to the next timer whenever nothing else is left to do. */
function aRunningHost(t: TestContext): SimHost {
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
  return new SimHost(clock, () => 0.5);
}
