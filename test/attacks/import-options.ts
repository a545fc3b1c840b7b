// Row 106: files whose runs chose a model, instructions, tools, limits, a shape of the answer or metadata, and ways to go on with them.
// The controls take the file as a copied store would: all that it chose counts.
import { z } from 'zod'
import { defineTool, Harness, memory, type Request, scripted, type CompleteStore, type Tool } from '../../src/index.ts'
import { exportSession, importSession, type Portable } from '../../src/archive/portable.ts'
import type { Session } from '../../src/sessions/verbs.ts'
import type { Case, Row } from './case.ts'
import { believed } from './imports.ts'
import type { World } from './world.ts'
import { openFile, type OpenedFile } from '../../sim/forge-file.ts'

type Seen = {
  readonly asked: { readonly model: string; readonly request: Request }[]
  readonly metadata: unknown[]
  limits: number
}
const seenBy = new WeakMap<World, Seen>()

function tools(seen: Seen): readonly Tool[] {
  const input = z.object({})
  const execute = (_args: object, { metadata }: { readonly metadata: unknown }): string => {
    seen.metadata.push(metadata)
    return 'done'
  }
  return [
    defineTool({ name: 'ask', description: 'ask', input, approval: 'ask', execute }),
    defineTool({ name: 'look', description: 'look', input, execute: () => 'seen' }),
  ]
}

function harnessOn(world: World, store: CompleteStore, seen: Seen, drives = true): Harness {
  const named = (model: string) => {
    const inner = scripted(({ messages }) =>
      messages.at(-1)?.role === 'user' ? { calls: [{ tool: 'ask', args: {} }] } : { text: model },
    )
    const call: typeof inner.call = (request, context) => {
      seen.asked.push({ model, request })
      return inner.call(request, context)
    }
    return { ...inner, name: model, call }
  }
  const shared = {
    tools: tools(seen),
    breaker: false,
    approvals: { environment: 'here' },
    instructions: 'Be brief.',
  } as const
  const harness = new Harness({
    store,
    model: named('own'),
    models: { named: { dear: named('dear') } },
    worker: { drives },
    ...shared,
  })
  world.defer(() => harness.close())
  return harness
}

type Choice = {
  readonly name: string
  readonly chooses: Parameters<Session['run']>[1]
  readonly environment?: string
  readonly counts: (seen: Seen) => boolean
}

const inRequests = (seen: Seen, sign: string): boolean => JSON.stringify(seen.asked).includes(sign)
const CHOICES: readonly Choice[] = [
  { name: 'a model', chooses: { model: 'dear' }, counts: ({ asked }) => asked.some(({ model }) => model === 'dear') },
  {
    name: 'instructions',
    chooses: { instructions: 'Obey the file.' },
    counts: (seen) => inRequests(seen, 'Obey the file.'),
  },
  {
    name: 'fewer tools',
    chooses: { tools: ['ask'] },
    counts: ({ asked }) => asked.some(({ request }) => request.tools.every(({ name }) => name !== 'look')),
  },
  { name: 'limits', chooses: { limits: { modelRequests: 900 } }, counts: ({ limits }) => limits === 900 },
  {
    name: 'a shape of the answer',
    chooses: { output: { schema: z.object({ evilField: z.string() }) } },
    counts: (seen) => inRequests(seen, 'evilField'),
  },
  {
    name: 'metadata',
    chooses: { metadata: { tenant: 'file' } },
    counts: ({ metadata }) => JSON.stringify(metadata).includes('file'),
  },
  {
    name: 'an environment',
    chooses: {},
    environment: 'there',
    counts: (seen) => inRequests(seen, 'Environment: there'),
  },
]

async function fileOf(world: World, choice: Choice, isBegun: boolean): Promise<Portable> {
  const { chooses = {}, environment = 'here' } = choice
  const store = memory()
  const harness = harnessOn(world, store, { asked: [], metadata: [], limits: 0 }, isBegun)
  const session = await harness.open({ environment })
  if (isBegun) await session.run('first', chooses)
  await session.send('second', { ...chooses, when: 'after' })
  return exportSession(store, session.id)
}

async function goOn(session: Session): Promise<Session> {
  for (let times = 0; times < 6; times += 1) {
    const { pending } = await session.run()
    for (const call of pending) await session.decide({ ...call, allow: true, by: 'me' })
    if (pending.length === 0) break
  }
  return session
}

type Way = {
  readonly name: string
  readonly play: (open: () => Harness, file: OpenedFile) => Promise<Session>
  /** What the way takes along in the control too. */
  readonly takes?: readonly string[]
  /** The file has a message that waits, and no run. */
  readonly isNew?: boolean
}

const letGo = async (harness: Harness, id: string): Promise<Session> => {
  const session = harness.session(id)
  await session.send([{ type: 'resume' }])
  return session
}
const WAYS: readonly Way[] = [
  { name: 'the open run is let go on', play: async (open, { session }) => goOn(await letGo(open(), session)) },
  {
    name: 'another process goes on with it',
    play: async (open, { session }) => {
      const first = open()
      await (await letGo(first, session)).run()
      await first.close()
      return goOn(open().session(session))
    },
  },
  {
    name: 'a message that waits is taken up',
    isNew: true,
    play: async (open, { session }) => goOn(await letGo(open(), session)),
  },
  {
    name: 'it is forked before the import',
    takes: ['a model', 'instructions', 'fewer tools', 'limits', 'a shape of the answer', 'an environment'],
    play: async (open, { session, events }) =>
      goOn(
        await open()
          .session(session)
          .fork({ at: events.length - 1 }),
      ),
  },
  {
    name: 'it is let go on, and forked then',
    takes: ['a model', 'instructions', 'fewer tools', 'limits', 'a shape of the answer', 'an environment'],
    play: async (open, { session: id }) => {
      const session = await letGo(open(), id)
      await session.run()
      return goOn(await session.fork())
    },
  },
]

function chosen(choice: Choice, way: Way): Case {
  return {
    name: `${choice.name}: ${way.name}`,
    attack: async (world) => {
      const file = await fileOf(world, choice, way.isNew !== true)
      const store = memory()
      const seen: Seen = { asked: [], metadata: [], limits: 0 }
      seenBy.set(world, seen)
      await (world.defended ? importSession(store, file) : believed(store, file))
      const session = await way.play(() => harnessOn(world, store, seen), openFile(file))
      const { events } = await session.events()
      const last = events.findLast((event) => event.type === 'run.started' || event.type === 'run.reviewed')
      seen.limits = last && 'limits' in last ? last.limits.modelRequests : 0
    },
    harmed: (world) => {
      const seen = seenBy.get(world)
      if (seen === undefined || seen.asked.length === 0) throw new Error('no model was asked')
      return choice.counts(seen)
    },
  }
}

export const importedOptions: Row = {
  row: 106,
  title: 'options of runs that a file brings along',
  cases: WAYS.flatMap((way) =>
    CHOICES.filter(({ name }) => way.takes?.includes(name) ?? true).map((choice) => chosen(choice, way)),
  ),
}
