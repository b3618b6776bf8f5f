import { RuntimeError, type RuntimeVersion } from "../runtime.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

interface VersionAnswer {
  readonly Client?: { readonly Version?: string };
  readonly Server?: { readonly Components?: readonly { readonly Name: string; readonly Version: string }[] };
}

/** Returns the versions of containerd and nerdctl. Rejects with UNAVAILABLE if containerd doesn't respond. */
export async function readVersion(cli: NerdctlCli, signal: AbortSignal): Promise<RuntimeVersion> {
  const { stdout } = await cli.call(["version", "--format", "{{json .}}"], { signal });
  const { Client, Server } = JSON.parse(stdout) as VersionAnswer;
  const containerd = Server?.Components?.find((it) => it.Name === "containerd")?.Version;
  if (containerd === undefined)
    throw new RuntimeError("UNAVAILABLE", "containerd doesn't answer", { retryable: true });
  return { containerd, nerdctl: Client?.Version ?? "" };
}
