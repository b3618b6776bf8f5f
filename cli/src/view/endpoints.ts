import type { Endpoint } from "@forage/proto/forage/operator/v1/operator";
import type { Column } from "../output/table.ts";

export function endpointColumns(withNamespace: boolean): Column<Endpoint>[] {
  const namespace: Column<Endpoint> = { title: "NAMESPACE", value: (endpoint) => endpoint.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "SERVICE", value: ({ service }) => service },
    {
      title: "PORT",
      value: ({ servicePort, portName }) => `${servicePort}${portName === "" ? "" : ` (${portName})`}`,
    },
    { title: "ADDRESS", value: endpointAddress },
    { title: "POD", value: ({ pod }) => pod },
    { title: "NODE", value: ({ node }) => node },
    { title: "PROTOCOL", value: ({ protocol }) => protocol, wide: true },
  ];
}

export function endpointAddress({ address, port }: Endpoint): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
