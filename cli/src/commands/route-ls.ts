import { routeColumns } from "../view/routes.ts";
import { resourceListCommand } from "./resource-list.ts";

export const routeLs = resourceListCommand({
  summary: "List routes, those of services included, and whether gateways serve them",
  details:
    "`forage describe route/NAME` shows one with its conditions, hostnames, certificates and gateways.",
  many: "routes",
  isListed: ({ route }) => route !== undefined,
  columns: routeColumns,
});
