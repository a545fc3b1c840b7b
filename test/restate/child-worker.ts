// A worker process for the tests of terret/restate: it drives what Restate wakes in a file. The first word of a session's first message
// says what its agent does: `count 5` calls a tool five times, `remind` sleeps for three seconds, `ask` waits for an answer from
// outside, `hang` calls it once and then waits in a tool until the file `go` is there, `die` kills the process, anything else is answered.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool, Harness, output, scripted, type Step } from '../../src/index.ts'
import { restate, type RestateOptions } from '../../src/restate/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

export type Setup = Omit<RestateOptions, 'harness' | 'store' | 'onError'> & {
  readonly file: string
  /** A line for each call that ran: session, number, process. */
  readonly journal: string
  readonly go?: string
  readonly leaseMs?: number
  /** The clock of this process is wrong by so much. */
  readonly shiftMs?: number
  /** It has this agent besides its own. */
  readonly agent?: string
}

const setup = JSON.parse(process.argv[2] ?? '{}') as Setup
const { file, journal, go = '', leaseMs = 10_000, shiftMs = 0, agent, ...rest } = setup

if (shiftMs !== 0) {
  const Right = Date
  const now = (): number => Right.now() + shiftMs
  globalThis.Date = new Proxy(Right, {
    construct: (target, args: readonly unknown[]) =>
      Reflect.construct(target, args.length > 0 ? args : [now()]) as Date,
    get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
  })
}

const count = defineTool({
  name: 'count',
  description: 'writes down who called it',
  input: z.object({ n: z.number() }),
  effect: 'once',
  execute: async ({ n }, { session }) => {
    appendFileSync(journal, `${session} ${n} ${process.pid}\n`)
    await sleep(20)
    return 'counted'
  },
})

const remind = defineTool({
  name: 'remind',
  description: 'asks to be woken',
  input: z.object({}),
  effect: 'read',
  execute: () => {
    const wake = { type: 'wake.scheduled', due: Date.now() + 3_000, reason: 'time', key: 'time' } as const
    return output({ content: 'asked', follows: [wake] })
  },
})

const ask = defineTool({ name: 'ask', description: 'asks a person', input: z.object({}) })

const hang = defineTool({
  name: 'hang',
  description: 'waits for a file',
  input: z.object({}),
  effect: 'idempotent',
  execute: async (_args, { session, signal }) => {
    appendFileSync(journal, `${session} hang ${process.pid}\n`)
    while (!existsSync(go) && !signal.aborted) await sleep(20)
    signal.throwIfAborted()
    return 'waited'
  },
})

const die = defineTool({
  name: 'die',
  description: 'kills its process',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: async ({ n }, { session }) => {
    appendFileSync(journal, `${session} die${n} ${process.pid}\n`)
    process.kill(process.pid, 'SIGKILL')
    await sleep(60_000)
    return 'never'
  },
})

const model = scripted(({ messages }): Step => {
  const [first] = messages
  const text = first?.role === 'user' && first.parts[0]?.type === 'text' ? first.parts[0].text : ''
  const [word, times = '1'] = text.split(' ')
  const results = messages.filter(({ role }) => role === 'tool').length
  if (word === 'count' && results < Number(times)) return { calls: [{ tool: 'count', args: { n: results } }] }
  if (word === 'die') return { calls: [{ tool: 'die', args: { n: messages.length } }] }
  if ((word === 'remind' || word === 'ask') && results === 0) return { calls: [{ tool: word }] }
  // After a whole turn: a session that lost its worker before that is driven while no other such session is.
  if (word === 'hang' && results < 2)
    return { calls: [results === 0 ? { tool: 'count', args: { n: 0 } } : { tool: 'hang' }] }
  return `done ${messages.length}`
})

const tools = [count, remind, ask, hang, die]
const store = sqlite(file)
const harness = new Harness({
  model,
  tools,
  store,
  secrets: {},
  worker: { leaseMs, lingerMs: 0, onError: (session, error) => say(`look ${session}`, error) },
  ...(agent === undefined ? {} : { subagents: { [agent]: { description: 'another', model, tools } } }),
})

function say(where: string, error: unknown): void {
  process.stdout.write(`${where}: ${error instanceof Error ? error.message : String(error)}\n`)
}

const worker = await restate({ ...rest, harness, store, onError: say })
process.stdout.write(`up ${worker.url}\n`)
process.once('SIGTERM', () => {
  const leave = async (): Promise<void> => {
    await harness.close()
    await worker.close()
    await store.close()
    process.stdout.write('closed\n')
  }
  leave().catch((error: unknown) => say('close', error))
})
