// A session that pays after an approval, for the tests of export and import. Its payments are recorded outside of the session.
import { z } from 'zod'
import { defineTool, Harness, memory, type Script, scripted, type CompleteStore, type Tool } from '../../src/index.ts'
import { forgeFile, openFile, type OpenedFile } from '../../sim/forge-file.ts'
import { exportSession } from '../../src/archive/portable.ts'

export type Desk = {
  readonly harness: Harness
  readonly store: CompleteStore
  /** What was really paid. */
  readonly paid: number[]
}

export function payTool(paid: number[], description = 'pays an amount'): Tool {
  return defineTool({
    name: 'pay',
    description,
    input: z.object({ amount: z.number() }),
    approval: 'ask',
    execute: ({ amount }) => {
      paid.push(amount)
      return `paid ${amount}`
    },
  })
}

export const ASKS: Script = [{ text: 'I will pay.', calls: [{ tool: 'pay', args: { amount: 5 } }] }, 'Paid.']

export function desk(
  script: Script,
  options: { readonly store?: CompleteStore; readonly tools?: readonly Tool[] } = {},
): Desk {
  const { store = memory() } = options
  const paid: number[] = []
  const harness = new Harness({ model: scripted(script), tools: options.tools ?? [payTool(paid)], store, secrets: {} })
  return { harness, store, paid }
}

/** A forged change whose digests are computed again, too. */
export const forged = forgeFile

/** What is in the exported file of a session. */
export async function exported(store: CompleteStore, session: string): Promise<OpenedFile> {
  return openFile(await exportSession(store, session))
}
