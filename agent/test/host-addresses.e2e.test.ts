import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { enterOwnNetwork, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { type RunCommand, runCommand } from "../src/network/run-command.ts";
import { testHostAddresses } from "./host-addresses-contract.ts";
import { Lan, type LanHost } from "./lan.ts";

const PAUSE_MS = 50;
const BUSYBOX = "/usr/bin/busybox";
const obstacle = whyNoOwnNetwork() ?? (existsSync(BUSYBOX) ? undefined : `needs ${BUSYBOX}`);
if (obstacle === undefined) enterOwnNetwork();

let networks = 0;

testHostAddresses(
  "the kernel",
  async (t) => {
    const lan = await Lan.make(t, networks++);
    const [one, two] = await Promise.all([lan.host(1), lan.host(2)]);
    return {
      ...{ one: runOn(one), two: runOn(two), interface: "eth0", free: ["192.0.2.50", "192.0.2.51"] },
      pause: () => sleep(PAUSE_MS),
    };
  },
  { skip: obstacle ?? false },
);

function runOn({ name }: LanHost): RunCommand {
  return (file, args, options) =>
    runCommand("nsenter", [`--net=/run/netns/${name}`, "--", file, ...args], options);
}
