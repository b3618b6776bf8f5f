import { CoordinatorError } from "../../errors.ts";

export interface UrlTemplates {
  readonly urlTemplate: string;
  readonly portUrlTemplate: string;
  /** The values of the template variables Host and IngressPort. */
  readonly host: string;
  readonly ingressPort: number;
}

/** A possible meaning of a host name. `port` is undefined if the host names no port. */
export interface HostTarget {
  readonly by: "prefix" | "id";
  readonly name: string;
  readonly port: number | undefined;
}

/** The pattern of a label or a part of one. Hosts are compared in lower case. */
const NAME = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const PATTERNS: Readonly<Record<string, string>> = {
  Prefix: `(?<prefix>${NAME})`,
  ID: `(?<id>${NAME})`,
  WorkspacePort: "(?<port>[1-9]\\d{0,4})",
};
const MAX_PORT = 65_535;

/**
 * Finds the workspace and the port that a host name means, by matching it against the URL
 * templates.
 */
export class HostPatterns {
  readonly #workspace: RegExp;
  readonly #port: RegExp;

  constructor(templates: UrlTemplates) {
    this.#workspace = patternOf("urlTemplate", templates.urlTemplate, templates, false);
    this.#port = patternOf("portUrlTemplate", templates.portUrlTemplate, templates, true);
  }

  /**
   * Returns the possible meanings of a host name, the most likely first: `3000-x` is port 3000 of
   * `x`, or the workspace with the prefix `3000-x`. The host may have a port number appended.
   */
  targetsOf(host: string): readonly HostTarget[] {
    const name = host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");
    return [this.#port, this.#workspace].flatMap((pattern) => {
      const groups = pattern.exec(name)?.groups;
      if (groups === undefined) return [];
      const port = groups.port === undefined ? undefined : Number(groups.port);
      if (port !== undefined && port > MAX_PORT) return [];
      const { prefix, id = "" } = groups;
      return [{ by: prefix === undefined ? "id" : "prefix", name: prefix ?? id, port } as const];
    });
  }
}

function patternOf(
  setting: string,
  template: string,
  { host, ingressPort }: UrlTemplates,
  withPort: boolean,
): RegExp {
  const authority =
    /^[a-z]+:\/\/([^/]+)/.exec(template)?.[1]?.replace(/:(\d+|\{\{\s*\.IngressPort\s*\}\})$/, "") ?? "";
  const seen = new Set<string>();
  const source = authority
    .split(/(\{\{\s*\.\w+\s*\}\})/)
    .map((part) => {
      const variable = /^\{\{\s*\.(\w+)\s*\}\}$/.exec(part)?.[1];
      if (variable === undefined) return literally(part.toLowerCase());
      if (variable === "Host") return literally(host.toLowerCase());
      if (variable === "IngressPort") return String(ingressPort);
      const pattern = PATTERNS[variable];
      if (pattern === undefined || seen.has(variable)) throw invalid(setting, template);
      seen.add(variable);
      return pattern;
    })
    .join("");
  if (!(seen.has("Prefix") || seen.has("ID")) || seen.has("WorkspacePort") !== withPort)
    throw invalid(setting, template);
  return new RegExp(`^${source}$`);
}

function invalid(setting: string, template: string): CoordinatorError {
  return new CoordinatorError(
    "FAILED_PRECONDITION",
    `workspaces.${setting}: the ingress finds workspaces by host name, so the host of ${template} must contain {{.Prefix}} or {{.ID}} once, and {{.WorkspacePort}} in portUrlTemplate only`,
  );
}

function literally(text: string): string {
  return text.replaceAll(/[^a-z0-9-]/g, "\\$&");
}
