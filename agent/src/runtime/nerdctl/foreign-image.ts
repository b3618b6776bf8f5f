import { existsSync } from "node:fs";
import { arch } from "node:os";
import { RuntimeError } from "../runtime.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

// The call only serves to improve an error message.
const TIMEOUT_MS = 20_000;
// Enough for an error message.
const PLATFORMS_MAX = 10;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };
/** This host's architecture, in the terms of images. */
export const HOST_ARCHITECTURE = ARCHITECTURES[arch()] ?? arch();
const HOST = `linux/${HOST_ARCHITECTURE}`;
// Platforms that each architecture can run besides its own.
const ALSO_RUN: Readonly<Record<string, string>> = { amd64: "386", arm64: "arm" };
// QEMU's names of architectures, where they differ from those of images.
const EMULATORS: Readonly<Record<string, string>> = { amd64: "x86_64", "386": "i386", arm64: "aarch64" };

/**
 * Rejects an image of another platform, for example one that was imported. containerd would report the mismatch only in
 * the container's output. A host with an emulator accepts it.
 */
export function checkPlatform(reference: string, platform: string): void {
  const [os, architecture = ""] = platform.split("/");
  if (platform === "/" || platform === "" || architecture === "") return;
  const runs = [HOST_ARCHITECTURE, ALSO_RUN[HOST_ARCHITECTURE]].includes(architecture);
  const emulator = `/proc/sys/fs/binfmt_misc/qemu-${EMULATORS[architecture] ?? architecture}`;
  if (os === "linux" && (runs || existsSync(emulator))) return;
  throw invalid(reference, platform);
}

/**
 * Returns the IMAGE_INVALID error for an image without a variant for this host; the error lists the image's platforms.
 * Queries the registry once more.
 */
export async function foreignImage(
  cli: NerdctlCli,
  reference: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<RuntimeError> {
  const args = ["manifest", "inspect", "--verbose", "--", reference];
  const options = { signal, env, timeoutMs: TIMEOUT_MS, unlimited: true } as const;
  const answer = await cli.call(args, options).catch(() => undefined);
  const platforms = answer === undefined ? [] : readPlatforms(answer.stdout);
  const what = platforms.length === 0 ? "other platforms only" : platforms.slice(0, PLATFORMS_MAX).join(", ");
  return invalid(reference, what);
}

function invalid(reference: string, what: string): RuntimeError {
  return new RuntimeError("IMAGE_INVALID", `image ${reference} is for ${what}; this host is ${HOST}`, {
    retryable: false,
  });
}

/**
 * Parses the output of `nerdctl manifest inspect --verbose`: one object or a list of them, each with the platform of
 * its descriptor.
 */
export function readPlatforms(json: string): readonly string[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return [];
  }
  const entries: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  const names = entries.map((entry) => platformName(field(field(entry, "Descriptor"), "platform")));
  return [...new Set(names.filter((name) => name !== ""))].sort();
}

function platformName(platform: unknown): string {
  const [os, architecture] = [field(platform, "os"), field(platform, "architecture")];
  // Attestations are listed as images for `unknown/unknown`.
  if (typeof os !== "string" || typeof architecture !== "string" || architecture === "unknown") return "";
  const variant = field(platform, "variant");
  return `${os}/${architecture}${typeof variant === "string" ? `/${variant}` : ""}`;
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
