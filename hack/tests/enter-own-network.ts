import { enterOwnNetwork } from "../lib/own-network.ts";

/**
 * Loaded into the process of each test file that runs containers: ports, rules, links and sysctls of files that run at the same
 * time are then apart, however many there are.
 */
enterOwnNetwork();
