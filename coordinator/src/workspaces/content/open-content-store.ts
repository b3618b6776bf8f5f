import { readFile, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@forage/common/clock";
import { parse } from "yaml";
import * as z from "zod";
import { CoordinatorError } from "../../errors.ts";
import type { ContentSettings } from "./content-settings.ts";
import type { ContentStore } from "./content-store.ts";
import { DirectoryContentStore } from "./directory-content-store.ts";
import type { TransferLimits } from "./transfer-slots.ts";

export interface OpenContentStoreOptions {
  readonly settings: ContentSettings;
  readonly dataDir: string;
  readonly randomName: (length: number) => string;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
}

const GIGABYTE_BYTES = 1024 ** 3;
/** The mode bits that grant permissions to the group and to others. */
const FOREIGN_PERMISSIONS = 0o077;

/** Opens the configured content store. Throws FAILED_PRECONDITION, with the setting to correct. */
export async function openContentStore(options: OpenContentStoreOptions): Promise<ContentStore> {
  const { settings, dataDir, randomName, clock } = options;
  const { name, s3 } = settings;
  if (s3 === undefined) {
    const dir = settings.directory ?? join(dataDir, "workspace-content");
    const freeBytes = async (): Promise<number> => {
      const { bavail, bsize } = await statfs(dir);
      return bavail * bsize;
    };
    const reserveBytes = settings.reserveGigabytes * GIGABYTE_BYTES;
    return DirectoryContentStore.open({ name, dir, randomName, freeBytes, reserveBytes });
  }
  const credentials = await readCredentials(s3.credentialsFile);
  // The S3 client is a megabyte of code, so it is loaded only when it is used.
  const { S3ContentStore } = await import("./s3/s3-content-store.ts");
  const { endpoint, region, bucket, prefix, pathStyle } = s3;
  return new S3ContentStore({
    name,
    ...(endpoint !== undefined && { endpoint }),
    region,
    bucket,
    prefix,
    forcePathStyle: pathStyle ?? endpoint !== undefined,
    credentials,
    randomName,
    nowMs: clock.nowMs,
    monotonicMs: clock.monotonicMs,
  });
}

export function transferLimits(settings: ContentSettings): Partial<TransferLimits> {
  return {
    perNode: settings.transfersPerNode,
    total: settings.transfers,
    maxArchiveBytes: settings.maxArchiveGigabytes * GIGABYTE_BYTES,
  };
}

const CREDENTIALS = z.strictObject({
  accessKeyId: z.string().min(1).max(500),
  secretAccessKey: z.string().min(1).max(500),
});

async function readCredentials(path: string): Promise<z.infer<typeof CREDENTIALS>> {
  const fail = (reason: string): never => {
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspaces.content.s3.credentialsFile: ${path} ${reason}`,
    );
  };
  const found = await stat(path).catch(() => fail("can't be read"));
  if ((found.mode & FOREIGN_PERMISSIONS) !== 0)
    fail("can be read by others than its owner: set its mode to 600");
  const text = await readFile(path, "utf8").catch(() => fail("can't be read"));
  let value: unknown;
  try {
    value = parse(text, { prettyErrors: false });
  } catch {
    // The parser's own message would quote the file, which holds secrets.
    fail("is not valid YAML");
  }
  const result = CREDENTIALS.safeParse(value);
  return result.success
    ? result.data
    : fail("must hold the keys accessKeyId and secretAccessKey, and no others");
}
