import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { Handlers } from "../../rpc/serve.ts";

export type ObjectHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "putObject" | "getObject" | "listObjects" | "deleteObject" | "revealObject"
>;

/** What pods refer to by name. */
export function objectHandlers(): ObjectHandlers {
  const refuse = async (): Promise<never> => {
    throw new CoordinatorError("UNIMPLEMENTED", "objects are not supported by this version");
  };
  return {
    putObject: refuse,
    getObject: refuse,
    listObjects: refuse,
    deleteObject: refuse,
    revealObject: refuse,
  };
}
