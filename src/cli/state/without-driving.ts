// The verbs for commands that drive nothing: they read, or append what the process that drives the session goes on with.
import type { Harness } from '../../index.ts'
import type { Store } from '../../kernel/index.ts'
import { clientOf } from './far.ts'
import { PROGRAM } from './program.ts'
import { partsOf, workflowOf } from './workflows.ts'

/** `whose`: the agent and the folder of the session, if the harness must know them. */
export async function aside<T>(
  { store }: { readonly store: Store },
  act: (harness: Harness) => Promise<T>,
  whose?: { readonly agent: string; readonly folder: string },
): Promise<T> {
  // A client has the verbs that commands use.
  const client = clientOf(store)
  if (client) return act(client as unknown as Harness)
  const { Harness, offline } = await import('../../index.ts')
  const workflow = workflowOf(whose?.agent)
  const parts = workflow === null || whose === undefined ? {} : await partsOf(workflow, whose.folder)
  // The model is never called. Otherwise a command that only records a decision would start a call and end during it.
  const harness = new Harness({ program: PROGRAM, model: offline(), store, drives: false, ...parts })
  try {
    return await act(harness)
  } finally {
    await harness.close()
  }
}
