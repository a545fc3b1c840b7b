// Limits the open streams of this browser, across all tabs: a browser opens six connections to a server, and a stream
// holds one. A tab without a slot polls instead.

const SLOTS = 4

/** Returns a function that releases the slot. Null: all slots are taken, or the browser has no shared locks. */
export async function takeSlot(): Promise<(() => void) | null> {
  // Locks exist only at secure addresses.
  const locks = (navigator as { readonly locks?: LockManager }).locks
  if (!locks) return null
  for (let i = 0; i < SLOTS; i++) {
    const release = await tryLock(locks, `terret.stream.${i}`)
    if (release !== null) return release
  }
  return null
}

function tryLock(locks: LockManager, name: string): Promise<(() => void) | null> {
  return new Promise((resolve) => {
    const held = locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null)
      return new Promise<void>((release) => resolve(release))
    })
    held.catch(() => resolve(null))
  })
}
