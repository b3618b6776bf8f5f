import * as z from "zod";

/** The settings below `workspaces.ingress` in coordinator.yaml. */
export const INGRESS_SCHEMA = z.strictObject({
  listen: z
    .string()
    .regex(/^(\[[0-9a-fA-F:]+\]|[^:]+):\d{1,5}$/, "must be HOST:PORT")
    .describe("HOST:PORT that serves the workspaces' URLs."),
  certificateFile: z
    .string()
    .startsWith("/")
    .optional()
    .describe(
      "Certificate chain (PEM) for the workspaces' hosts. Default: plain HTTP, for behind a proxy that ends TLS.",
    ),
  keyFile: z.string().startsWith("/").optional().describe("Private key (PEM) of the certificate."),
  gatewayAddresses: z
    .array(z.union([z.ipv4(), z.ipv6()]))
    .max(16)
    .default([])
    .describe(
      "IP addresses at which gateways reach the ingress. They make the service `workspace-ingress`, to which routes can lead.",
    ),
  workspacePort: z
    .number()
    .int()
    .min(1)
    .max(65_535)
    .default(23_000)
    .describe("Port in the workspace that its own URL leads to."),
  connections: z.number().int().min(1).max(100_000).default(4_096).describe("Open connections of visitors."),
  connectionsPerWorkspace: z
    .number()
    .int()
    .min(1)
    .max(10_000)
    .default(256)
    .describe("Open requests and WebSockets of one workspace; more are refused."),
});

export type IngressSettings = z.infer<typeof INGRESS_SCHEMA>;
