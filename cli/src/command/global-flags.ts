import type { Flags } from "./flag.ts";

export const OUTPUT_FORMATS = ["table", "wide", "json", "yaml", "name"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export const GLOBAL_FLAGS = {
  namespace: { type: "text", short: "n", hint: "NAME", help: "namespace to work in" },
  output: {
    type: "text",
    short: "o",
    hint: "FORMAT",
    choices: OUTPUT_FORMATS,
    help: "how results are printed",
  },
  config: { type: "text", hint: "FILE", help: "configuration file" },
  context: {
    type: "text",
    hint: "CONTEXT",
    help: "settings of the configuration file to use, instead of the current context's",
  },
  server: {
    type: "text",
    hint: "HOST:PORT,…",
    help: "the coordinator's gRPC address, or those of several coordinators of one cluster",
  },
  "ca-file": {
    type: "text",
    hint: "FILE",
    help: "certificate of the authority that vouches for the coordinator",
  },
  "token-file": { type: "text", hint: "FILE", help: "file that holds the bearer token" },
  timeout: { type: "text", hint: "DURATION", help: "give up after so long, such as 30s or 5m" },
  "no-color": { type: "switch", help: "print no colours, as with NO_COLOR" },
  help: { type: "switch", short: "h", help: "show help" },
} as const satisfies Flags;

export type GlobalFlags = typeof GLOBAL_FLAGS;
