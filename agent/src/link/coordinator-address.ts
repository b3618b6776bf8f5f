export interface CoordinatorAddress {
  readonly host: string;
  readonly port: number;
}

/** Three coordinators are usual, each with addresses of up to two families. */
export const ADDRESSES_MAX = 16;

/** Parses HOST:PORT or [HOST]:PORT. Returns undefined for any other text. */
export function parseAddress(text: string): CoordinatorAddress | undefined {
  const [, bracketed, plain, port] =
    /^(?:\[([0-9a-fA-F:.]{2,45})\]|([A-Za-z0-9.-]{1,253})):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = Number(port);
  return host === undefined || number < 1 || number > 65_535 ? undefined : { host, port: number };
}

export function textOf({ host, port }: CoordinatorAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
