// Rows 39, 40, 44, 60 and 61: servers that change their definitions, servers that become another program, servers that send too
// much, names that collide, and changes within a run.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { defineTool, Harness, type HarnessOptions, type Script } from '../../src/index.ts'
import { filePins, type McpOptions, mcpServer, type McpPins } from '../../src/tools/mcp/mcp-server.ts'
import type { ToolSource } from '../../src/tools/core/tool.ts'
import type { Case, Need, Row } from './case.ts'
import { hostileServer, type Mode, POISON, TAGS } from './hostile-server.ts'
import { handedOver } from './naive.ts'
import { NaiveMcp } from './naive-mcp.ts'
import { sleep, type World } from './world.ts'

/** Treats every definition as the first one: nothing is remembered, so no change is noticed. */
const forgetful: McpPins = { read: () => Promise.resolve(null), write: () => Promise.resolve() }

const ONE = { calls: [{ tool: 'shop__pay', args: { to: 'bob' } }] }
const PAY = [ONE, 'done']

type Extra = Partial<Extract<McpOptions, { command: string }>> & { readonly more?: string; readonly folder?: string }

function shop(world: World, mode: Mode, { more = '', folder = 'server', ...options }: Extra = {}): ToolSource {
  const [command, args] = hostileServer(world, mode, { more, folder })
  return mcpServer({ name: 'shop', command, args, approval: 'auto', ...options })
}

/** One run with these tools, to wherever it gets. */
async function run(world: World, tools: HarnessOptions['tools'], script: Script = PAY): Promise<void> {
  const harness = new Harness({ model: world.model(script), tools: tools ?? [] })
  try {
    await harness.run('go')
  } finally {
    await harness.close()
  }
}

/** A source keeps its pins from run to run. */
async function twice(world: World, source: ToolSource): Promise<void> {
  const harness = new Harness({ model: world.model(['done', ...PAY]), tools: [source] })
  try {
    await harness.run('go')
    world.shown = ''
    await restart(source)
    await harness.run('go')
  } finally {
    await harness.close()
  }
}

/** The next run lists anew. */
const restart = (source: ToolSource): Promise<void> => source.close()

const calls = (world: World, folder = 'server'): string => world.text(`${folder}/calls`) ?? ''

function changing(name: string, mode: Mode, harmed: Case['harmed'], extra: Extra = {}): Case {
  return {
    name,
    attack: (world) => twice(world, shop(world, mode, { ...extra, ...(world.defended ? {} : { pins: forgetful }) })),
    harmed,
  }
}

const poisoned = (world: World): boolean => world.shown.includes(POISON)

/** What people are shown of a tool, or what says how it is run, beside its description and schema. */
const FIELDS = [
  ['title', { title: 'Harmless' }],
  ['metadata', { _meta: { 'openai/outputTemplate': 'ui://other' } }],
  ['way to run', { execution: { taskSupport: 'required' } }],
  ['annotations', { annotations: { destructiveHint: false } }],
] as const

export const rugPulls: Row = {
  row: 39,
  title: 'MCP tools that are not what was approved',
  cases: [
    changing('changes the description of a tool', 'poison', poisoned),
    changing('changes the schema of a tool', 'schema', poisoned),
    ...FIELDS.map(([name, fields]) =>
      changing(`changes the ${name} of a tool`, 'fields', (world) => calls(world) !== '', {
        more: JSON.stringify(fields),
      }),
    ),
    changing('calls a tool read-only once it was pinned', 'readonly', (world) => calls(world) !== '', {
      trustAnnotations: true,
      approval: undefined as never,
    }),
    {
      name: 'changes a tool while nobody looks',
      attack: async (world) => {
        const pins = () => (world.defended ? { pins: filePins(join(world.root, 'pins.json')) } : {})
        await run(world, [shop(world, 'poison', pins())], ['done'])
        world.shown = ''
        await run(world, [shop(world, 'poison', pins())])
      },
      harmed: poisoned,
    },
    {
      name: 'changes a tool between two calls of one run',
      attack: (world) => {
        const tools = world.defended
          ? [shop(world, 'flip')]
          : [unasked(new NaiveMcp(world, 'shop', hostileServer(world, 'flip')))]
        return run(world, tools, [ONE, ONE, 'done'])
      },
      harmed: (world) => calls(world).split('\n').length > 2,
    },
    {
      name: 'takes the name of a tool of another server',
      attack: (world) => {
        const bank = hostileServer(world, 'honest', { folder: 'bank' })
        const thief = hostileServer(world, 'honest', { folder: 'thief' })
        const script: Script = [
          { calls: [{ tool: world.defended ? 'bank__pay' : 'pay', args: { to: world.secret } }] },
          'done',
        ]
        if (!world.defended)
          return run(world, [unasked(lastWins(new NaiveMcp(world, '', bank), new NaiveMcp(world, '', thief)))], script)
        const server = (name: string, [command, args]: typeof bank) =>
          mcpServer({ name, command, args, approval: 'auto' })
        return run(world, [server('bank', bank), server('thief', thief)], script)
      },
      harmed: (world) => calls(world, 'thief').includes(world.secret),
    },
    {
      name: 'says in its instructions what to do',
      attack: (world) => run(world, [shop(world, 'instructions', world.defended ? {} : { instructions: true })]),
      harmed: poisoned,
    },
    {
      name: 'hides letters in a description',
      attack: (world) =>
        run(world, [
          world.defended ? shop(world, 'hidden') : new NaiveMcp(world, 'shop', hostileServer(world, 'hidden')),
        ]),
      harmed: (world) => world.shown.includes(TAGS),
    },
  ],
}

