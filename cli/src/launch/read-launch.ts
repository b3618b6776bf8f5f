import type { FlagValues } from "../command/flag.ts";
import { CliError } from "../errors.ts";
import type { Launch } from "./manifest.ts";
import {
  type Bind,
  type Environment,
  nameOf,
  parseAmount,
  parseConstraint,
  parseEnvironment,
  parsePublication,
  parseReference,
  parseReplicas,
  parseRoute,
  parseVolume,
} from "./parse.ts";

/** The flags of `forage run` that determine the manifest. */
export const LAUNCH_FLAGS = {
  name: {
    type: "text",
    hint: "NAME",
    help: "name of the service; the last part of the image's name by default",
  },
  replicas: { type: "text", hint: "NUMBER", help: "how many pods; 1 by default" },
  publish: {
    type: "list",
    short: "p",
    hint: "[PORT:]CONTAINER_PORT[/udp]",
    help: "make a service with this port",
  },
  type: {
    type: "text",
    hint: "TYPE",
    choices: ["ClusterIP", "NodePort", "LoadBalancer", "Headless"],
    help: "type of the service; ClusterIP by default",
  },
  route: {
    type: "list",
    hint: "HOSTNAME[/PATH]",
    help: "lead requests for this name to the first port of the service",
  },
  tls: { type: "switch", help: "the routes terminate TLS, with a certificate of the coordinator's issuer" },
  env: {
    type: "list",
    short: "e",
    hint: "KEY[=VALUE]",
    help: "variable; without VALUE, the variable of this shell",
  },
  "env-file": { type: "list", hint: "FILE", help: "variables from lines of KEY=VALUE; - for standard input" },
  secret: {
    type: "list",
    hint: "VARIABLE=NAME/KEY|NAME:/PATH",
    help: "a secret's key as a variable, or all its keys as files",
  },
  "config-map": {
    type: "list",
    hint: "VARIABLE=NAME/KEY|NAME:/PATH",
    help: "a config map's key as a variable, or all its keys as files",
  },
  volume: {
    type: "list",
    short: "v",
    hint: "[CLAIM:|/HOST/PATH:]/PATH[:ro]",
    help: "a claim, a directory of the host or an empty directory",
  },
  cpu: { type: "text", hint: "REQUEST[:LIMIT]", help: "cores, such as 250m or 250m:1" },
  memory: {
    type: "text",
    hint: "REQUEST[:LIMIT]",
    help: "bytes, such as 128Mi; one amount is request and limit",
  },
  constraint: {
    type: "list",
    hint: "KEY=VALUE|KEY!=VALUE|KEY|!KEY",
    help: "only nodes with, or without, this label",
  },
  command: { type: "list", hint: "WORD", help: "instead of the image's entrypoint; once for each word" },
  health: {
    type: "text",
    hint: "PATH",
    help: "a pod is ready when its first published port answers this HTTP path",
  },
  registry: { type: "list", hint: "NAME", help: "registry credential with which the image is pulled" },
} as const;

export interface LaunchInput {
  readonly image: string;
  readonly args: readonly string[];
  readonly flags: FlagValues<typeof LAUNCH_FLAGS>;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The environment of the caller. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The variables of `--env-file`. */
  readonly fileVariables: readonly Environment[];
}

/** Parses the command line of `forage run`. Throws USAGE if it is invalid. */
export function readLaunch(input: LaunchInput): Launch {
  const { image, flags } = input;
  const references = [
    ...flags.secret.map((text) => parseReference("secret", text)),
    ...flags["config-map"].map((text) => parseReference("config", text)),
  ];
  const launch: Launch = {
    name: flags.name ?? nameOf(image),
    namespace: input.namespace,
    labels: input.labels,
    image,
    replicas: flags.replicas === undefined ? 1 : parseReplicas("--replicas", flags.replicas),
    command: flags.command,
    args: input.args,
    environment: distinct([
      ...input.fileVariables,
      ...flags.env.map((text) => parseEnvironment(text, input.env)),
      ...references.flatMap((each) => ("variable" in each ? each.variable : [])),
    ]),
    binds: [
      ...flags.volume.map(parseVolume),
      ...references.flatMap((each): Bind[] => ("bind" in each ? [each.bind] : [])),
    ],
    publications: flags.publish.map(parsePublication),
    serviceType: flags.type ?? "ClusterIP",
    routes: flags.route.map(parseRoute),
    tls: flags.tls,
    cpu: flags.cpu === undefined ? undefined : parseAmount("--cpu", flags.cpu),
    memory: flags.memory === undefined ? undefined : parseAmount("--memory", flags.memory),
    constraints: flags.constraint.map(parseConstraint),
    healthPath: flags.health,
    registries: flags.registry,
  };
  checkPorts(launch, flags.type);
  return launch;
}

/** Throws USAGE if a flag needs a port and there is none. */
function checkPorts({ publications, routes, tls, healthPath }: Launch, type: string | undefined): void {
  const needs: readonly (readonly [flag: string, given: boolean])[] = [
    ["--route", routes.length > 0],
    ["--type", type !== undefined],
    ["--health", healthPath !== undefined],
  ];
  for (const [flag, given] of needs)
    if (given && publications.length === 0)
      throw new CliError("USAGE", `${flag} needs a port: --publish 80:8080`);
  if (tls && routes.length === 0) throw new CliError("USAGE", "--tls needs a --route");
  if ((routes.length > 0 || healthPath !== undefined) && publications[0]?.protocol !== "TCP")
    throw new CliError("USAGE", "--route and --health use the first --publish, which must be a TCP port");
}

/** Keeps the last of several variables of the same name, so that `--env` overrides a file. */
function distinct(variables: readonly Environment[]): Environment[] {
  return [...new Map(variables.map((variable) => [variable.name, variable])).values()];
}
