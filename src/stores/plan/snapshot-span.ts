// Which snapshots of a session are kept: enough to fold the session at any event from a near one.

/** The most events between two kept snapshots, if owners write them that often. */
export const SNAPSHOT_SPAN = 8_192

/** Whether a newer snapshot makes the last one unnecessary. `before` is the seq of the one before the last, or 0. */
export function isSnapshotSpare(newer: number, before: number): boolean {
  return newer - before <= SNAPSHOT_SPAN
}