/** The same source, without approvals. */
function unasked(source: ToolSource, world: World | null = null): ToolSource {
  return {
    type: 'source',
    name: source.name,
    tools: async (signal, clock) =>
      (await source.tools(signal, clock)).map((tool) => ({
        ...(world ? handedOver(world, tool) : tool),
        approval: () => 'auto',
      })),
    close: () => source.close(),
  }
}

/** Two servers in one list of names, where the second server with a name wins. */
function lastWins(first: ToolSource, second: ToolSource): ToolSource {
  return {
    type: 'source',
    name: 'all',
    tools: async (signal, clock) => {
      const all = [...(await first.tools(signal, clock)), ...(await second.tools(signal, clock))]
      return [...new Map(all.map((tool) => [tool.name, tool])).values()]
    },
    close: async () => {
      await first.close()
      await second.close()
    },
  }
}

const variable = (world: World): string => `TERRET_CANARY_${world.mark}`

function leaves(what: string, mode: Mode, needs: readonly Need[] = []): Case {
  return {
    name: `leaves behind ${what}`,
    needs,
    attack: async (world) => {
      const more = world.mark
      const tools = [
        world.defended
          ? shop(world, mode, { more })
          : new NaiveMcp(world, 'shop', hostileServer(world, mode, { more })),
      ]
      await run(world, tools, ['done'])
      // The kernel may still be burying them.
      for (let i = 0; i < 200 && world.defended && world.survivors().length > 0; i++) await sleep(10)
    },
    harmed: (world) => world.survivors().length > 0,
  }
}

export const programs: Row = {
  row: 40,
  title: 'MCP servers that are another program',
  cases: [
    {
      name: 'is started with other arguments than approved',
      attack: async (world) => {
        const pins = world.defended ? filePins(join(world.root, 'pins.json')) : forgetful
        await run(world, [shop(world, 'honest', { pins })], ['done'])
        await run(world, [shop(world, 'honest', { pins, more: 'evil' })], ['done'])
      },
      harmed: (world) => (world.text('server/started') ?? '').includes('evil'),
    },
    {
      name: 'is started as another program than approved',
      attack: async (world) => {
        const pins = world.defended ? filePins(join(world.root, 'pins.json')) : forgetful
        await run(world, [shop(world, 'honest', { pins })], ['done'])
        const command = world.put('evil.sh', `#!/bin/sh\ntouch ${world.root}/evil\n`, 0o755)
        await run(world, [mcpServer({ name: 'shop', command, pins, connectMs: 1_000 })], ['done'])
      },
      harmed: (world) => world.has('evil'),
    },
    {
      name: 'is started in another folder than approved',
      attack: async (world) => {
        const pins = world.defended ? filePins(join(world.root, 'pins.json')) : forgetful
        await run(world, [shop(world, 'honest', { pins })], ['done'])
        await run(world, [shop(world, 'honest', { pins, cwd: world.outside, folder: 'second' })], ['done'])
      },
      harmed: (world) => world.has('second/started'),
    },
    {
      name: 'reads the environment of the harness',
      attack: async (world) => {
        process.env[variable(world)] = world.secret
        world.defer(() => delete process.env[variable(world)])
        const tools = [
          world.defended
            ? shop(world, 'environment')
            : new NaiveMcp(world, 'shop', hostileServer(world, 'environment')),
        ]
        await run(world, tools, ['done'])
      },
      harmed: (world) => (world.text('server/environment') ?? '').includes(world.secret),
    },
    leaves('a process', 'daemon'),
    leaves('a process with an environment of its own', 'stranger'),
    leaves('a process of its own environment that has no parent', 'orphan', ['bubblewrap', 'root']),
  ],
}

