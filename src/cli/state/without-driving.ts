// Saying something to a session without driving it: what is said is on disk, and whoever drives the session does the rest.
import type { Harness } from '../../index.ts'
import type { Place } from './place.ts'
import { partsOf, workflowOf } from './workflows.ts'

/** `agent` is whose session it is, where the harness must know it. */
export async function aside<T>(
  { store, folder }: Place,
  act: (harness: Harness) => Promise<T>,
  agent?: string,
): Promise<T> {
  const { Harness, offline } = await import('../../index.ts')
  const workflow = workflowOf(agent)
  const parts = workflow === null ? {} : await partsOf(workflow, folder)
  // Its model is never asked anything. Otherwise a command that only records a decision would start the call and end with it.
  const harness = new Harness({ model: offline(), store, drives: false, ...parts })
  try {
    return await act(harness)
  } finally {
    await harness.close()
  }
}
