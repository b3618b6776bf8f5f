import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { NerdctlCli } from "../../runtime/nerdctl/nerdctl-cli.ts";
import { readVersion } from "../../runtime/nerdctl/read-version.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import type { Observation } from "./driver-health.ts";

/** Checks the driver's dependencies. */
export interface ContainerdObserver {
  /** Reports whether a process accepts connections on containerd's socket. Cheap. */
  isListening(): Promise<boolean>;
  /** Returns the versions of nerdctl and containerd. Starts a process. */
  observe(signal: AbortSignal): Promise<Observation>;
}

/** This is longer than any response measured on a busy host. A containerd that takes longer is unhealthy. */
const VERSION_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 1_000;

export function containerdObserver(options: DriverOptions): ContainerdObserver {
  const { containerdAddress: address, containerdNamespace: namespace, nerdctl, runDir, cniBinDir } = options;
  const cli = new NerdctlCli({
    path: nerdctl,
    ...{ address, namespace, cniBinDir },
    dataRoot: join(runDir, "fingerprint"),
    cniConfigDir: join(runDir, "cni"),
    concurrentCalls: 1,
    callTimeoutMs: VERSION_TIMEOUT_MS,
  });
  return {
    isListening: () => accepts(address),
    async observe(signal) {
      if (!(await isExecutable(nerdctl)))
        return { type: "missing", reason: `nerdctl is not an executable file at ${nerdctl}` };
      if (!(await exists(address)))
        return { type: "missing", reason: `containerd has no socket at ${address}` };
      try {
        return { type: "ready", ...(await readVersion(cli, signal)) };
      } catch (error) {
        const reason = messageOf(error);
        return { type: "failing", reason: `containerd at ${address} does not respond: ${reason}` };
      }
    },
  };
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (answer: boolean) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(CONNECT_TIMEOUT_MS, done(false));
    socket.once("connect", done(true));
    socket.once("error", done(false));
  });
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
