// Row 135: somebody else with a token of the same server, who tries every route with the ids of others, and another user of the machine
// who looks at the data folder. Without the defences the token reaches all sessions, and the files are made as programs make them.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Harness, memory, scripted, sqlite } from '../../src/index.ts'
import { cron, cronPlanner } from '../../src/cron/index.ts'
import { openInputHistory } from '../../src/cli/chat/input-history.ts'
import { findHome, makeHome } from '../../src/cli/state/cli-home.ts'
import { type MountedServer, serve } from '../../src/server/index.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import { ROUTES } from '../../src/server/wire-routes.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import type { Case, Row } from './case.ts'
import { sender } from './desk.ts'
import { scenario } from './scenario.ts'
import type { World } from './world.ts'

const TOKEN = 'o'.repeat(43)
const MISSING = 'ann:nothing'

type Answer = { readonly status: number; readonly text: string }
type Ask = (method: string, path: string, body?: object) => Promise<Answer>
type Learned = { asked: number; reads: string[]; tells: string[]; changes: string[] }

const learned = new WeakMap<World, Learned>()

function askWith(server: MountedServer, token: string): Ask {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) }
    const given = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const response = await server.fetch(new Request(`http://localhost${path}`, given))
    if (!response.headers.get('content-type')?.includes('event-stream'))
      return { status: response.status, text: await response.text() }
    // A stream has no end: what it begins with says enough.
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    const decoder = new TextDecoder()
    let text = ''
    for (let i = 0; i < 3; i++) {
      const late = new Promise<null>((done) => setTimeout(() => done(null), 100))
      const piece = await Promise.race([reader.read(), late])
      if (piece === null || piece.done) break
      text += decoder.decode(piece.value)
    }
    await reader.cancel()
    return { status: response.status, text }
  }
}

/** What is asked of each route about a session, beside its id. A route that is not here is asked without a body. */
function bodiesOf(id: string, callId: string): Readonly<Record<string, readonly object[]>> {
  const own = { sessionId: id }
  const decided = { callId, allow: true, digest: 'x' }
  return {
    open: [{ id }, { id, input: 'x' }],
    send: [{ input: 'x' }, { input: 'x', when: 'now' }],
    commands: [{ commands: [{ type: 'message', input: 'x' }] }, { commands: [{ type: 'cancel' }] }],
    answer: [
      { callId, content: 'x' },
      { callId, content: 'x', ...own },
    ],
    interrupt: [{}, { mode: 'pause' }],
    schedule: [{ inMs: 1 }],
    unschedule: [{ key: 'x' }],
    rename: [{ title: 'x' }],
    pursue: [{ description: 'x', rubric: 'x' }],
    wake: [{}],
    fork: [{}, { at: 1 }],
    whatIf: [{ at: 1 }, { at: 1, model: 'hostile' }],
    undo: [{}, { run: 3 }],
    pin: [{ text: 'x' }],
    close: [{}],
    decide: [decided, { ...decided, ...own }, { callId: 'budget', allow: true, usd: 5 }],
    streams: [{ sessions: { [id]: 0 }, cards: true, deltas: true }],
    letters: [],
    decideLetter: [{ lane: id, key: 'x', decision: 'drop' }],
    retryTrigger: [{}],
    dropTrigger: [{}],
    changeCron: ['on', 'off', 'run', 'remove'].map((action) => ({ action, session: id })),
  }
}

/** Every route, with this id in each place where an id can stand. */
async function tryAll(ask: Ask, id: string, own: string, callId: string): Promise<ReadonlyMap<string, Answer>> {
  const answers = new Map<string, Answer>()
  const at = encodeURIComponent(id)
  for (const [name, { method, path, role }] of Object.entries(ROUTES)) {
    if (role === 'signed') continue
    const whole = path.replace(':id', at).replace(':hash', 'a'.repeat(64)).replace(':seq', '2').replace(/:\w+/, at)
    const bodies: readonly (object | undefined)[] =
      method === 'POST' ? (bodiesOf(id, callId)[name] ?? [{}]) : [undefined]
    for (const [n, body] of bodies.entries()) answers.set(`${name} ${n}`, await ask(method, whole, body))
    // In the query, and in a body about a session of the caller.
    if (name === 'sessions')
      for (const field of ['root', 'parent', 'cursor', 'q'])
        answers.set(`${name} ${field}`, await ask(method, `${path}?${field}=${at}`))
    if (name === 'evalRun') answers.set('evalRun before', await ask(method, `/v1/evals/${own}?before=${at}`))
    if (name === 'decide' || name === 'answer')
      answers.set(
        `${name} within`,
        await ask('POST', `/v1/sessions/${own}/${name === 'decide' ? 'decisions' : 'answers'}`, {
          ...bodiesOf(id, callId)[name]?.[1],
        }),
      )
  }
  return answers
}

