// A recorded session for what-ifs: what is recorded, the requests its model got, and a look at the source afterwards.
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  type CompleteStore,
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Model,
  type Request,
} from '../../src/index.ts'
import { readWholeTree } from '../../src/stores/move/portable-tree.ts'

/** A model that goes by the conversation alone, so it answers the same request in the same way at any time. */
export type Talk = (request: Request) => Spoken
export type Spoken =
  | string
  | { readonly text?: string; readonly calls: readonly { readonly tool: string; readonly args: unknown }[] }

export function talking(talk: Talk, requests: Request[] = [], name = 'talking'): Model {
  return {
    name,
    async call(request) {
      requests.push(structuredClone(request))
      const spoken = talk(request)
      const { text = '', calls = [] } = typeof spoken === 'string' ? { text: spoken } : spoken
      return {
        type: 'reply',
        parts: text === '' ? [] : [{ type: 'text', text }],
        calls: calls.map(({ tool, args }, i) => ({
          id: `c${request.messages.length}_${i}`,
          tool,
          args: JSON.stringify(args),
        })),
        finish: calls.length > 0 ? 'calls' : 'stop',
        usage: { inputTokens: Math.ceil(JSON.stringify(request.messages).length / 4), outputTokens: 10 },
        cost: 10_000,
      }
    },
  }
}

/** How many replies the model has given in this conversation since the last message of a person. */
export function turnOf({ messages }: Request): number {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  return messages.slice(last + 1).filter(({ role }) => role === 'assistant').length
}

/** The texts that people said. */
export function saidIn({ messages }: Request): readonly string[] {
  return messages.flatMap((message) =>
    message.role === 'user' ? message.parts.map((part) => (part.type === 'text' ? part.text : '')) : [],
  )
}

/** `ran` lists what really ran. */
export function world(ran: string[] = []) {
  const look = defineTool({
    name: 'look',
    description: 'Looks something up.',
    input: z.object({ what: z.string() }),
    effect: 'read',
    execute: ({ what }) => {
      ran.push(`look ${what}`)
      return `${what} number ${ran.length}`
    },
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays somebody.',
    input: z.object({ to: z.string(), amount: z.number() }),
    execute: ({ to }) => {
      ran.push(`pay ${to}`)
      return `paid ${to}`
    },
  })
  return { look, pay }
}

export async function recorded(options: HarnessOptions, input: string | readonly string[]) {
  const store = memory()
  const harness = new Harness({ ...options, store, secrets: {} })
  onTestFinished(() => harness.close())
  const session = await harness.open()
  for (const text of [input].flat()) await session.run(text)
  return { store, session: session.id, harness }
}

/** Everything that a store has of a tree, as text. */
export async function wholeText(store: CompleteStore, root: string): Promise<string> {
  const { logs, accounts, blobs } = await readWholeTree(store, root)
  return JSON.stringify([logs, accounts, [...blobs.keys()].sort()])
}
