import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import type { Handlers } from "../rpc/serve.ts";

/** The handlers of the operator service, shared with gRPC clients. */
export type OperatorHandlers = Handlers<typeof OperatorServiceService>;
