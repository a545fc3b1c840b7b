// Appends to a session without driving it: the entry is on disk, and the process that drives the session does the rest.
import type { Harness } from '../../index.ts'
import type { Place } from './place.ts'
import { partsOf, workflowOf } from './workflows.ts'

/** `agent` and `folder`: those of the session, if the harness must know its agent. */
export async function aside<T>(
  { store, folder: here }: Place,
  act: (harness: Harness) => Promise<T>,
  { agent, folder = here }: { readonly agent?: string; readonly folder?: string } = {},
): Promise<T> {
  const { Harness, offline } = await import('../../index.ts')
  const workflow = workflowOf(agent)
  const parts = workflow === null ? {} : await partsOf(workflow, folder)
  // The model is never called. Otherwise a command that only records a decision would start a call and end during it.
  const harness = new Harness({ model: offline(), store, drives: false, ...parts })
  try {
    return await act(harness)
  } finally {
    await harness.close()
  }
}
