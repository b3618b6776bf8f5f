import type { ObjectName } from "../model/object-name.ts";

/** Describes workspaces for support bundles. */
export interface WorkspaceSource {
  /** Returns one object for each instance, the newest ones first, without what may be secret. */
  lines(): readonly object[];
  /**
   * Returns the secret values of all instances.
   * @throws the error of the vault if one can't be decrypted.
   */
  secrets(): ReadonlySet<string>;
  /** Reports whether a secret holds the environment of an instance. The secret values in it are among `secrets`. */
  isEnvironment(name: ObjectName, labels: Readonly<Record<string, string>>): boolean;
}