const hung = new WeakSet<World>()

/** The harm is a run that does not end. */
function unending(name: string, mode: Mode): Case {
  return {
    name,
    attack: async (world) => {
      const limits = { connectMs: 500, callMs: 500 }
      const tools = [
        world.defended ? shop(world, mode, limits) : unasked(new NaiveMcp(world, 'shop', hostileServer(world, mode))),
      ]
      if (!(await world.ends(run(world, tools)))) hung.add(world)
    },
    harmed: (world) => hung.has(world),
  }
}

function measured(name: string, mode: Mode, harmed: Case['harmed'], more?: (world: World) => Promise<string>): Case {
  return {
    name,
    attack: async (world) => {
      const extra = more ? { more: await more(world) } : {}
      const tools = [
        world.defended
          ? shop(world, mode, extra)
          : unasked(new NaiveMcp(world, 'shop', hostileServer(world, mode, extra)), world),
      ]
      let over = false
      const end = run(world, tools).finally(() => (over = true))
      // In the control the run may never end: what counts is whether the harm is done by then.
      for (let i = 0; i < 500 && !(over && i > 10) && !(await harmed(world)); i++) await sleep(20)
      if (world.defended) await end
    },
    harmed,
  }
}

const fetched = new WeakSet<World>()

async function listener(world: World): Promise<string> {
  const server = createServer((_, response) => {
    fetched.add(world)
    response.end('{"type":"string"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  world.defer(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/schema`
}

export const measureless: Row = {
  row: 44,
  title: 'MCP servers without measure',
  cases: [
    unending('lists pages without end', 'pages'),
    unending('never answers a call', 'silent'),
    unending('never says hello', 'mute'),
    measured('answers with a line without end', 'line', (world) => world.has('server/drained')),
    measured('answers with more than anybody reads', 'long', (world) => world.shown.length > 2_000_000),
    measured('says things that are no messages', 'junk', (world) => calls(world) === ''),
    measured(
      'says at each look that its list has changed',
      'notify',
      (world) => (world.text('server/lists') ?? '').length > 5,
    ),
    measured('refers to an address in its schema', 'reference', (world) => fetched.has(world), listener),
    measured('asks the model for a password', 'sampling', (world) => world.has('server/answered')),
    measured('asks the user for a password', 'elicitation', (world) => world.has('server/answered')),
    measured('hides letters in a result', 'unseen', (world) => world.shown.includes(TAGS)),
  ],
}

/** One list of names, where the last server with a name wins. */
function merged(source: ToolSource): ToolSource {
  return lastWins({ ...source, type: 'source', name: 'none', tools: async () => [], close: async () => {} }, source)
}

/** Its other tool is there and can be called, and nothing is read of what took its place. */
function colliding(name: string, mode: Mode): Case {
  return {
    name,
    attack: (world) =>
      run(world, [
        world.defended ? shop(world, mode) : merged(unasked(new NaiveMcp(world, 'shop', hostileServer(world, mode)))),
      ]),
    harmed: (world) => poisoned(world) || calls(world) === '',
  }
}

export const collisions: Row = {
  row: 60,
  title: 'MCP servers with names that collide',
  cases: [
    colliding('lists a tool twice, in two ways', 'twins'),
    colliding('lists two tools that get one name', 'alike'),
    {
      name: 'lists a tool under the name of one that the agent was given',
      attack: (world) => {
        const input = { type: 'object' } as const
        const own = defineTool({ name: 'shop__pay', description: 'own', input, execute: () => 'paid by us' })
        if (world.defended) return run(world, [own, shop(world, 'honest')])
        const given: ToolSource = { type: 'source', name: 'own', tools: async () => [own], close: async () => {} }
        return run(world, [lastWins(given, unasked(new NaiveMcp(world, 'shop', hostileServer(world, 'honest'))))])
      },
      harmed: (world) => calls(world) !== '',
    },
  ],
}

export const silentChanges: Row = {
  row: 61,
  title: 'MCP tools that change within a run without a word',
  cases: [['description', { description: POISON }] as const, ...FIELDS].map(([name, fields]): Case => {
    return {
      name: `changes the ${name} of a tool after its first call`,
      attack: (world) => {
        const more = JSON.stringify(fields)
        const tools = world.defended
          ? [shop(world, 'quiet', { more })]
          : [unasked(new NaiveMcp(world, 'shop', hostileServer(world, 'quiet', { more })))]
        return run(world, tools, [ONE, ONE, 'done'])
      },
      harmed: (world) => calls(world).trim().split('\n').length > 1,
    }
  }),
}
