import * as z from "zod";

/** The settings below `workspaces.content` in coordinator.yaml. */
export const CONTENT_SCHEMA = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "must be a DNS label")
    .default("main")
    .describe("Name of the content store in snapshot URLs (`OBJECT@NAME`)."),
  directory: z
    .string()
    .startsWith("/")
    .optional()
    .describe(
      "Directory that holds the archives. Default: `workspace-content` in dataDir. Not used with s3.",
    ),
  reserveGigabytes: z
    .number()
    .min(0)
    .max(10_000)
    .default(1)
    .describe("Free space on the directory's file system that archives never take."),
  maxArchiveGigabytes: z
    .number()
    .min(0.001)
    .max(100_000)
    .default(1_024)
    .describe("Largest archive of one workspace."),
  transfersPerNode: z
    .number()
    .int()
    .min(1)
    .max(100)
    .default(5)
    .describe("Archives that one node sends and receives at a time."),
  transfers: z
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(64)
    .describe("Archives that all nodes send and receive at a time."),
  orphanGraceHours: z
    .number()
    .min(0.1)
    .max(10_000)
    .default(24)
    .describe("How long an archive that no record names is kept."),
  s3: z
    .strictObject({
      endpoint: z
        .url({ protocol: /^https?$/, error: "must be an http or https URL" })
        .optional()
        .describe("URL of the server. Default: Amazon's for the region."),
      region: z.string().min(1).max(100).default("us-east-1").describe("Region of the bucket."),
      bucket: z.string().min(3).max(63).describe("Bucket that holds the archives. It must exist."),
      prefix: z
        .string()
        .max(100)
        .regex(/^([A-Za-z0-9._-]+\/)*$/, "must be empty or end with /")
        .default("")
        .describe("Prefix of all keys. Nothing else may lie under it."),
      pathStyle: z
        .boolean()
        .optional()
        .describe(
          "Puts the bucket into the path and not into the host name. Default: true if there is an endpoint.",
        ),
      credentialsFile: z
        .string()
        .startsWith("/")
        .describe("File with `accessKeyId: …` and `secretAccessKey: …`; only the coordinator may read it."),
    })
    .optional()
    .describe("Keeps the archives in an S3 bucket in place of a directory."),
});

export type ContentSettings = z.infer<typeof CONTENT_SCHEMA>;
