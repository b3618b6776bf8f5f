// The files of systeminformation with the functions in use, a fifth of its code.
declare module "systeminformation/lib/memory.js" {
  export { mem } from "systeminformation";
}
declare module "systeminformation/lib/osinfo.js" {
  export { osInfo } from "systeminformation";
}