/** Ann's: a session with a call that waits, its copy, a cron job; and a delivery, which belongs to nobody. */
async function annWorks(world: World, server: MountedServer, harness: Harness): Promise<readonly string[]> {
  const { token } = JSON.parse(
    (await askWith(server, TOKEN)('POST', '/v1/tokens', { name: 'ann', role: 'operator', reach: 'own' })).text,
  ) as { readonly token: string }
  const ann = askWith(server, token)
  await ann('POST', '/v1/sessions', { id: 'ann:plans', input: `plans: ${world.secret}` })
  await harness.session('ann:plans').run()
  await ann('POST', '/v1/sessions/ann%3Aplans/fork', { id: 'ann:copy', at: 2 })
  const origin = { labels: { owner: 'ann' }, metadata: { owner: 'ann' } }
  const job = { name: 'daily', line: '0 3 * * *', prompt: world.secret, agent: 'default' }
  const made = await cron(harness, { prefix: 'ann:', origin }).add(job)
  const { sessionId } = await harness.trigger({ source: 'mail', label: 'mail', payload: world.secret })
  await harness.session(sessionId).run()
  return ['ann:plans', 'ann:copy', made.session, sessionId]
}

async function spy(world: World): Promise<void> {
  const store = completeStore(memory())
  const triggers = createTriggers({ models: [scripted(() => '{"action":"drop","reason":"x"}')], sources: { mail: {} } })
  const calls = [{ calls: [{ tool: 'send', args: { to: 'evil', text: world.secret } }] }, 'done']
  const harness = new Harness({
    model: world.model(calls),
    tools: [sender(world)],
    graphs: [cronPlanner()],
    triggers,
    store,
    secrets: {},
    worker: { drives: true },
  })
  const server = await serve({ harness, token: TOKEN, inspector: false })
  world.defer(async () => {
    await server.close()
    await harness.close()
  })
  const theirs = await annWorks(world, server, harness)
  const logs = async () =>
    JSON.stringify(await Promise.all(theirs.map(async (id) => (await store.card(id)) && store.read(id, 0))))
  const before = await logs()
  const found: Learned = { asked: 0, reads: [], tells: [], changes: [] }
  learned.set(world, found)
  for (const role of world.defended ? ['operator', 'approver', 'viewer'] : ['admin']) {
    const reach = world.defended ? 'own' : 'all'
    const made = await askWith(server, TOKEN)('POST', '/v1/tokens', { name: `eve-${role}`, role, reach })
    const eve = askWith(server, (JSON.parse(made.text) as { readonly token: string }).token)
    const opened = await eve('POST', '/v1/sessions', {})
    const { session: own = 'none' } = JSON.parse(opened.text) as { readonly session?: string }
    const { pending = [] } = JSON.parse((await eve('GET', '/v1/pending')).text) as {
      readonly pending?: readonly { readonly sessionId: string; readonly callId: string; readonly digest: string }[]
    }
    for (const { sessionId, callId, digest } of pending)
      await eve('POST', `/v1/sessions/${encodeURIComponent(sessionId)}/decisions`, { callId, digest, allow: true })
    if (pending.length > 0) await harness.session('ann:plans').run()
    const none = await tryAll(eve, MISSING, own, '5.0')
    for (const id of theirs) {
      const answers = await tryAll(eve, id, own, '5.0')
      found.asked += answers.size
      for (const [name, { status, text }] of answers) {
        const other = none.get(name)
        const plain = text.replaceAll(id, 'ID').replaceAll(encodeURIComponent(id), 'ID')
        const missing = other?.text.replaceAll(MISSING, 'ID').replaceAll(encodeURIComponent(MISSING), 'ID')
        if (text.includes(world.secret)) found.reads.push(`${role} ${name} ${id}`)
        if (status !== other?.status || (!VARIES.test(name) && timeless(plain) !== timeless(missing ?? '')))
          found.tells.push(`${role} ${name} ${id}: ${status} ${plain.slice(0, 200)} and ${missing?.slice(0, 200)}`)
      }
      // What was made under a name of one's own is no news.
      const listed = [...answers].filter(([name]) =>
        /^(sessions|pending|due|usage|cron|agents|health|metrics) 0/.test(name),
      )
      for (const [name, { text }] of listed)
        if (theirs.some((each) => text.includes(JSON.stringify(each)))) found.reads.push(`${role} ${name} lists ${id}`)
    }
  }
  const after = await logs()
  if (after !== before) found.changes.push('the logs are others')
  world.notes.push(...found.reads, ...found.tells, ...found.changes)
}

