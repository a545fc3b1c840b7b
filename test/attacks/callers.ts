// Row 101: callers of a server who ask about sessions of others, or come with a token that was dropped or is over. Without the defence the
// caller reaches all sessions, the new token inherits, and the token has no end.
import { Harness, memory, scripted } from '../../src/index.ts'
import { type MountedServer, serve } from '../../src/server/index.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

const TOKEN = 'o'.repeat(43)
const THEIRS = 'ann:plans'
const MISSING = 'ann:other'

type Answer = { readonly status: number; readonly text: string }

async function opened(world: World): Promise<MountedServer> {
  const harness = new Harness({ model: scripted([]), store: memory(), worker: { drives: false } })
  const server = await serve({ harness, token: TOKEN, inspector: false })
  world.defer(async () => {
    await server.close()
    await harness.close()
  })
  return server
}

async function ask(
  server: MountedServer,
  token: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const content = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await server.fetch(new Request(`http://localhost${path}`, { method, headers, ...content }))
  // A stream has no end: what it begins with says enough.
  if (response.headers.get('content-type')?.includes('event-stream')) {
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
    const first = new TextDecoder().decode((await reader?.read())?.value)
    await reader?.cancel()
    return { status: response.status, text: first }
  }
  return { status: response.status, text: await response.text() }
}

async function tokenOf(server: MountedServer, body: object): Promise<string> {
  const { text } = await ask(server, TOKEN, 'POST', '/v1/tokens', body)
  return (JSON.parse(text) as { readonly token: string }).token
}

const learned = new WeakMap<World, boolean>()
const harmed = (world: World): boolean => learned.get(world) === true

/** By the id of a session. */
const PROBES: readonly (readonly [string, string, unknown])[] = [
  ['GET', '', undefined],
  ['GET', '/events', undefined],
  ['GET', '/messages', undefined],
  ['GET', '/result', undefined],
  ['GET', '/state', undefined],
  ['GET', '/stream', undefined],
  ['GET', '/export', undefined],
  ['POST', '/messages', { input: 'x' }],
  ['POST', '/commands', { commands: [{ type: 'message', input: 'x' }] }],
  ['POST', '/answers', { callId: '1.0', content: 'x' }],
  ['POST', '/interrupt', {}],
  ['POST', '/fork', {}],
  ['POST', '/undo', {}],
]

async function people(world: World): Promise<{ readonly server: MountedServer; readonly eve: string }> {
  const server = await opened(world)
  const ann = await tokenOf(server, { name: 'ann', role: 'operator', reach: 'own' })
  await ask(server, ann, 'POST', '/v1/sessions', { id: THEIRS, input: 'secret plans' })
  const eve = await tokenOf(server, { name: 'eve', role: 'operator', reach: world.defended ? 'own' : 'all' })
  return { server, eve }
}

const probes = PROBES.map(
  ([method, path, body]): Case => ({
    name: `${method} of a session${path} tells one of somebody else from a missing one`,
    attack: async (world) => {
      const { server, eve } = await people(world)
      const at = (id: string) => ask(server, eve, method, `/v1/sessions/${encodeURIComponent(id)}${path}`, body)
      const [theirs, none] = [await at(THEIRS), await at(MISSING)]
      const alike = theirs.text.replaceAll(THEIRS, 'ID') === none.text.replaceAll(MISSING, 'ID')
      learned.set(world, theirs.status !== none.status || !alike)
    },
    harmed,
  }),
)

const chosenIds = ['/v1/sessions', '/v1/sessions/own/fork'].map(
  (path): Case => ({
    name: `POST ${path} with the id of somebody else's session says that it is taken`,
    attack: async (world) => {
      const { server, eve } = await people(world)
      const { text } = await ask(server, eve, 'POST', '/v1/sessions', {})
      const { session } = JSON.parse(text) as { readonly session: string }
      const at = (id: string) => ask(server, eve, 'POST', path.replace('own', session), { id })
      const [theirs, none] = [await at(THEIRS), await at(MISSING)]
      learned.set(world, theirs.status !== none.status)
    },
    harmed,
  }),
)

const listed: Case = {
  name: 'the list of sessions names one of somebody else',
  attack: async (world) => {
    const { server, eve } = await people(world)
    learned.set(world, (await ask(server, eve, 'GET', '/v1/sessions')).text.includes(THEIRS))
  },
  harmed,
}

const dropped = [`/v1/sessions/${THEIRS}`, '/v1/sessions', `/v1/sessions/${THEIRS}/messages`].map(
  (path): Case => ({
    name: `a new token of a dropped name asks for ${path}`,
    attack: async (world) => {
      const { server } = await people(world)
      await ask(server, TOKEN, 'DELETE', '/v1/tokens/ann')
      const body = { name: 'ann', role: 'operator', reach: 'own', ...(world.defended ? {} : { inherit: true }) }
      const made = await ask(server, TOKEN, 'POST', '/v1/tokens', body)
      const { token = 'x'.repeat(43) } = JSON.parse(made.text) as { readonly token?: string }
      const { status, text } = await ask(server, token, 'GET', path)
      learned.set(world, status === 200 && (text.includes('secret plans') || text.includes(THEIRS)))
    },
    harmed,
  }),
)

const EXPIRES_MS = 1_000

const expired = ['/v1/me', '/v1/sessions', `/v1/sessions/${THEIRS}`, `/v1/sessions/${THEIRS}/stream`, '/metrics'].map(
  (path): Case => ({
    name: `a token whose time is over asks for ${path}`,
    attack: async (world) => {
      const { server } = await people(world)
      const over = world.defended ? { expiresMs: EXPIRES_MS } : {}
      const token = await tokenOf(server, { name: 'temp', role: 'viewer', ...over })
      await new Promise((resolve) => setTimeout(resolve, EXPIRES_MS + 20))
      learned.set(world, (await ask(server, token, 'GET', path)).status === 200)
    },
    harmed,
  }),
)

const gone: Case = {
  name: 'a token that was dropped goes on asking',
  attack: async (world) => {
    const { server } = await people(world)
    const token = await tokenOf(server, { name: 'temp', role: 'viewer' })
    if (world.defended) await ask(server, TOKEN, 'DELETE', '/v1/tokens/temp')
    learned.set(world, (await ask(server, token, 'GET', '/v1/sessions')).status === 200)
  },
  harmed,
}

export const callers: Row = {
  row: 101,
  title: 'callers who ask for what is not theirs, and tokens that are no longer good',
  cases: [...probes, ...chosenIds, listed, ...dropped, ...expired, gone],
  width: 8,
}
