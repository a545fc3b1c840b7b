// Row 125: memory of several owners. One person's sessions teach an agent something private, and another person tries to be told it. The
// control is a memory that does not know who opened a session.
import { join } from 'node:path'
import { Harness, memory as inMemory, type OpenOptions, type CompleteStore } from '../../src/index.ts'
import { directiveTool, memoryHooks, openMemory } from '../../src/memory/index.ts'
import { scripted } from '../../src/models/local/scripted.ts'
import type { Request } from '../../src/ports/model.ts'
import { storeWith } from '../../sim/store-with.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

const QUESTION = 'What is the staging password of the payroll server?'

/** As before there were owners. */
function withoutOwners(store: CompleteStore): CompleteStore {
  return storeWith(store, {
    card: async (session) => {
      const card = await store.card(session)
      if (card === null) return null
      const { owner: _owner, ...rest } = card
      return rest
    },
  })
}

type Try = {
  readonly name: string
  /** How the victim's session is opened, and what it learns besides the secret. */
  readonly victim: OpenOptions
  readonly attacker: OpenOptions
  readonly key?: string
  readonly teachesFirst?: boolean
}

function caseOf({ name, victim, attacker, key, teachesFirst = false }: Try): Case {
  return {
    name,
    attack: async (world: World) => {
      const store = inMemory()
      const file = join(world.root, 'learnings.db')
      const memory = openMemory({ file, store: world.defended ? store : withoutOwners(store) })
      const learning = (detail: string) => ({
        calls: [
          {
            tool: 'loop_directive',
            args: {
              outcome: 'sleep',
              summary: 'learned',
              learnings: [
                { kind: 'lesson', title: 'Staging password of the payroll server', detail, ...(key ? { key } : {}) },
              ],
            },
          },
        ],
      })
      const run = async (options: OpenOptions, detail: string | null, text: string): Promise<void> => {
        const sent: Request[] = []
        const replies = detail === null ? ['ok'] : [learning(detail), 'ok']
        let turn = 0
        const model = scripted((request) => {
          sent.push(request)
          return replies[turn++] ?? 'ok'
        })
        const tools = [directiveTool({ store })]
        const harness: Harness = new Harness({ model, store, tools, hooks: memoryHooks(memory, { timeoutMs: 20_000 }) })
        try {
          await (await harness.open(options)).run(text)
        } finally {
          await harness.close()
        }
        if (detail === null) world.shown += JSON.stringify(sent.map(({ messages }) => messages))
      }
      if (teachesFirst) await run(attacker, 'I do not know it.', 'Learn.')
      await run(victim, `It is ${world.secret}.`, 'Learn it.')
      await run(attacker, null, QUESTION)
      await memory.close()
      await store.close()
    },
    harmed: ({ shown, secret }) => shown.includes(secret),
  }
}

const ann = { metadata: { owner: 'ann' } }
const LOOKALIKES = ['Ann', 'ann.', 'ann ', 'аnn', 'ann\u200b', 'ANN', 'ann/', 'ann%', '_nn', 'ann\\']

export const owners: Row = {
  row: 125,
  title: 'memory of another owner',
  cases: [
    caseOf({ name: 'another owner asks', victim: ann, attacker: { metadata: { owner: 'bob' } } }),
    caseOf({ name: 'a session without an owner asks', victim: ann, attacker: {} }),
    caseOf({
      name: 'an owner asks what a session without one taught',
      victim: {},
      attacker: { metadata: { owner: 'bob' } },
    }),
    caseOf({
      name: 'another owner asks under the same key',
      victim: ann,
      attacker: { metadata: { owner: 'bob' } },
      key: 'k',
    }),
    caseOf({
      name: 'a label says that it is the other owner',
      victim: ann,
      attacker: { metadata: { owner: 'bob' }, labels: { owner: 'ann' } },
    }),
    caseOf({ name: 'only a label names the owner', victim: ann, attacker: { labels: { owner: 'ann' } } }),
    ...LOOKALIKES.map((owner) =>
      caseOf({
        name: `an owner whose name looks like it: ${JSON.stringify(owner)}`,
        victim: ann,
        attacker: { metadata: { owner } },
      }),
    ),
  ],
}