/** Answers about the caller's own sessions, which grow meanwhile. */
const VARIES = /^(sessions|pending|due|usage|cron|health|me|metrics|openapi|streams|open|import|agents) /
const timeless = (text: string): string => text.replace(/\d{13}/g, 'NOW')

const foundBy = (world: World): Learned => learned.get(world) ?? { asked: 0, reads: [], tells: [], changes: [] }

/** The data folder of a user, as the command line makes it, or as a program that gives no thought to it. */
async function dataFolder(world: World): Promise<readonly string[]> {
  chmodSync(world.root, 0o755)
  const folder = join(world.root, 'data')
  const made = world.defended ? 0o700 : 0o755
  // Somebody may have made it before, for everybody to read.
  mkdirSync(folder, { mode: 0o755 })
  const home = findHome({ HOME: world.home, TERRET_HOME: folder, XDG_CONFIG_HOME: join(world.root, 'config') })
  if (world.defended) makeHome(home)
  const store = sqlite(home.database)
  const harness = new Harness({ model: world.model(['done']), store, secrets: {} })
  await harness.run(world.secret)
  new TokenRegistry(join(folder, 'tokens.json'), 'owner', withFileLock)
  openInputHistory(home, world.workspace, {}).add(world.secret)
  await harness.close()
  await store.close()
  const files = filesBelow(folder)
  if (!world.defended)
    for (const file of files) {
      chmodSync(file, 0o644)
      for (let at = join(file, '..'); at.startsWith(folder); at = join(at, '..')) chmodSync(at, made)
    }
  return files
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

const NOBODY = { uid: 65_534, gid: 65_534 }

function asNobody(program: string, ...args: readonly string[]): string {
  try {
    return execFileSync(program, [...args], { ...NOBODY, encoding: 'latin1', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}

const neighbour: Case = scenario({
  name: 'another user of the machine reads and changes the files of the data folder',
  needs: ['root'],
  play: async (world) => {
    const files = await dataFolder(world)
    if (files.length < 3) throw new Error(`only ${files.join()} were made`)
    for (const file of files) world.log += asNobody('/bin/cat', file)
    world.log += asNobody('/bin/ls', '-R', join(world.root, 'data'))
    // In the control the folder is one that everybody may write to, as /tmp is.
    if (!world.defended) chmodSync(join(world.root, 'data'), 0o777)
    asNobody('/usr/bin/touch', join(world.root, 'data', 'planted'))
  },
  happened: (world) => existsSync(join(world.root, 'data', 'terret.db')),
  harms: [
    ['showed what was said', (world) => world.log.includes(world.secret)],
    ['showed the token of the server', (world) => /"own":\s*"[\w-]{43}"/.test(world.log)],
    ['told which files there are', (world) => world.log.includes('terret.db')],
    ['took a file of somebody else', (world) => existsSync(join(world.root, 'data', 'planted'))],
  ],
})

export const coUsers: Row = {
  row: 135,
  title: 'somebody else with a token of the same server, or an account on the same machine',
  width: 2,
  cases: [
    scenario({
      name: 'tries every route with the ids of sessions, copies, jobs and deliveries of others, in each role',
      play: spy,
      happened: (world) => foundBy(world).asked > 100,
      harms: [
        ['read what is not theirs', (world) => foundBy(world).reads.length > 0],
        ['told what is there from what is not', (world) => foundBy(world).tells.length > 0],
        ['changed what is not theirs', (world) => foundBy(world).changes.length > 0],
        ['approved a call of somebody else', (world) => world.has('ws-evil/sent.txt')],
      ],
    }),
    neighbour,
  ],
}
