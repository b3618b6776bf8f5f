import type { Field } from "../conversion/field.ts";
import { eachField, losing } from "./read-amounts.ts";
import type { ServiceDraft, ServicePort } from "./service-draft.ts";

type Protocol = ServicePort["protocol"];

const HOST_ADDRESS = "names an address of one host: services have addresses of their own";

/**
 * Reads the field `ports`. Each container port becomes a port of the service, and so does each
 * published port.
 */
export function readPorts(field: Field, draft: ServiceDraft): void {
  for (const item of field.items()) {
    if (item.kind === "map") readLongPort(item, draft);
    else readShortPort(item, draft);
  }
}

/** Reads the field `expose`. */
export function readExposed(field: Field, draft: ServiceDraft): void {
  for (const item of field.items()) {
    const [, port, protocol] = /^(\d+)(?:\/(\w+))?$/.exec(item.text()) ?? [];
    if (port === undefined) item.fail("must be one port, such as 8080");
    else add(item, draft, { target: port, published: undefined, protocol });
  }
}

function readShortPort(item: Field, draft: ServiceDraft): void {
  const text = item.text();
  const [, host, published, target, protocol] =
    /^(?:(?:(\[[\da-fA-F:]+\]|[\d.]+):)?(\d*):)?(\d+)(?:\/(\w+))?$/.exec(text) ?? [];
  if (target === undefined) {
    const isRange = /\d-\d/.test(text);
    item.fail(isRange ? "is a range: write each port out" : "must be a port such as 8080:80");
    return;
  }
  if (host !== undefined && host !== "0.0.0.0" && host !== "[::]") item.lose(HOST_ADDRESS);
  add(item, draft, { target, published, protocol });
}

function readLongPort(item: Field, draft: ServiceDraft): void {
  let [target, published, protocol]: (string | undefined)[] = [];
  eachField(item, {
    target: (field) => {
      target = field.text();
    },
    published: (field) => {
      published = field.text();
    },
    protocol: (field) => {
      protocol = field.text();
    },
    host_ip: losing(HOST_ADDRESS),
    mode: (field) => {
      if (field.text() !== "ingress") field.lose("has no counterpart: every host leads to all pods");
    },
    name: () => {},
    app_protocol: losing("has no counterpart"),
  });
  if (target === undefined) item.fail("has no target");
  else add(item, draft, { target, published, protocol });
}

interface WrittenPort {
  readonly target: string;
  readonly published: string | undefined;
  readonly protocol: string | undefined;
}

function add(at: Field, { ports }: ServiceDraft, written: WrittenPort): void {
  const target = portNumber(at, written.target);
  const protocol = (written.protocol ?? "tcp").toUpperCase();
  if (!isProtocol(protocol)) {
    at.fail(`"${written.protocol}" is none of tcp, udp and sctp`);
    return;
  }
  const isPublished = written.published !== undefined && written.published !== "";
  // Other services use the container's port, as in Compose.
  put(ports, { port: target, target, protocol, published: false });
  if (isPublished)
    put(ports, {
      port: portNumber(at, written.published ?? ""),
      target,
      protocol,
      published: true,
    });
}

function isProtocol(text: string): text is Protocol {
  return text === "TCP" || text === "UDP" || text === "SCTP";
}

/**
 * Adds a port unless the service already has its number and protocol. A published port always
 * replaces the former one.
 */
function put(ports: ServicePort[], port: ServicePort): void {
  const at = ports.findIndex((each) => each.port === port.port && each.protocol === port.protocol);
  if (at === -1) ports.push(port);
  else if (port.published) ports[at] = port;
}

function portNumber(at: Field, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  return at.fail(`"${text}" is not a port from 1 to 65535`) ?? 0;
}
