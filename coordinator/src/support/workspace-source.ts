import type { ObjectName } from "../model/object-name.ts";

/** Describes workspaces for support bundles. */
export interface WorkspaceSource {
  /** Returns one object for each instance, newest first, without possible secrets. */
  lines(): readonly object[];
  /**
   * Returns the secret values of all instances. @throws the error of the vault if one can't be
   * decrypted.
   */
  secrets(): ReadonlySet<string>;
  /**
   * Reports whether a secret contains the environment of an instance. Its secret values are in
   * `secrets`.
   */
  isEnvironment(name: ObjectName, labels: Readonly<Record<string, string>>): boolean;
}
