import type { Config } from "../config.ts";

/**
 * Returns the configuration without what may be secret. Most secrets are in files, which it only names. The path of a webhook's URL is
 * often one, and the arguments of workspaces may contain some.
 */
export function shownConfig({ workspaces, notifications, ...config }: Config): object {
  return {
    ...config,
    workspaces: { ...workspaces, args: `${workspaces.args.length} left out` },
    notifications: notifications.map(({ url, ...rest }) => ({ ...rest, origin: new URL(url).origin })),
  };
}
