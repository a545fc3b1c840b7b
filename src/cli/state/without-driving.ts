// Runs an action of a command that drives no session: it reads, or appends input for the process that drives the
// session.
import type { Sessions } from '../../index.ts'
import type { Store } from '../../kernel/index.ts'
import { remoteClient } from './remote-server.ts'
import { PROGRAM } from './own-program.ts'
import { workflowParts, workflowOfAgent } from './workflow-agents.ts'

/** `whose`: the agent and the folder of the session, if the harness must know them. */
export async function withoutDriving<T>(
  { store }: { readonly store: Store },
  act: (sessions: Sessions) => Promise<T>,
  whose?: { readonly agent: string; readonly folder: string },
): Promise<T> {
  const client = remoteClient(store)
  if (client) return act(client)
  const { Harness, offline } = await import('../../index.ts')
  const workflow = workflowOfAgent(whose?.agent)
  const parts = workflow === null || whose === undefined ? {} : await workflowParts(workflow, whose.folder)
  // The model is never called, because a command that only records a decision must not start a call and end during it.
  const harness = new Harness({ program: PROGRAM, model: offline(), store, worker: { drives: false }, ...parts })
  try {
    return await act(harness)
  } finally {
    await harness.close()
  }
}
