/**
 * Permanently sets the ids and groups of the process to those of a container's user: `uid`, `gid`, and groups separated
 * by commas.
 */
export function becomeUser([uid = "", gid = "", groups = ""]: readonly string[]): void {
  const ids = [uid, gid, ...groups.split(",").filter(Boolean)];
  if (!ids.every((id) => /^\d+$/.test(id))) throw new TypeError("ids must be numbers");
  const [userId = 0, groupId = 0, ...groupIds] = ids.map(Number);
  process.setgroups?.(groupIds);
  process.setgid?.(groupId);
  process.setuid?.(userId);
}
