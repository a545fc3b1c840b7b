// Which snapshots of a session are kept: so many that the session at any of its events is folded from one that is near.

/** At most so many events lie between two that are kept, as far as owners write them that often. */
export const SNAPSHOT_SPAN = 8_192

/** With a newer one: is the last one not needed any more? `before` is the one before it, or 0. */
export function isSpare(newer: number, before: number): boolean {
  return newer - before <= SNAPSHOT_SPAN
}
