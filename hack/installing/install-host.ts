import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument } from "yaml";
import { bundlePrograms, PROGRAMS } from "../bundling/bundle-programs.ts";
import type { Progress } from "../instance/progress.ts";
import { ensureEnvoy } from "../lib/envoy.ts";
import { installMissing, TOOLS } from "../lib/host-tools.ts";
import { ensureNerdctl } from "../lib/nerdctl.ts";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { waitFor } from "../lib/wait-for.ts";
import {
  installFiles,
  LOG_GUARD_UNIT,
  LOG_READER_SOCKET,
  LOG_READER_UNIT,
  type Part,
  removeFiles,
  unitOf,
} from "./install-files.ts";
import type { InstallFlags } from "./install-flags.ts";

// A first start makes keys and opens a new store. Later ones take half a second.
const READY_LIMIT_MS = 60_000;
const AGENT_CONFIG = "etc/forage/agent.yaml";
const JOIN_TOKEN = "etc/forage/join-token";

/** Installs or upgrades what the flags request, and starts it if systemd runs. */
export async function installHost(checkout: string, flags: InstallFlags, progress: Progress): Promise<void> {
  const { step } = progress;
  if (flags.remove) return removeHost(flags, progress);
  const hasAgent = flags.parts.includes("agent");
  const onThisHost = flags.root === "/";
  if (onThisHost && hasAgent) await step("Debian packages", (report) => installMissing(TOOLS, { report }));
  const nerdctl = hasAgent ? await step("nerdctl", (report) => ensureNerdctl({ report })) : undefined;
  const envoy = flags.gateway ? await step("Envoy", (report) => ensureEnvoy({ report })) : undefined;
  await step("programs bundled", () =>
    bundlePrograms({ root: checkout, outDir: join(checkout, "dist"), programs: PROGRAMS }),
  );
  await step("files", async () => {
    const isNew = !existsSync(join(flags.root, AGENT_CONFIG));
    installFiles({ checkout, root: flags.root, parts: flags.parts, node: process.execPath, nerdctl, envoy });
    if (hasAgent && isNew && flags.coordinator)
      setCoordinator(join(flags.root, AGENT_CONFIG), flags.coordinator);
    if (flags.joinTokenFile) putJoinToken(flags.root, readFileSync(flags.joinTokenFile, "utf8"));
  });
  if (!onThisHost || !flags.start) return;
  if (!existsSync("/run/systemd/system")) {
    progress.say("systemd doesn't run here: start the units when it does");
    return;
  }
  await step("user and directories", async () => {
    if (flags.parts.includes("coordinator"))
      await run("systemd-sysusers", ["/usr/lib/sysusers.d/forage-coordinator.conf"]);
    for (const part of flags.parts)
      await run("systemd-tmpfiles", ["--create", `/usr/lib/tmpfiles.d/forage-${part}.conf`]);
    await run("systemctl", ["daemon-reload"]);
  });
  for (const part of flags.parts) await startPart(part, flags, progress);
}

async function startPart(part: Part, flags: InstallFlags, { step, say }: Progress): Promise<void> {
  await run("systemctl", ["enable", unitOf(part)]);
  if (part === "agent") await step(LOG_READER_SOCKET, startLogReader);
  if (
    part === "agent" &&
    !existsSync(join("/", JOIN_TOKEN)) &&
    !existsSync("/var/lib/forage/agent/identity/node.pem")
  ) {
    if (!flags.parts.includes("coordinator")) {
      say(`the agent has no join token yet. On the coordinator's host: forage token create > token
then here: sudo hack/install agent --join-token-file token`);
      return;
    }
    const { stdout } = await run("/usr/bin/forage", ["token", "create", "--config", "/etc/forage/cli.yaml"]);
    putJoinToken("/", stdout);
  }
  await step(unitOf(part), async () => {
    await run("systemctl", ["restart", unitOf(part)], { timeoutMs: READY_LIMIT_MS }).catch(async (cause) => {
      const { stdout } = await run("journalctl", ["--unit", unitOf(part), "--lines", "15", "--no-pager"], {
        allowFailure: true,
      });
      throw new SetupError(
        "NOT_READY",
        `${unitOf(part)} does not start:\n${stdout}`,
        `journalctl -u ${unitOf(part)}`,
        { cause },
      );
    });
    await waitFor(
      async () =>
        (await run("systemctl", ["is-active", unitOf(part)], { allowFailure: true })).stdout.trim() ===
        "active",
      {
        what: `${unitOf(part)} is active`,
        limitMs: READY_LIMIT_MS,
      },
    );
  });
}

/**
 * Starts or restarts the log reader. Must run before the agent starts. Meanwhile the output of containers waits in
 * their pipes.
 */
async function startLogReader(): Promise<void> {
  await run("systemctl", ["enable", "--now", LOG_READER_SOCKET]);
  await run("systemctl", ["try-restart", LOG_READER_UNIT]);
}

async function removeHost(flags: InstallFlags, { step }: Progress): Promise<void> {
  const beside = flags.parts.includes("agent") ? [LOG_READER_SOCKET, LOG_READER_UNIT] : [];
  const units = [...flags.parts.map(unitOf), ...beside];
  if (flags.root === "/" && existsSync("/run/systemd/system")) {
    await step("units stopped", () =>
      run("systemctl", ["disable", "--now", ...units], { allowFailure: true }),
    );
    // Stopping the agent has started it.
    if (flags.parts.includes("agent"))
      await run("systemctl", ["stop", LOG_GUARD_UNIT], { allowFailure: true });
  }
  await step("files removed", async () => removeFiles(flags.root, flags.parts));
}

function setCoordinator(path: string, address: string): void {
  const document = parseDocument(readFileSync(path, "utf8"));
  document.set("coordinator", address);
  writeFileSync(path, document.toString({ lineWidth: 0 }));
}

function putJoinToken(root: string, token: string): void {
  writeFileSync(join(root, JOIN_TOKEN), `${token.trim()}\n`, { mode: 0o600 });
}
