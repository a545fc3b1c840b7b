// A process that runs one session with hooks until it rests, for hooks-kill.test.ts, which kills it where it says it is. Every
// hook and handler that is entered adds a line to a file, so that what happened can be counted over all processes.
import { hash } from 'node:crypto'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { z } from 'zod'
import {
  defineTool,
  fallback,
  Fault,
  Harness,
  type Hook,
  type Request,
  scripted,
  sqlite,
  type Store,
} from '../../src/index.ts'
import type { OwnerWrite } from '../../src/ports/store.ts'
import { storeWith } from '../../sim/store-with.ts'

const [file = '', session = '', lines = '', place = '', effect = 'once', verdict = 'allow'] = process.argv.slice(2)

/** Appends the whole line at once, even beside other writers. The line survives a kill right after it. */
function note(line: string): void {
  const fd = openSync(lines, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT)
  writeSync(fd, `${line}\n`)
  closeSync(fd)
}

/** At the place where it is to be killed: prints the place and waits. */
function stopAt(here: string): Promise<void> | undefined {
  if (place !== here) return undefined
  process.stdout.write(`${here}\n`)
  // A promise alone keeps no process alive.
  return new Promise(() => setInterval(() => {}, 60_000))
}

/** The events of the commit after which it is killed, before anything can follow from it. */
const committed: Readonly<Record<string, (event: OwnerWrite['events'][number]) => boolean>> = {
  'intent written': ({ type }) => type === 'agent.tool_use',
  'denial written': (event) => event.type === 'agent.tool_result' && event.status === 'denied',
  'end written': ({ type }) => type === 'run.settled',
  'request written': ({ type }) => type === 'model.started',
}

function killable(inner: Store): Store {
  const commit: Store['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    const last = writes.some((write) => write.lane === 'owner' && write.events.some(committed[place] ?? (() => false)))
    if (last) await stopAt(place)
    return receipts
  }
  return storeWith(inner, { commit })
}

const step: Hook = {
  type: 'before_request',
  run: async ({ turn }) => {
    note(`step ${turn}`)
    await stopAt('in step hook')
    return { note: `It is turn ${turn}.`, allow: turn === 1 ? ['publish'] : [], route: 'second' }
  },
}

const hooks: readonly Hook[] = [
  ...(verdict === 'step' ? [step] : []),
  {
    type: 'user_prompt_submit',
    run: async () => {
      note('prompt')
      await stopAt('in prompt hook')
      return { context: 'It is Monday.' }
    },
  },
  {
    type: 'before_tool_call',
    run: async ({ call }) => {
      note(`before ${call}`)
      await stopAt('in before hook')
      return verdict === 'deny' ? { cancel: 'not today' } : undefined
    },
  },
  {
    type: 'after_tool_call',
    run: async ({ call }) => {
      note(`after ${call}`)
      await stopAt('in after hook')
    },
  },
  {
    type: 'run_end',
    run: async () => {
      note('end')
      await stopAt('in end hook')
    },
  },
]

const publish = defineTool({
  name: 'publish',
  description: 'publishes',
  input: z.object({}),
  effect: effect === 'read' ? 'read' : 'once',
  execute: (_args, { key }) => {
    note(`ran ${key.split(':').at(-1) ?? ''}`)
    return 'published'
  },
})

const inner = sqlite(file)
const store = killable(inner)
/** What is sent, but for its place in the log. */
function sentIn({ seq: _seq, session: _session, ...request }: Request): string {
  return hash('sha256', JSON.stringify(request))
}

const model = scripted(async (request) => {
  if (verdict === 'step') note(`asked ${sentIn(request)} ${request.route} ${request.allow}`)
  await stopAt('in model')
  return request.messages.some(({ role }) => role === 'tool') ? 'Done.' : { calls: [{ tool: 'publish' }] }
})
const harness = new Harness({
  model: fallback(
    { name: 'first', call: (...given) => model.call(...given) },
    { name: 'second', call: (...given) => model.call(...given) },
  ),
  tools: [publish],
  hooks,
  store,
  worker: { leaseMs: 1_000 },
})
const result = await started()
process.stdout.write(`${JSON.stringify({ status: result.status, calls: result.calls.map(({ status }) => status) })}\n`)
await harness.close()
await inner.close()

/** The first process opens the session; the next one goes on with it. */
async function started() {
  try {
    await harness.open({ id: session })
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return harness.session(session).run()
  }
  return harness.session(session).run('Publish it.')
}
