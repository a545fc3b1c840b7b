// Row 100: a program that finds the sessions of another one in a store they share, and drives them by whatever verb it has. Without the
// defence it says that it is that program.
import { z } from 'zod'
import { defineTool, Harness, type HarnessOptions, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { serve } from '../../src/server/index.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'
import { DueLoop, lookAt, takeDueSessions } from '../../src/worker.ts'

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({}),
  effect: 'once',
  approval: 'ask',
  execute: () => 'paid',
})

type Scene = {
  readonly store: CompleteStore
  /** The session of the other program: a person has allowed its call, and nobody has run it yet. */
  readonly session: string
  readonly wrong: Harness
  /** What the wrong program's model was shown. */
  readonly shown: string[]
  before: readonly string[]
}

const scenes = new WeakMap<World, Scene>()

async function typesIn(store: CompleteStore, session: string): Promise<readonly string[]> {
  return (await store.read(session, 0)).events.map(({ type }) => type)
}

/** Events that only a driver writes. */
const DRIVEN: ReadonlySet<string> = new Set([
  'agent.tool_result',
  'model.started',
  'agent.tool_use',
  'run.settled',
  'session.closed',
])

type Owner = { readonly name: string; readonly program?: string }
const OWNERS: readonly Owner[] = [{ name: 'named', program: 'billing' }, { name: 'nameless' }]

async function setUp(world: World, owner: Owner, more: Partial<HarnessOptions> = {}): Promise<Scene> {
  const store = memory()
  const own = new Harness({
    model: scripted([{ calls: [{ tool: 'pay', args: {} }] }]),
    tools: [pay],
    store,
    ...(owner.program === undefined ? {} : { program: owner.program }),
  })
  const { sessionId: session, pending } = await own.run('My account is 4711. Pay.')
  await own.close()
  const [call] = pending
  const records = new Harness({
    model: scripted([]),
    store,
    worker: { drives: false },
    program: ['billing', 'unnamed'],
  })
  const decision = { callId: call?.callId ?? '', digest: call?.digest ?? '', allow: true, by: 'ana' }
  await records.session(session).decide(decision)
  await records.close()
  const shown: string[] = []
  const model = scripted((request) => {
    shown.push(JSON.stringify(request.messages))
    return { text: 'done' }
  })
  const program = world.defended
    ? owner.program === undefined
      ? undefined
      : 'other'
    : ['other', owner.program ?? 'unnamed']
  const wrong = new Harness({ model, store, ...more, ...(program === undefined ? {} : { program }) })
  world.defer(async () => {
    await wrong.close()
    await store.close()
  })
  const scene: Scene = { store, session, wrong, shown, before: await typesIn(store, session) }
  scenes.set(world, scene)
  return scene
}

type Driver = {
  readonly name: string
  readonly drive: (scene: Scene) => Promise<unknown>
  readonly more?: Partial<HarnessOptions>
}

const quiet = (work: Promise<unknown>): Promise<unknown> => work.catch(() => null)
/** What a verb began in the background. */
const settled = async ({ wrong }: Scene): Promise<void> => void (await wrong.work({ idleMs: 30 }))

const DRIVERS: readonly Driver[] = [
  { name: 'wakes it', drive: ({ wrong, session }) => quiet(wrong.work({ session })) },
  { name: 'looks at it', drive: ({ wrong, session }) => lookAt(wrong, session, false) },
  { name: 'looks at it alone', drive: ({ wrong, session }) => lookAt(wrong, session, true) },
  {
    name: 'takes what is due and looks at it',
    drive: async ({ wrong }) => {
      for (const [session, claim] of await takeDueSessions(wrong, { limit: 5 }))
        await lookAt(wrong, session, false, claim)
    },
  },
  {
    name: 'takes it by its name',
    drive: async ({ wrong, session }) => {
      for (const [each, claim] of await takeDueSessions(wrong, { limit: 1, among: [session] }))
        await lookAt(wrong, each, false, claim)
    },
  },
  { name: 'works on whatever is due', drive: ({ wrong }) => wrong.work({ idleMs: 60 }) },
  {
    name: 'works on what is due of an agent of that name',
    drive: ({ wrong }) => wrong.work({ idleMs: 60, agents: ['default'] }),
  },
  { name: 'runs it', drive: ({ wrong, session }) => quiet(wrong.session(session).run()) },
  {
    name: 'runs it with a message',
    drive: ({ wrong, session }) => quiet(wrong.session(session).run('Tell me your account.')),
  },
  {
    name: 'streams it',
    drive: ({ wrong, session }) => quiet(wrong.session(session).stream('Tell me your account.').result),
  },
  {
    name: 'sends it a message',
    drive: async (scene) => {
      await scene.wrong.session(scene.session).send('Tell me your account.')
      await settled(scene)
    },
  },
  {
    name: 'steers it',
    drive: async (scene) => {
      await scene.wrong.session(scene.session).send([{ type: 'message', input: 'Tell me your account.' }])
      await settled(scene)
    },
  },
  {
    name: 'stops it',
    drive: async (scene) => {
      await scene.wrong.session(scene.session).interrupt('stop')
      await settled(scene)
    },
  },
  { name: 'closes it', drive: ({ wrong, session }) => quiet(wrong.session(session).close()) },
  {
    name: 'has a due loop of its own',
    drive: async ({ wrong, store }) => {
      const look = async (session: string, alone: boolean) => (await lookAt(wrong, session, alone)).seen
      const loop = new DueLoop({ store, width: 4, idleMs: 60, driving: () => 0, look, report: () => {} })
      await loop.done
    },
  },
  {
    name: 'is asked to over HTTP',
    drive: async (scene) => {
      const server = await serve({ harness: scene.wrong, inspector: false })
      const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
      const path = `http://localhost/v1/sessions/${scene.session}`
      for (const [verb, body] of [
        ['wake', {}],
        ['messages', { input: 'Tell me your account.' }],
      ] as const)
        await server.fetch(new Request(`${path}/${verb}`, { method: 'POST', headers, body: JSON.stringify(body) }))
      await settled(scene)
      await server.close()
    },
  },
]

/** Only of a program with a name: another one may not go on with a copy of its session, nor start children below it. */
const NAMED_ONLY: readonly Driver[] = [
  {
    name: 'forks it and goes on there',
    drive: ({ wrong, session }) =>
      quiet(
        wrong
          .session(session)
          .fork()
          .then((fork) => fork.run('Tell me your account.')),
      ),
  },
  {
    name: 'starts a child that has read it',
    more: { subagents: true },
    drive: async (scene) => {
      await quiet(scene.wrong.session(scene.session).spawn('subagent', 'Tell me the account.', { fork: true }))
      await settled(scene)
    },
  },
]

function caseOf(owner: Owner, { name, drive, more }: Driver): Case {
  return {
    name: `a program ${name}, which is a ${owner.name} one's`,
    attack: async (world) => drive(await setUp(world, owner, more)),
    harmed: async (world) => {
      const scene = scenes.get(world)
      if (!scene) return false
      const after = (await typesIn(scene.store, scene.session)).slice(scene.before.length)
      return scene.shown.length > 0 || after.some((type) => DRIVEN.has(type))
    },
  }
}

export const foreignSessions: Row = {
  row: 100,
  title: 'sessions of another program',
  cases: [
    ...OWNERS.flatMap((owner) => DRIVERS.map((driver) => caseOf(owner, driver))),
    ...OWNERS.slice(0, 1).flatMap((owner) => NAMED_ONLY.map((driver) => caseOf(owner, driver))),
  ],
}
