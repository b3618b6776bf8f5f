import { enterOwnNetwork } from "../lib/own-network.ts";

/**
 * Loaded into the process of each test file that runs containers. Ports, rules, links and sysctls of files that run at
 * the same time are then separate.
 */
enterOwnNetwork();
