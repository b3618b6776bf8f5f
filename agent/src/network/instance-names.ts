/** The names of one agent's kernel objects. They let several instances share a host without affecting each other. */
export interface InstanceNames {
  /** The name of the bridge: at most 15 bytes, the kernel's limit for interfaces. */
  readonly bridge: string;
  /** The table of host ports. */
  readonly table: string;
  /** The table of services. It is separate, because each table is replaced completely when another program has changed it. */
  readonly servicesTable: string;
  /** The table that limits what pods can reach on the host and beyond. */
  readonly accessTable: string;
  readonly namespacePrefix: string;
  /** The name of the lease directory. */
  readonly cniNetwork: string;
}

/** Lower-case letters and digits only, because the name becomes part of names that are split at separators. */
const INSTANCE = /^[a-z0-9]{1,8}$/;

export function instanceNames(instance: string): InstanceNames {
  if (!INSTANCE.test(instance)) {
    throw new RangeError(`instance ${JSON.stringify(instance)} must be 1 to 8 lower-case letters or digits`);
  }
  return {
    bridge: `fg-${instance}`,
    table: `forage_${instance}`,
    servicesTable: `forage_${instance}_services`,
    accessTable: `forage_${instance}_access`,
    namespacePrefix: `forage-${instance}-`,
    cniNetwork: `forage-${instance}`,
  };
}
