// One of few places for an open stream, shared by all tabs of this browser: a browser opens six connections to a server, and a stream
// holds one. A tab without a place reads again and again instead.

const SLOTS = 4

/** Gives the place back. Null: all are taken, or the browser has no locks that tabs share. */
export async function takeSlot(): Promise<(() => void) | null> {
  // They are only there at secure addresses.
  const locks = (navigator as { readonly locks?: LockManager }).locks
  if (!locks) return null
  for (let i = 0; i < SLOTS; i++) {
    const release = await tried(locks, `terret.stream.${i}`)
    if (release !== null) return release
  }
  return null
}

function tried(locks: LockManager, name: string): Promise<(() => void) | null> {
  return new Promise((resolve) => {
    const held = locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null)
      return new Promise<void>((release) => resolve(release))
    })
    held.catch(() => resolve(null))
  })
}
