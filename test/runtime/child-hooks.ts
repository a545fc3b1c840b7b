// A process that runs sessions with hooks until they rest, for hooks-kill.test.ts, which kills it when each session is where it is to be
// killed. Each session has a store and a harness of its own. Every hook and handler that is entered adds a line to the session's file,
// so that what happened can be counted over all processes.
import { hash } from 'node:crypto'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { z } from 'zod'
import {
  defineTool,
  fallback,
  Harness,
  type Hook,
  type Model,
  type Request,
  scripted,
  sqlite,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import type { OwnerWrite } from '../../src/ports/store.ts'
import { storeWith } from '../../sim/store-with.ts'

/** One session, and the place where its process is to be killed. */
export type Played = {
  readonly file: string
  readonly session: string
  readonly lines: string
  readonly place: string
  readonly effect: 'read' | 'once'
  readonly verdict: 'allow' | 'deny' | 'step'
}
/** What the process prints of each session, a line each: where it stopped, or how its run ended. */
export type Printed = { readonly file: string } & (
  | { readonly at: string }
  | { readonly status: string; readonly calls: readonly (string | null)[] }
)

async function play(played: Played): Promise<void> {
  const inner = sqlite(played.file)
  const model = modelFor(played)
  const harness = new Harness({
    model: fallback(
      { name: 'first', call: (...given) => model.call(...given) },
      { name: 'second', call: (...given) => model.call(...given) },
    ),
    tools: [publishFor(played)],
    hooks: hooksFor(played),
    store: killable(inner, played),
    worker: { leaseMs: 1_000 },
  })
  const { status, calls } = await started(harness, played.session)
  print({ file: played.file, status, calls: calls.map((call) => call.status) })
  await harness.close()
  await inner.close()
}

/** The first process opens the session; the next one goes on with it. */
async function started(harness: Harness, id: string) {
  if ((await harness.session(id).events({ limit: 1 })).events.length > 0) return harness.session(id).run()
  const session = await harness.open({ id })
  return session.run('Publish it.')
}

function print(printed: Printed): void {
  process.stdout.write(`${JSON.stringify(printed)}\n`)
}

/** Appends the whole line at once, even beside other writers. The line survives a kill right after it. */
function note({ lines }: Played, line: string): void {
  const fd = openSync(lines, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT)
  writeSync(fd, `${line}\n`)
  closeSync(fd)
}

/** At the place where it is to be killed: prints the place and waits. */
function stopAt({ file, place }: Played, here: string): Promise<void> | undefined {
  if (place !== here) return undefined
  print({ file, at: here })
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

function killable(inner: CompleteStore, played: Played): CompleteStore {
  const isLast = committed[played.place] ?? (() => false)
  const commit: CompleteStore['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    if (writes.some((write) => write.lane === 'owner' && write.events.some(isLast))) await stopAt(played, played.place)
    return receipts
  }
  return storeWith(inner, { commit })
}

function hooksFor(played: Played): readonly Hook[] {
  const { verdict } = played
  const step: Hook = {
    type: 'before_request',
    run: async ({ turn }) => {
      note(played, `step ${turn}`)
      await stopAt(played, 'in step hook')
      return { note: `It is turn ${turn}.`, allow: turn === 1 ? ['publish'] : [], route: 'second' }
    },
  }
  return [
    ...(verdict === 'step' ? [step] : []),
    {
      type: 'user_prompt_submit',
      run: async () => {
        note(played, 'prompt')
        await stopAt(played, 'in prompt hook')
        return { context: 'It is Monday.' }
      },
    },
    {
      type: 'before_tool_call',
      run: async ({ call }) => {
        note(played, `before ${call}`)
        await stopAt(played, 'in before hook')
        return verdict === 'deny' ? { cancel: 'not today' } : undefined
      },
    },
    {
      type: 'after_tool_call',
      run: async ({ call }) => {
        note(played, `after ${call}`)
        await stopAt(played, 'in after hook')
      },
    },
    {
      type: 'run_end',
      run: async () => {
        note(played, 'end')
        await stopAt(played, 'in end hook')
      },
    },
  ]
}

function publishFor(played: Played): Tool {
  return defineTool({
    name: 'publish',
    description: 'publishes',
    input: z.object({}),
    effect: played.effect,
    execute: (_args, { key }) => {
      note(played, `ran ${key.split(':').at(-1) ?? ''}`)
      return 'published'
    },
  })
}

function modelFor(played: Played): Model {
  return scripted(async (request) => {
    if (played.verdict === 'step') note(played, `asked ${sentIn(request)} ${request.route} ${request.allow}`)
    await stopAt(played, 'in model')
    return request.messages.some(({ role }) => role === 'tool') ? 'Done.' : { calls: [{ tool: 'publish' }] }
  })
}

/** What is sent, but for its place in the log. */
function sentIn({ seq: _seq, session: _session, ...request }: Request): string {
  return hash('sha256', JSON.stringify(request))
}

const [given = '[]'] = process.argv.slice(2)
await Promise.all((JSON.parse(given) as readonly Played[]).map(play))
