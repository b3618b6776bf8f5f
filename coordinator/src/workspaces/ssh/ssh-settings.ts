import * as z from "zod";

/** The settings below `workspaces.ssh` in coordinator.yaml. */
export const SSH_SCHEMA = z.strictObject({
  listen: z
    .string()
    .regex(/^(\[[0-9a-fA-F:]+\]|[^:]+):\d{1,5}$/, "must be HOST:PORT")
    .describe("HOST:PORT of the SSH gateway."),
  hostKeyFile: z
    .string()
    .startsWith("/")
    .optional()
    .describe(
      "Private host key. Default: `keys/workspace-ssh.key` in dataDir, which is made at the first start.",
    ),
  connections: z.number().int().min(1).max(10_000).default(1_000).describe("Open SSH connections."),
  connectionsPerWorkspace: z
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(32)
    .describe("Open SSH connections of one workspace; more are refused."),
});

export type SshSettings = z.infer<typeof SSH_SCHEMA>;
