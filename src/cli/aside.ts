// Saying something to a session without driving it: what is said is on disk, and whoever drives the session does the rest.
import type { Harness } from '../index.ts'
import { onlooking, type Place } from './place.ts'

export async function aside<T>({ store }: Place, act: (harness: Harness) => Promise<T>): Promise<T> {
  const { Harness, offline } = await import('../index.ts')
  // It is never asked anything: nothing is driven here.
  const harness = new Harness({ model: offline(), store: onlooking(store) })
  try {
    return await act(harness)
  } finally {
    await harness.close()
  }
}
